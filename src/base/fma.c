/* SPDX-License-Identifier: Apache-2.0
 *
 * C's fmaf for Windows: mingw-w64's adds in long double and rounds twice.  Not called where the compiler uses an
 * instruction.
 *
 * The product of two floats is exact in float64.  The sum is rounded to odd: where bits are lost, the last bit is set.
 * float64 has more than two bits beyond float32, so rounding this sum to float32 equals rounding the exact sum.
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
