/* SPDX-License-Identifier: Apache-2.0
 *
 * Statuses, and the error record with the text of one.
 *
 * A fallible function returns a tq_status and writes its results through out-pointers, which it
 * leaves untouched on failure.  It takes a tq_error that may be NULL; on failure it fills it.
 */
#ifndef TQ_BASE_STATUS_H
#define TQ_BASE_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/machine.h"

typedef enum tq_status {
#define STATUS(symbol, exception, text) TQ_##symbol,
#include "base/status.def"
#undef STATUS
    TQ_STATUS_COUNT
} tq_status;

#define TQ_NO_OFFSET UINT64_MAX

typedef struct tq_error {
    tq_status status;
    uint64_t offset; /* byte offset in the file, or TQ_NO_OFFSET */
    int os_error;    /* errno for TQ_IO, else 0 */
    char text[256];  /* the thing, the found and the needed value; NUL-terminated, cut where longer */
} tq_error;

/* mingw-w64's gcc takes `printf` for that of Microsoft's library, which does not know %zu. */
#if defined(__MINGW32__) && !defined(__clang__)
#define TQ_PRINTF(at, first) __attribute__((format(gnu_printf, at, first)))
#else
#define TQ_PRINTF(at, first) __attribute__((format(printf, at, first)))
#endif

/* Fills `error` (which may be NULL) and returns `status`, so that a check is one line:
 *     return tq_fail(error, TQ_BAD_SHAPE, TQ_NO_OFFSET, "dimension %d is %d", i, dim);        */
tq_status tq_fail(tq_error *error, tq_status status, uint64_t offset, const char *format, ...) TQ_PRINTF(4, 5);

/* Returns from the caller unless `call` gives TQ_OK. */
#define TQ_TRY(call)                \
    do {                            \
        tq_status status_ = (call); \
        if (status_ != TQ_OK)       \
            return status_;         \
    } while (0)

/* "VECTOR_RANGE" and "a vector or string is ..."; "?" for a number without a row. */
const char *tq_status_name(tq_status status);
const char *tq_status_text(tq_status status);

#endif
