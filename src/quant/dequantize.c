/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/dequantize.h"

#include <string.h>

typedef struct parameters {
    const float *scale;
    const int64_t *zero_point;
    uint64_t zero_point_count;
} parameters;

static double zero_point_of(const parameters *p, uint64_t index)
{
    if (p->zero_point_count == 0)
        return 0;
    return (double)p->zero_point[p->zero_point_count == 1 ? 0 : index];
}

/* `count` neighbours along the last dimension that share one scale. */
#define RUN(name, type)                                                                                  \
    static void run_##name(const uint8_t *values, uint64_t count, double scale, double zero, float *out) \
    {                                                                                                    \
        for (uint64_t i = 0; i < count; i++) {                                                           \
            type q;                                                                                      \
            memcpy(&q, values + i * sizeof q, sizeof q);                                                 \
            out[i] = (float)(scale * ((double)q - zero));                                                \
        }                                                                                                \
    }
RUN(i8, int8_t)
RUN(u8, uint8_t)
RUN(i16, int16_t)
RUN(u16, uint16_t)
RUN(i32, int32_t)
RUN(u32, uint32_t)
RUN(i64, int64_t)
RUN(u64, uint64_t)
#undef RUN

static const struct {
    void (*run)(const uint8_t *values, uint64_t count, double scale, double zero, float *out);
    size_t size;
} types[TQ_SCALAR_COUNT] = {
    [TQ_I8] = {run_i8, 1},   [TQ_U8] = {run_u8, 1},   [TQ_I16] = {run_i16, 2}, [TQ_U16] = {run_u16, 2},
    [TQ_I32] = {run_i32, 4}, [TQ_U32] = {run_u32, 4}, [TQ_I64] = {run_i64, 8}, [TQ_U64] = {run_u64, 8},
};

/* The last dimensions along which scales do not vary, as one run. */
static uint64_t shared_run(const tq_scale_map *map, int *outer_rank)
{
    uint64_t run = 1;
    int d = map->rank;
    while (d > 0 && map->stride[d - 1] == 0)
        run *= map->dims[--d];
    if (d > 0 && map->block[d - 1] > 1 && run == 1) {
        *outer_rank = d;
        return 0; /* blocks along dimension d - 1 are the runs */
    }
    *outer_rank = d;
    return run;
}

void tq_dequantize_values(tq_scalar type, const void *values, const tq_scale_map *map, const float *scale,
                          const int64_t *zero_point, uint64_t zero_point_count, float *out)
{
    parameters p = {scale, zero_point, zero_point_count};
    uint64_t index[TQ_SCALE_MAP_MAX_RANK] = {0};
    const uint8_t *at = values;
    int rank;
    uint64_t run = shared_run(map, &rank);
    for (int d = 0; d < map->rank; d++)
        if (map->dims[d] == 0)
            return;
    for (;;) {
        uint64_t s = 0, step = 1;
        for (int d = 0; d < rank; d++)
            s += index[d] / map->block[d] * map->stride[d];
        uint64_t count = run;
        if (!run) { /* to the end of the block, or of the dimension */
            uint64_t left = map->dims[rank - 1] - index[rank - 1];
            step = count = left < map->block[rank - 1] ? left : map->block[rank - 1];
        }
        types[type].run(at, count, scale[s], zero_point_of(&p, s), out);
        at += count * types[type].size;
        out += count;
        int d = rank - 1; /* the next place, last dimension fastest */
        for (; d >= 0; d--, step = 1) {
            index[d] += step;
            if (index[d] < map->dims[d])
                break;
            index[d] = 0;
        }
        if (d < 0)
            return;
    }
}
