/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of unsupported.def as a table.
 */
#include "runtime/unsupported.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *name, *text;
} rows[] = {
#define UNSUPPORTED(name, text) {name, text},
#include "runtime/unsupported.def"
};

static bool matches(const char *row, tq_bytes name)
{
    size_t length = strlen(row);
    bool begins = row[length - 1] == '*';
    length -= begins;
    return (begins ? name.size >= length : name.size == length) && memcmp(row, name.data, length) == 0;
}

const char *tq_unsupported_text(tq_bytes name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (name.data && matches(rows[i].name, name))
            return rows[i].text;
    return "is not one that tq knows; tq.register_op can add it";
}
