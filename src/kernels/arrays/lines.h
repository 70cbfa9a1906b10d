/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of 256 bytes that is the greater of two rounded lines, as LEAKY_RELU's and a rescaling are, by arithmetic of
 * 16 bits: in a third of the time of lookup.h with AVX2.
 */
#ifndef TQ_KERNELS_LINES_H
#define TQ_KERNELS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* out = int8(max of both lines at s >> right) ^ flip_out, with s = int8(in ^ flip_in); a line: s slope / 2^7, rounded,
   + offset.  Sums saturate. */
typedef struct tq_lines {
    int16_t slope[2], offset[2];
    int32_t right;
    uint8_t flip_in, flip_out; /* of UINT8: 128, else 0 */
} tq_lines;

/* Finds lines of about these slopes, for s < pivot and for s >= pivot, that give every entry of the table; false where
   there are none, or where lookup.h is as fast.  flips: of UINT8. */
bool tq_lines_find(tq_lines *lines, const uint8_t table[256], const double slopes[2], int32_t pivot, bool flips_in,
                   bool flips_out);

/* out[i] = table[in[i]] for i < n, by lines that tq_lines_find found for this table.  in and out are disjoint or the
   same. */
void tq_lines_run(const tq_lines *lines, const uint8_t table[256], const uint8_t *in, uint8_t *out, size_t n);

#endif
