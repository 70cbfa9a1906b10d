/* SPDX-License-Identifier: Apache-2.0
 *
 * filetypes.def's rows, ONNX and text, which have no fixed first bytes.
 */
#include "model/filetypes.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *first;
    size_t size;
    const char *name;
} rows[] = {
#define FILETYPE(first, name) {first, sizeof(first) - 1, name},
#include "model/filetypes.def"
#undef FILETYPE
};

/* A ModelProto begins with ir_version (field 1, a small number), and producer_name (field 2) follows. */
static bool is_onnx(tq_bytes file)
{
    return file.size > 4 && file.data[0] == 0x08 && file.data[1] < 0x20 && file.data[2] == 0x12;
}

static bool is_text(tq_bytes file)
{
    size_t count = file.size < 64 ? file.size : 64;
    for (size_t i = 0; i < count; i++) {
        const unsigned char c = file.data[i];
        if ((c < ' ' && c != '\n' && c != '\r' && c != '\t') || c > '~')
            return false;
    }
    return count >= 16;
}

const char *tq_filetype(tq_bytes file)
{
    if (file.size >= 8 && memcmp(file.data + 4, "TFL", 3) == 0)
        return NULL;
    const bool text = is_text(file);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bool tells = rows[i].size > 1 || text; /* one byte alone may stand in a damaged model */
        if (tells && file.size >= rows[i].size && memcmp(file.data, rows[i].first, rows[i].size) == 0)
            return rows[i].name;
    }
    return is_onnx(file) ? "perhaps an ONNX model" : text ? "text" : NULL;
}
