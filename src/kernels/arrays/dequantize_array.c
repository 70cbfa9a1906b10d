/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/arrays/array_walk.h"

enum { D_SCALE, D_ZERO, D_COLUMNS };

static void fill_dequantize(tq_walk_params *p, char *const *data, unsigned columns, const tq_walk_source *from,
                            size_t first, size_t sets)
{
    const int32_t *zeros = (int32_t *)data[D_ZERO];
    tq_fill_u32(data[D_SCALE], from->scale.data, from->scale.many, first, sets);
    if (!(columns >> D_ZERO & 1))
        return;
    tq_fill_u32(data[D_ZERO], from->zero_point.data, from->zero_point.many, first, sets);
    p->dequantize.wide = false;
    for (size_t i = 0; i < sets && from->in == TQ_i32; i++)
        p->dequantize.wide |= zeros[i] != 0;
}

static void point_dequantize(tq_walk_params *params, char *const *data)
{
    params->dequantize.scale = (float *)data[D_SCALE];
    params->dequantize.zero_point = (int32_t *)data[D_ZERO];
}

tq_status tq_dequantize_array(const tq_array_job *job, tq_column_f32 scale, tq_column_i32 zero_point, tq_error *error)
{
    if (tq_layout_elements(&job->layout) == 0)
        return TQ_OK;
    tq_walk_params p = {.dequantize = {.stream = tq_job_is_large(job) && job->out_type == TQ_f32}};
    tq_walk_source source = {.scale = scale, .zero_point = zero_point, .in = job->in_type, .out = job->out_type};
    tq_walk w = {.params = &p,
                 .source = &source,
                 .fill = fill_dequantize,
                 .point = point_dequantize,
                 .layout = tq_layout_joined(job->layout, scale.many || zero_point.many)};
    tq_columns c = {.size = {4, 4},
                    .count = D_COLUMNS,
                    .needed = (1u << D_COLUMNS) - 1,
                    .scratch = job->scratch,
                    .constant = zero_point.many ? 0 : 1u << D_ZERO};
    return tq_walk_run(&w, job, TQ_KERNEL_dequantize, &c, error);
}
