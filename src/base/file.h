/* SPDX-License-Identifier: Apache-2.0
 *
 * Files as read-only memory.
 *
 * A mapped file that another process shortens while it is open ends this process with SIGBUS on
 * access, as with every memory-mapped reader: replace files, do not truncate them.
 */
#ifndef TQ_BASE_FILE_H
#define TQ_BASE_FILE_H

#include "base/bytes.h"
#include "base/status.h"

typedef struct tq_file {
    tq_bytes bytes;
    void *handle; /* Windows: the view's mapping object */
    uint64_t device, inode; /* which file it is, whatever its name; 0 on Windows */
} tq_file;

/* Maps the whole of a regular file; an empty one gives no bytes.  `path` is in the system's own
   encoding (UTF-8 on Windows).  Fails with TQ_IO (os_error is set) and TQ_NOT_A_FILE: pipes and
   devices are refused rather than waited for. */
tq_status tq_file_map(const char *path, tq_file *out, tq_error *error);

/* Says how the bytes will be read: scattered (the start), or in order (NumPy on weights). */
void tq_file_expect(const tq_file *file, int in_order);

void tq_file_unmap(tq_file *file);

#endif
