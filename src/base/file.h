/* SPDX-License-Identifier: Apache-2.0
 *
 * Files as read-only memory.
 *
 * If another process truncates a mapped file, reading the lost pages ends this process with SIGBUS, as with every
 * memory-mapped reader: replace files, do not truncate them.
 */
#ifndef TQ_BASE_FILE_H
#define TQ_BASE_FILE_H

#include "base/bytes.h"
#include "base/status.h"

typedef struct tq_file {
    tq_bytes bytes;
    void *handle; /* Windows: the view's mapping object */
    uint64_t device, inode; /* the identity of the file, whatever its name; 0 on Windows */
} tq_file;

/* Maps a whole regular file; an empty file gives no bytes.  `path` is in the system's encoding (UTF-8 on Windows).
   TQ_IO, with os_error; TQ_NOT_A_FILE: pipes and devices are refused without waiting. */
tq_status tq_file_map(const char *path, tq_file *out, tq_error *error);

/* Advises the system how the bytes will be read: scattered (the default), or in order. */
void tq_file_expect(const tq_file *file, int in_order);

/* Unmaps the bytes, and clears *file. */
void tq_file_unmap(tq_file *file);

#endif
