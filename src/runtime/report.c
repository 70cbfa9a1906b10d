/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/run.h"

void tq_run_report(tq_run *run, const char *text)
{
    enum { REPORT_LIMIT = 1 << 16 }; /* bytes; a file may have a million bad operators */
    size_t length = strlen(text), need = run->report_size + length + 2;
    if (need > REPORT_LIMIT)
        return;
    if (need > run->report_room) {
        char *grown;
        if (tq_blocks_add(&run->memory, run->pool, need * 2, 1, &grown, NULL) != TQ_OK)
            return;
        if (run->report)
            memcpy(grown, run->report, run->report_size);
        run->report = grown;
        run->report_room = need * 2;
    }
    if (run->report_size)
        run->report[run->report_size++] = '\n';
    memcpy(run->report + run->report_size, text, length + 1);
    run->report_size += length;
}
