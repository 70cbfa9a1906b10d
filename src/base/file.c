/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system.h"

#include "base/file.h"

#ifdef _WIN32
#include "base/file_windows.h"
#else

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static tq_status fail_os(tq_error *error, int number)
{
    tq_status status = tq_fail(error, TQ_IO, TQ_NO_OFFSET, "%s", strerror(number));
    if (error)
        error->os_error = number;
    return status;
}

static tq_status map_open_file(int fd, tq_file *out, tq_error *error)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return fail_os(error, errno);
    if (!S_ISREG(info.st_mode)) {
        tq_status status = tq_fail(error, TQ_NOT_A_FILE, TQ_NO_OFFSET,
                                   S_ISDIR(info.st_mode) ? "Is a directory" : "Not a regular file");
        if (error)
            error->os_error = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
        return status;
    }
    if ((uint64_t)info.st_size > SIZE_MAX)
        return fail_os(error, EFBIG);
    *out = (tq_file){.device = (uint64_t)info.st_dev, .inode = (uint64_t)info.st_ino};
    if (info.st_size == 0)
        return TQ_OK; /* mmap takes no empty range */
    void *memory = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
        return fail_os(error, errno);
    out->bytes = (tq_bytes){memory, (size_t)info.st_size};
    return TQ_OK;
}

tq_status tq_file_map(const char *path, tq_file *out, tq_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: a FIFO must not make us wait */
    if (fd < 0)
        return fail_os(error, errno);
    tq_status status = map_open_file(fd, out, error);
    close(fd);
    return status;
}

void tq_file_expect(const tq_file *file, int in_order)
{
    if (file->bytes.size)
        madvise((void *)(uintptr_t)file->bytes.data, file->bytes.size, in_order ? MADV_NORMAL : MADV_RANDOM);
}

void tq_file_unmap(tq_file *file)
{
    if (file->bytes.size)
        munmap((void *)(uintptr_t)file->bytes.data, file->bytes.size);
    *file = (tq_file){0};
}

#endif
