/* SPDX-License-Identifier: Apache-2.0
 *
 * C's fmaf for Windows: that of mingw-w64 adds in long double and rounds twice.  Where the compiler has an instruction
 * for it, nothing calls this.
 *
 * The product of two floats is exact as a double.  The sum is rounded to odd: where bits are lost, the last one is set.
 * A double has more than two bits beyond a float, so that rounding such a sum to a float rounds the exact one.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef _WIN32
float fmaf(float x, float y, float z)
{
    const double product = (double)x * y;
    double sum = product + z;
    const double part = sum - product, lost = (product - (sum - part)) + (z - part); /* sum + lost is exact */
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (isfinite(sum) && lost != 0 && bits % 2 == 0)
        bits = (lost > 0) == (sum > 0) ? bits + 1 : bits - 1;
    memcpy(&sum, &bits, sizeof sum);
    return (float)sum;
}
#endif
