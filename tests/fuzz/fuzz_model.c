/* SPDX-License-Identifier: Apache-2.0
 *
 * A libFuzzer target for the verifier, the accessors and the views on top of them.
 *
 * One input is one file.  Whatever it holds, opening it either fails with a status and a message
 * and leaves the model alone, or gives a model all of which can be read.  Sanitizers watch the reads;
 * abort() reports the promises that they cannot see.
 */
#include "flatbuffer/writer.h"
#include "fuzz_model.h"
#include "flatbuffer/writer.h"
#include "model/problems/problems.h"

static bool count_problem(void *context, const tq_problem *problem)
{
    if (!problem)
        return true;
    PROMISE((unsigned)problem->code < TQ_PROBLEM_COUNT);
    PROMISE(memchr(problem->text, 0, sizeof problem->text) && problem->text[0]);
    PROMISE(memchr(problem->location_text, 0, sizeof problem->location_text));
    ++*(uint64_t *)context;
    return true;
}

/* Finds problems twice, with all memory and with none to spare. */
static void list_problems(const tq_model *model)
{
    for (long n = 0; n < 8; n++) {
        fuzz_heap h = {0, n};
        tq_allocator allocator = fuzz_allocator(&h);
        uint64_t count = 0;
        tq_error error;
        tq_status status = tq_model_problems(model, &allocator, count_problem, &count, &error);
        PROMISE(status == TQ_OK || (status == TQ_NO_MEMORY && error.status == status));
        PROMISE(h.live == 0);
        PROMISE(count <= 1001 * TQ_PROBLEM_COUNT);
        if (status == TQ_OK)
            return;
    }
}

/* Fails the first, the second, ... allocation of an opening until it needs no more. */
static void open_without_memory(tq_bytes file)
{
    for (long n = 0; n < 16; n++) {
        fuzz_heap h = {0, n};
        tq_allocator allocator = fuzz_allocator(&h);
        tq_model model;
        tq_error error;
        tq_status status = tq_model_open(file, &allocator, &model, &error);
        if (status == TQ_OK)
            tq_model_close(&model);
        else
            PROMISE(status == TQ_NO_MEMORY && error.status == status);
        PROMISE(h.live == 0);
        if (status == TQ_OK)
            return;
    }
}

/* Writes the model again; one in four (`draw` says which) also with its constants moved outside, and with
   the nth allocation failing, for one n. */
static void rewrite(const tq_model *model, uint64_t draw)
{
    tq_model copy = *model;
    fuzz_heap h = {0, 1000};
    tq_allocator allocator = fuzz_allocator(&h);
    copy.allocator = allocator;
    tq_status status = fuzz_rewrite(&copy, TQ_FLATBUFFER_LIMIT, false);
    PROMISE(status == TQ_OK || status == TQ_NO_MEMORY || status == TQ_TOO_LARGE || h.until_failure > 0);
    PROMISE(h.live == 0);
    if (status != TQ_OK || draw % 4)
        return;
    long needed = 1000 - h.until_failure;
    h.until_failure = 1000;
    status = fuzz_rewrite(&copy, 0, true);
    PROMISE(status == TQ_OK || status == TQ_TOO_LARGE);
    PROMISE(h.live == 0);
    h.until_failure = (long)(draw / 4 % (uint64_t)needed);
    PROMISE(fuzz_rewrite(&copy, TQ_FLATBUFFER_LIMIT, false) == TQ_NO_MEMORY);
    PROMISE(h.live == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tq_bytes file = {data, size};
    fuzz_heap h = {0, 1000};
    tq_allocator allocator = fuzz_allocator(&h);
    tq_model model, untouched;
    tq_error error;
    memset(&model, 0xA5, sizeof model);
    memcpy(&untouched, &model, sizeof model);
    tq_status status = tq_model_open(file, &allocator, &model, &error);
    if (status != TQ_OK) {
        PROMISE(error.status == status);
        PROMISE(memchr(error.text, 0, sizeof error.text) && error.text[0]);
        PROMISE(error.offset == TQ_NO_OFFSET || error.offset <= (uint64_t)size + UINT32_MAX);
        PROMISE(memcmp(&model, &untouched, sizeof model) == 0);
        PROMISE(tq_model_open(file, &allocator, &model, NULL) == status);
        PROMISE(h.live == 0);
        return 0;
    }
    uint64_t sum = fuzz_walk(&model, UINT64_MAX);
    PROMISE(sum == fuzz_walk(&model, UINT64_MAX));
    list_problems(&model);
    if (sum % fuzz_rewrites_one_in == 0)
        rewrite(&model, sum / fuzz_rewrites_one_in);
    bool allocated = h.live != 0;
    tq_model_close(&model);
    PROMISE(h.live == 0);
    if (allocated)
        open_without_memory(file);
    return 0;
}
