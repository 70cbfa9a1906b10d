/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/arrays/requantize_i64.h"

#include "base/threads.h"
#include "quant/rounding.h"

#define GRAIN 4096 /* elements that a thread takes at least */

static int64_t saturating_difference(int64_t q, int32_t zero_point)
{
    if (zero_point > 0 && q < INT64_MIN + zero_point)
        return INT64_MIN;
    return zero_point < 0 && q > INT64_MAX + zero_point ? INT64_MAX : q - zero_point;
}

static void store(void *out, tq_element type, size_t i, int32_t value)
{
    switch (type) {
    case TQ_i8: ((int8_t *)out)[i] = (int8_t)value; break;
    case TQ_u8: ((uint8_t *)out)[i] = (uint8_t)value; break;
    case TQ_i16: ((int16_t *)out)[i] = (int16_t)value; break;
    default: ((int32_t *)out)[i] = value; break;
    }
}

/* Elements [begin, end), all of one parameter set. */
static void requantize_run(const tq_requantize_i64_job *job, size_t set, size_t begin, size_t end)
{
    const tq_requantize_rule rule =
        job->rule == TQ_REQUANTIZE_I64_UP ? TQ_REQUANTIZE_DOUBLE : TQ_REQUANTIZE_FLOAT64_AWAY;
    const tq_multiplier m = tq_multiplier_of(job->multiplier.data[job->multiplier.many ? set : 0], rule);
    const int32_t input_zero_point = job->input_zero_point.data[job->input_zero_point.many ? set : 0];
    const int32_t zero_point = job->zero_point.data[job->zero_point.many ? set : 0];
    for (size_t i = begin; i < end; i++) {
        const int64_t acc = saturating_difference(job->in[i], input_zero_point);
        store(job->out, job->out_type, i, tq_requantize_i64(acc, &m, rule, zero_point, job->low, job->high));
    }
}

static void requantize_part(void *context, size_t begin, size_t end)
{
    const tq_requantize_i64_job *job = context;
    const tq_layout *layout = &job->layout;
    while (begin < end) {
        const size_t row = begin / layout->inner, rest = layout->inner - begin % layout->inner;
        const size_t group = row / (layout->outer * layout->channels);
        const size_t count = rest < end - begin ? rest : end - begin;
        requantize_run(job, group * layout->channels + row % layout->channels, begin, begin + count);
        begin += count;
    }
}

void tq_requantize_i64_array(const tq_requantize_i64_job *job)
{
    const tq_layout *layout = &job->layout;
    const size_t count = layout->groups * layout->outer * layout->channels * layout->inner;
    tq_parallel_for(count, GRAIN, job->threads, requantize_part, (void *)job);
}
