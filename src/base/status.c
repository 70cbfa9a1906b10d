/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name, *text;
} rows[] = {
#define STATUS(symbol, exception, text) {#symbol, text},
#include "base/status.def"
#undef STATUS
};

tq_status tq_fail(tq_error *error, tq_status status, uint64_t offset, const char *format, ...)
{
    if (error) {
        va_list args;
        error->status = status;
        error->offset = offset;
        error->os_error = 0;
        va_start(args, format);
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
    }
    return status;
}

const char *tq_status_name(tq_status status)
{
    return (unsigned)status < TQ_STATUS_COUNT ? rows[status].name : "?";
}

const char *tq_status_text(tq_status status)
{
    return (unsigned)status < TQ_STATUS_COUNT ? rows[status].text : "?";
}
