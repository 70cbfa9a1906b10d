/* SPDX-License-Identifier: Apache-2.0
 *
 * base/file.h: a file while it is mapped, and paths that are no regular files.
 */
#include "base/file.h"
#include "check.h"

#ifdef _WIN32
static const bool replaces_mapped_files = false; /* Windows does not move a file over a mapped one */
#include <windows.h>
static bool replace(const char *from, const char *to)
{
    return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING) != 0;
}
#else
static const bool replaces_mapped_files = true;
static bool replace(const char *from, const char *to)
{
    return rename(from, to) == 0;
}
#endif

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    CHECK(file && fputs(text, file) >= 0);
    if (file)
        fclose(file);
}

static bool holds(const tq_file *file, const char *text)
{
    return file->bytes.size == strlen(text) && memcmp(file->bytes.data, text, file->bytes.size) == 0;
}

/* A mapped file is renamed, and a new file takes its name: the mapping still has the old bytes. */
static void test_moved_aside(void)
{
    tq_file file = {0}, again = {0};
    tq_error error;
    write_file("tq_test_file", "old");
    CHECK(tq_file_map("tq_test_file", &file, &error) == TQ_OK && holds(&file, "old"));
    CHECK(replace("tq_test_file", "tq_test_aside"));
    write_file("tq_test_file", "new");
    CHECK(holds(&file, "old"));
    CHECK(tq_file_map("tq_test_file", &again, &error) == TQ_OK && holds(&again, "new"));
    tq_file_unmap(&file);
    tq_file_unmap(&again);
    CHECK(remove("tq_test_file") == 0 && remove("tq_test_aside") == 0);
}

static void test_replaced(void)
{
    tq_file file = {0};
    tq_error error;
    write_file("tq_test_file", "old");
    write_file("tq_test_other", "new");
    CHECK(tq_file_map("tq_test_file", &file, &error) == TQ_OK);
    if (replaces_mapped_files) {
        CHECK(replace("tq_test_other", "tq_test_file") && holds(&file, "old"));
    } else {
        CHECK(holds(&file, "old"));
    }
    tq_file_unmap(&file);
    if (!replaces_mapped_files)
        CHECK(replace("tq_test_other", "tq_test_file"));
    CHECK(remove("tq_test_file") == 0);
}

void test_file(void)
{
    tq_file file = {0};
    tq_error error;
    CHECK(tq_file_map("tq_test_no_such_file", &file, &error) == TQ_IO && error.os_error == 2);
    CHECK(tq_file_map(".", &file, &error) != TQ_OK);
    write_file("tq_test_file", "");
    CHECK(tq_file_map("tq_test_file", &file, &error) == TQ_OK && file.bytes.size == 0);
    tq_file_unmap(&file);
    CHECK(remove("tq_test_file") == 0);
    test_moved_aside();
    test_replaced();
}
