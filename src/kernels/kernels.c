/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include "kernels/features.h"

static const tq_kernel rows[] = {
#define KERNEL(operation, in, out, isa)            \
    {#operation "_" #in "_" #out,                  \
     #isa,                                         \
     TQ_KERNEL_##operation,                        \
     TQ_##in,                                      \
     TQ_##out,                                     \
     tq_feature_##isa,                             \
     tq_##operation##_##in##_##out##__##isa##_row, \
     tq_##operation##_##in##_##out##__##isa##_lanes},
#include "kernels/elementwise.def"
};

#define ROWS (sizeof rows / sizeof *rows)

static struct {
    uint32_t features;
    const tq_kernel *best[TQ_OPERATIONS][TQ_ELEMENTS][TQ_ELEMENTS];
} chosen;

static _Thread_local int forced = -1;

void tq_kernels_choose(uint32_t features)
{
    chosen.features = features;
    for (size_t i = 0; i < ROWS; i++)
        if (features >> rows[i].feature & 1)
            chosen.best[rows[i].operation][rows[i].in][rows[i].out] = &rows[i];
}

static const tq_kernel *find_forced(tq_operation operation, tq_element in, tq_element out)
{
    const tq_kernel *found = NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].operation == operation && rows[i].in == in && rows[i].out == out &&
            (rows[i].feature == TQ_CPU_INDEX_SCALAR || rows[i].feature == forced))
            found = &rows[i];
    return found;
}

const tq_kernel *tq_kernel_find(tq_operation operation, tq_element in, tq_element out)
{
    return forced < 0 ? chosen.best[operation][in][out] : find_forced(operation, in, out);
}

void tq_kernels_force(int feature)
{
    forced = feature;
}

const tq_kernel *tq_kernels(size_t *count)
{
    *count = ROWS;
    return rows;
}

bool tq_kernel_variant(size_t i, tq_variant *row)
{
    if (i >= ROWS)
        return false;
    const tq_kernel *k = &rows[i];
    *row = (tq_variant){k->name, k->isa, chosen.features >> k->feature & 1,
                        tq_kernel_find(k->operation, k->in, k->out) == k};
    return true;
}

uint32_t tq_kernels_features(void)
{
    return chosen.features;
}

uint32_t tq_kernels_usable(void)
{
    return forced < 0 ? chosen.features | TQ_CPU_SCALAR : TQ_CPU_SCALAR | 1u << forced;
}
