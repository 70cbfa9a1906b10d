/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of add_8bit.h, and the choice of a body.
 */
#include "kernels/elementwise/add_8bit.h"

#include <math.h>

#include "kernels/kernels.h"

bool tq_add_8bit_find(tq_add_8bit *p, double first, double second, double constant, double slack)
{
    const double range = fabs(first) + fabs(second), error = ceil(slack + 2.1 + 4 * range);
    if (!(2 * error < 128) || !(fabs(constant) <= 128 + 255 * range))
        return false;
    p->first = (float)ldexp(first, 16);
    p->second = (float)ldexp(second, 16);
    p->offset = (float)(ldexp(constant + 0.5, 16) + error);
    p->undecided = (uint8_t)(2 * error);
    return true;
}

tq_add_8bit_fn tq_add_8bit_body(void)
{
    const uint32_t features = tq_kernels_features();
    (void)features;
#if TQ_X86
    if (features & TQ_CPU_AVX512)
        return tq_add_8bit__avx512;
    if (features & TQ_CPU_AVX2)
        return tq_add_8bit__avx2;
#endif
#if TQ_ARM64
    if (features & TQ_CPU_NEON)
        return tq_add_8bit__neon;
#endif
    return NULL;
}
