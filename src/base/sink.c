/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system.h"

#include "base/sink.h"

#include <errno.h>

#ifdef _WIN32
#include <io.h>
static long write_some(int descriptor, const uint8_t *data, size_t size)
{
    return _write(descriptor, data, (unsigned)size);
}
#else
#include <unistd.h>
static long write_some(int descriptor, const uint8_t *data, size_t size)
{
    return (long)write(descriptor, data, size);
}
#endif

enum { MOST_AT_ONCE = 1 << 26 };

static tq_status put_memory(void *context, tq_bytes bytes, tq_error *error)
{
    tq_memory_sink *memory = context;
    if (bytes.size > memory->left)
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "%llu bytes for %llu bytes of memory",
                       (unsigned long long)bytes.size, (unsigned long long)memory->left);
    memcpy(memory->data, bytes.data, bytes.size);
    memory->data += bytes.size;
    memory->left -= bytes.size;
    return TQ_OK;
}

static uint8_t *reserve_memory(void *context, size_t size)
{
    tq_memory_sink *memory = context;
    uint8_t *room = memory->data;
    if (size > memory->left)
        return NULL; /* put says why */
    memory->data += size;
    memory->left -= size;
    return room;
}

tq_sink tq_sink_to_memory(tq_memory_sink *memory)
{
    return (tq_sink){put_memory, memory, reserve_memory};
}

static tq_status write_all(int descriptor, const uint8_t *data, size_t size, tq_error *error)
{
    while (size) {
        long done = write_some(descriptor, data, size < MOST_AT_ONCE ? size : MOST_AT_ONCE);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            int number = done < 0 ? errno : EIO;
            tq_status status = tq_fail(error, TQ_IO, TQ_NO_OFFSET, "%s", strerror(number));
            if (error)
                error->os_error = number;
            return status;
        }
        data += done;
        size -= (size_t)done;
    }
    return TQ_OK;
}

tq_status tq_file_sink_end(tq_file_sink *file, tq_error *error)
{
    size_t used = file->used;
    file->used = 0;
    return write_all(file->descriptor, file->piece, used, error);
}

static tq_status put_file(void *context, tq_bytes bytes, tq_error *error)
{
    tq_file_sink *file = context;
    if (bytes.size > TQ_SINK_PIECE - file->used) {
        tq_status status = tq_file_sink_end(file, error);
        if (status != TQ_OK)
            return status;
    }
    if (bytes.size >= TQ_SINK_PIECE)
        return write_all(file->descriptor, bytes.data, bytes.size, error);
    memcpy(file->piece + file->used, bytes.data, bytes.size);
    file->used += bytes.size;
    return TQ_OK;
}

tq_sink tq_sink_to_file(tq_file_sink *file)
{
    return (tq_sink){put_file, file, NULL};
}
