/* SPDX-License-Identifier: Apache-2.0
 *
 * LOGISTIC and TANH of INT16.
 *
 * The input is rescaled to steps of 1 / (3 * 4096), so that +-2^17 is +-10.7.  T[i] = 2^16 logistic(i / 24) is
 * interpolated for |x|; symmetry gives the other half.  tanh(x) = 2 logistic(2x) - 1.
 * T is the runtime's table: the function rounded, and 1 more in 44 entries.
 * Optimized, with a scale of 2^-12 (TANH: or 2^-11, doubled with saturation first): kernels/arrays/fixed_16.h, in Q3.
 * Source: LiteRT f6745779, tflite/kernels/activations.cc (TanhPrepare, SigmoidPrepare),
 * reference/integer_ops/logistic.h, tanh.h; gemmlowp fixedpoint/fixedpoint.h.
 */
#include "ops/elementwise/sigmoid_16.h"

#include <math.h>

#include "kernels/arrays/fixed_16.h"
#include "ops/elementwise/fixed_point_lanes.h"

#define ENTRIES 256

typedef struct curve {
    int32_t multiplier;
    int32_t right, half; /* half: 2^right / 2 */
    bool is_power;       /* the scale is 2^-12, or 2^-11 for TANH */
    int32_t base[ENTRIES], slope[ENTRIES]; /* of the line from each entry to the next */
} curve;

typedef struct state {
    tq_map map;
    curve p;
} state;

static void fill_table(int32_t *table)
{
    static const uint8_t one_more[] = {4,  8,  12, 14, 15, 16, 17, 19, 20,  21,  22,  25,  27,  28, 29,
                                       30, 31, 33, 34, 35, 37, 39, 40, 41,  43,  44,  45,  46,  49, 50,
                                       54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255};
    for (int i = 0; i < ENTRIES; i++)
        table[i] = (int32_t)tq_round_f64(65536 / (1 + exp(-i / 24.0)));
    for (size_t i = 0; i < sizeof one_more; i++)
        table[one_more[i]]++;
}

/* Lines with `bits` bits of fraction; from the last entry on the value is `end`. */
static void fill_lines(curve *c, int bits, int32_t end)
{
    int32_t table[ENTRIES];
    fill_table(table);
    for (int i = 0; i < ENTRIES - 1; i++) {
        c->base[i] = table[i] * (1 << bits);
        c->slope[i] = table[i + 1] - table[i];
    }
    c->base[ENTRIES - 1] = end;
    c->slope[ENTRIES - 1] = 0;
}

/* q at the table's resolution.  narrow: the multiplier has 15 bits; the runtime overflows for longer ones. */
TQ_BODY int32_t position(int16_t q, const curve *p, bool narrow)
{
    if (narrow)
        return (q * p->multiplier + p->half) >> p->right;
    return tq_saturate_i32(((int64_t)q * p->multiplier + p->half) >> p->right);
}

/* The value at |x|, in units of 2^-16 of its fraction's bits. */
TQ_BODY int32_t between(const curve *p, int32_t x, int bits)
{
    uint32_t size = x < 0 ? 0u - (uint32_t)x : (uint32_t)x;
    uint32_t at = size >> bits, rest = size & ((1u << bits) - 1);
    at = at < ENTRIES - 1 ? at : ENTRIES - 1;
    return p->base[at] + (int32_t)rest * p->slope[at];
}

/* x >= 0: (y + 2^9) / 2^10; else (2^25 - y + 2^9 - 1) / 2^10.  `below` is -1 below zero, to avoid branches. */
TQ_BODY int32_t logistic_of(int16_t q, const curve *p, bool narrow)
{
    int32_t x = position(q, p, narrow), y = between(p, x, 9), below = x < 0 ? -1 : 0;
    return ((below & ((1 << 25) - 1)) + ((y ^ below) - below) + (1 << 9)) >> 10;
}

/* x >= 0: (y - 2^23 + 2^7) / 2^8; else (2^23 - y + 2^7 - 1) / 2^8. */
TQ_BODY int32_t tanh_of(int16_t q, const curve *p, bool narrow)
{
    int32_t x = position(q, p, narrow), y = between(p, x, 8) - (1 << 23), below = x < 0 ? -1 : 0;
    return (((y ^ below) - below) + (1 << 7) + below) >> 8;
}

TQ_MAP(run_logistic, , int16_t, int16_t, curve, logistic_of(x, &p, false))
TQ_MAP(run_tanh, , int16_t, int16_t, curve, tanh_of(x, &p, false))
TQ_ISA_DEFINE(TQ_MAP, narrow_logistic, int16_t, int16_t, curve, logistic_of(x, &p, true))
TQ_ISA_DEFINE(TQ_MAP, narrow_tanh, int16_t, int16_t, curve, tanh_of(x, &p, true))
static const tq_map_fn narrow_logistics[TQ_ISAS] = TQ_ISA_FUNCTIONS(narrow_logistic);
static const tq_map_fn narrow_tanhs[TQ_ISAS] = TQ_ISA_FUNCTIONS(narrow_tanh);

static void fixed_logistic(const void *in, void *out, size_t n, const void *params)
{
    (void)params;
    tq_logistic_q16(in, out, n);
}

static void fixed_tanh(const void *in, void *out, size_t n, const void *params)
{
    tq_tanh_q16(in, out, n, 3, ((const curve *)params)->multiplier == 6);
}

/* A scale of 2^-12 is 3 steps for each quantized value, 2^-11 (TANH) is 6.  Other scales are a multiplier of 14 bits
   and a shift. */
static void find_multiplier(float scale, bool tanh, curve *p)
{
    int power;
    p->is_power = tq_power_of_two(scale, &power) && (power == -12 || (tanh && power == -11));
    if (p->is_power) {
        p->multiplier = 3 * (1 << (power + 12));
        p->right = 0;
        return;
    }
    double multiplier = scale * 4096.0 * 3.0;
    for (p->right = 0; multiplier <= 32767.0 / 2.0 && p->right <= 30; p->right++)
        multiplier *= 2.0;
    p->multiplier = (int32_t)(multiplier < 2147483647.0 ? multiplier : 2147483647.0);
}

tq_status tq_sigmoid_prepare(tq_node *node, bool tanh, tq_error *error)
{
    state *s;
    int power;
    TQ_TRY(tq_check_input_divisor(node, 0, error));
    if (!tq_power_of_two(tq_scale_of(node->out[0]), &power) || power != -15)
        return tq_output_fail(node, 0, error, "has scale %.9g; %s of INT16 needs 1/32768", tq_scale_of(node->out[0]),
                              node->op->name);
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(tq_map_prepare(node, &s->map, error));
    if (tanh)
        fill_lines(&s->p, 8, UINT16_MAX * (1 << 8));
    else
        fill_lines(&s->p, 9, INT16_MAX * (1 << 10));
    find_multiplier(tq_scale_of(node->in[0]), tanh, &s->p);
    s->map.params = &s->p;
    s->p.half = s->p.right > 0 ? (int32_t)1 << (s->p.right - 1) : 0;
    bool narrow = s->p.multiplier <= INT16_MAX && s->p.right < 30;
    if (s->p.is_power && node->numerics == TQ_NUMERICS_OPTIMIZED)
        s->map.run = tanh ? fixed_tanh : fixed_logistic;
    else if (narrow)
        s->map.run = tanh ? narrow_tanhs[tq_isa()] : narrow_logistics[tq_isa()];
    else
        s->map.run = tanh ? run_tanh : run_logistic;
    s->map.cost = 700;
    return TQ_OK;
}
