/* SPDX-License-Identifier: Apache-2.0
 *
 * file.h for Windows; file.c includes it there.
 *
 * Other programs may write, rename and delete an open file, as elsewhere.  Windows does not move a file over a mapped
 * one: to save over an open model, rename the old file first, or close the model.
 */
#include <stdio.h>
#include <windows.h>

static tq_status fail_windows(tq_error *error, const char *function)
{
    unsigned long number = GetLastError();
    tq_status status = tq_fail(error, TQ_IO, TQ_NO_OFFSET, "%s failed with Windows error %lu", function, number);
    if (error) /* the errno values that Python turns into FileNotFoundError and PermissionError */
        error->os_error = number == ERROR_FILE_NOT_FOUND || number == ERROR_PATH_NOT_FOUND ? 2
                          : number == ERROR_ACCESS_DENIED                                  ? 13
                                                                                           : 5;
    return status;
}

static tq_status map_handle(HANDLE file, tq_file *out, tq_error *error)
{
    LARGE_INTEGER size;
    if (GetFileType(file) != FILE_TYPE_DISK)
        return tq_fail(error, TQ_NOT_A_FILE, TQ_NO_OFFSET, "Not a regular file");
    if (!GetFileSizeEx(file, &size))
        return fail_windows(error, "GetFileSizeEx");
    *out = (tq_file){0};
    if (size.QuadPart == 0)
        return TQ_OK;
    HANDLE mapping = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
    if (!mapping)
        return fail_windows(error, "CreateFileMapping");
    void *memory = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
    if (!memory) {
        tq_status status = fail_windows(error, "MapViewOfFile");
        CloseHandle(mapping);
        return status;
    }
    *out = (tq_file){.bytes = {memory, (size_t)size.QuadPart}, .handle = mapping};
    return TQ_OK;
}

tq_status tq_file_map(const char *path, tq_file *out, tq_error *error)
{
    wchar_t wide[32768];
    if (!MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 32768))
        return fail_windows(error, "MultiByteToWideChar");
    HANDLE file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return fail_windows(error, "CreateFile");
    tq_status status = map_handle(file, out, error);
    CloseHandle(file);
    return status;
}

void tq_file_expect(const tq_file *file, int in_order)
{
    (void)file;
    (void)in_order;
}

void tq_file_unmap(tq_file *file)
{
    if (file->bytes.size) {
        UnmapViewOfFile(file->bytes.data);
        CloseHandle(file->handle);
    }
    *file = (tq_file){0};
}
