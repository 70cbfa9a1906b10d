/* SPDX-License-Identifier: Apache-2.0
 *
 * Every available row of elementwise.def against its scalar row, and what stands beside the rows, without Python: for
 * emulated processors and for sanitizers.  Prints how many comparisons were made; exits 1 at the first difference.
 */
#include "kernels/arrays/arrays.h"
#include "kernels/arrays/fixed_16.h"
#include "quant/fixed_math_16.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 300
#define ROUNDS 40

static uint64_t seed = 88172645463325252u;

static uint32_t random32(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}

static double random_unit(void)
{
    return random32() / 4294967296.0;
}

/* Exactly as many bytes as the array has, so that a sanitizer sees one too many. */
struct array {
    void *data;
    size_t bytes;
};

static struct array make(tq_element type, size_t n)
{
    struct array a = {malloc(n * tq_element_size(type) + (n == 0)), n * tq_element_size(type)};
    if (!a.data)
        exit(2);
    return a;
}

static const float specials[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 1e-45f, 2147483648.0f, -1e10f};

static float random_float(float scale)
{
    uint32_t bits = random32();
    float x;
    switch (random32() % 8) {
    case 0: return specials[bits % (sizeof specials / sizeof *specials)];
    case 1: memcpy(&x, &bits, sizeof x); return x;
    case 2: return ((float)((int)(bits % 600) - 300) + 0.5f) * scale;
    case 3: return nextafterf(((float)((int)(bits % 600) - 300) + 0.5f) * scale, bits & 1 ? INFINITY : -INFINITY);
    default: return (float)((random_unit() - 0.5) * 400) * scale;
    }
}

static void fill(struct array *a, tq_element type, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++)
        switch (type) {
        case TQ_f32: ((float *)a->data)[i] = random_float(scale); break;
        case TQ_f64: ((double *)a->data)[i] = random_float(scale) * (1 + 1e-9 * random_unit()); break;
        case TQ_i32: ((int32_t *)a->data)[i] = (int32_t)random32() >> random32() % 32; break;
        default: {
            uint32_t bits = random32();
            memcpy((char *)a->data + i * tq_element_size(type), &bits, tq_element_size(type));
        }
        }
}

struct parameters {
    float scale[LONGEST];
    double multiplier[LONGEST];
    int32_t zero_point[LONGEST], input_zero_point[LONGEST];
    int32_t low, high;
    uint8_t value_mask;
    bool many, many_zero_points, made_before; /* sets of requantize, that is */
};

static int32_t between(int64_t low, int64_t high)
{
    return (int32_t)(low + (int64_t)(random_unit() * (double)(high - low + 1)));
}

static void choose(struct parameters *p, tq_element in, tq_element out)
{
    bool quantizes = tq_element_high(out) != 0, plain = random32() % 2;
    tq_element zero_type = quantizes ? out : in;
    p->many = random32() % 2;
    p->many_zero_points = p->many && random32() % 2;
    p->made_before = random32() % 2;
    p->low = tq_element_low(out) + (quantizes && random32() % 4 == 0);
    p->high = (int32_t)tq_element_high(out);
    p->value_mask = 0;
    if (random32() % 4 == 0 && (quantizes ? out == TQ_i8 : in == TQ_i8 || in == TQ_u8)) { /* of 4 bits */
        p->value_mask = 15;
        p->low = -8, p->high = 7;
    }
    for (size_t i = 0; i < LONGEST; i++) {
        p->scale[i] = (float)ldexp(0.5 + random_unit(), plain ? -4 : (int)(random32() % 250) - 125);
        p->multiplier[i] = ldexp(0.5 + (plain ? random_unit() / 2 : 0), (int)(random32() % 44) - 40);
        p->zero_point[i] =
            between(quantizes ? p->low : tq_element_low(zero_type), quantizes ? p->high : tq_element_high(zero_type));
        p->input_zero_point[i] = between(tq_element_low(in), tq_element_high(in));
        if (plain && (in == TQ_i32 || out == TQ_i32)) /* or scalar bodies do all the work */
            p->input_zero_point[i] = p->zero_point[i] = 0;
    }
}

static tq_status perform_requantize(const tq_kernel *row, const tq_array_job *job, const struct parameters *p)
{
    tq_column_f64 multiplier = {p->multiplier, p->many};
    tq_column_i32 zero = {p->zero_point, p->many_zero_points}, input_zero = {p->input_zero_point, p->many};
    tq_requantize_rule rule = (tq_requantize_rule)(row->operation - TQ_KERNEL_requantize_double);
    tq_requantize_sets sets = {0};
    tq_status status = TQ_OK;
    if (p->made_before)
        status = tq_requantize_sets_make(multiplier, input_zero, zero, job->layout.groups * job->layout.channels,
                                         row->out, rule, &sets, NULL);
    if (status == TQ_OK)
        status = tq_requantize_array(job, multiplier, input_zero, zero, rule, &sets, NULL);
    tq_requantize_sets_free(&sets);
    return status;
}

static tq_status perform(const tq_kernel *row, const tq_array_job *job, const struct parameters *p)
{
    tq_column_f32 scale = {p->scale, p->many};
    tq_column_i32 zero = {p->zero_point, p->many_zero_points};
    switch ((tq_operation)row->operation) {
    case TQ_KERNEL_quantize_away: return tq_quantize_array(job, scale, zero, p->low, p->high, TQ_QUANTIZE_AWAY, NULL);
    case TQ_KERNEL_quantize_even: return tq_quantize_array(job, scale, zero, p->low, p->high, TQ_QUANTIZE_EVEN, NULL);
    case TQ_KERNEL_dequantize: return tq_dequantize_array(job, scale, zero, NULL);
    case TQ_KERNEL_convert:
        row->row(job->in, job->out, job->layout.outer * job->layout.channels * job->layout.inner, 1, 0, NULL, 0);
        return TQ_OK;
    default: return perform_requantize(row, job, p);
    }
}

/* NaNs differ in their payloads, which no one promises. */
static bool equal(const struct array *a, const struct array *b, tq_element type, size_t n)
{
    if (type != TQ_f32)
        return memcmp(a->data, b->data, a->bytes) == 0;
    for (size_t i = 0; i < n; i++) {
        float x = ((float *)a->data)[i], y = ((float *)b->data)[i];
        if (memcmp(&x, &y, sizeof x) != 0 && !(isnan(x) && isnan(y)))
            return false;
    }
    return true;
}

static const tq_kernel *scalar_row(const tq_kernel *row)
{
    tq_kernels_force(TQ_CPU_INDEX_SCALAR);
    const tq_kernel *scalar = tq_kernel_find(row->operation, row->in, row->out);
    tq_kernels_force(-1);
    return scalar;
}

/* Numbers that become a tie between two codes, or next to it, by the parameters of their place in a row, or, by_row,
   of the row. */
static void fill_ties(const struct array *a, tq_element type, size_t n, size_t of_each, bool by_row,
                      const struct parameters *p)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = !p->many ? 0 : by_row ? i / of_each : i % of_each;
        double tie = (int)(random32() % 300) - 150 + 0.5;
        int beside = (int)(random32() % 3) - 1;
        if (type == TQ_f32) {
            float x = (float)(tie * p->scale[at]);
            ((float *)a->data)[i] = beside ? nextafterf(x, beside * INFINITY) : x;
        } else if (type == TQ_i32) {
            double x = tie / p->multiplier[at];
            ((int32_t *)a->data)[i] = fabs(x) < 2147483000 ? (int32_t)x + beside : (int32_t)random32();
        }
    }
}

static void compare_layout(const tq_kernel *row, const struct array *in, tq_layout layout, const struct parameters *p)
{
    size_t n = layout.outer * layout.channels * layout.inner;
    struct array a = make(row->out, n), b = make(row->out, n);
    uint8_t value_mask = row->operation < TQ_KERNEL_requantize_double ? p->value_mask : 0;
    tq_array_job job = {in->data, a.data, row->in, row->out, layout, 1, value_mask, NULL};
    uint64_t bytes = 0;
    if (!tq_array_scratch(&layout, &bytes) || !(job.scratch = malloc((size_t)bytes + !bytes)))
        exit(2);
    const tq_kernel *scalar = scalar_row(row); /* which ends forcing */
    tq_kernels_force(row->feature);
    tq_status status = perform(row, &job, p);
    tq_kernels_force(TQ_CPU_INDEX_SCALAR);
    job.out = b.data;
    if (status == TQ_OK)
        status = perform(scalar, &job, p);
    tq_kernels_force(-1);
    if (status != TQ_OK || !equal(&a, &b, row->out, n)) {
        printf("%s, %s: differs from scalar for %zu times %zu elements in runs of %zu, %s\n", row->name, row->isa,
               layout.outer, layout.channels, layout.inner, p->many ? "many sets" : "one set");
        exit(1);
    }
    free(job.scratch);
    free(a.data);
    free(b.data);
}

/* `outer` times n elements, with parameters an element of n, by_row: of `outer`, or one set. */
static void compare(const tq_kernel *row, size_t outer, size_t of_each, bool by_row)
{
    static struct parameters p;
    size_t n = outer * of_each;
    struct array in = make(row->in, n);
    choose(&p, row->in, row->out);
    fill(&in, row->in, n, p.scale[0]);
    if (outer > 1) {
        p.many = true;
        bool powers = random32() % 2;
        for (size_t i = 0; i < LONGEST && powers; i++) /* of which many sums are ties */
            p.multiplier[i] = ldexp(0.5, -(int)(random32() % 20));
        fill_ties(&in, row->in, n, of_each, by_row, &p);
    }
    tq_layout layout = {1, 1, 1, n};
    if (p.many)
        layout = by_row ? (tq_layout){1, 1, outer, of_each} : (tq_layout){1, outer, of_each, 1};
    compare_layout(row, &in, layout, &p);
    free(in.data);
}

/* Rows that share their parameters, and rows with a set each: kernels do several at a time, or go on from one to the
   next, so that blocks hold the end of one and the start of another. */
static size_t compare_rows(const tq_kernel *row)
{
    static const size_t lengths[] = {1, 3, 32, 64, 65, 96, 100, 128, 160, 299}, rows[] = {2, 8, 9, 19};
    size_t done = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            for (int round = 0; round < ROUNDS / 4; round++, done++)
                compare(row, rows[k], lengths[i], round % 2);
    return done;
}

/* Many elements a set: channels along rows, a row a set, and one set. */
static size_t compare_long(const tq_kernel *row)
{
    static struct parameters p;
    static const size_t each[] = {32, 24, 128, 40}; /* whole blocks, or patterns of them */
    const size_t outer = 8192 + 11, most = 128;
    if (row->in != TQ_i32 || tq_element_size(row->out) != 1 || row->operation < TQ_KERNEL_requantize_double)
        return 0;
    struct array in = make(TQ_i32, outer * most);
    choose(&p, TQ_i32, row->out);
    for (int round = 0; round < 4; round++) {
        const size_t channels = each[round], n = outer * channels;
        p.many = p.many_zero_points = true;
        for (size_t i = 0; i < channels; i++) {
            p.multiplier[i] = ldexp(0.5 + random_unit() / 2, round == 1 && i == 17 ? -14 : -(int)(random32() % 5) - 3);
            p.zero_point[i] = between(tq_element_low(row->out), tq_element_high(row->out)) / (round == 2 ? 1 : 16);
            p.input_zero_point[i] = 0;
        }
        fill(&in, TQ_i32, n, 1);
        fill_ties(&in, TQ_i32, n / 2, channels, false, &p);
        compare_layout(row, &in, (tq_layout){1, outer, channels, 1}, &p);
        compare_layout(row, &in, (tq_layout){1, 1, 5, 8192 + 77}, &p);
        p.many = p.many_zero_points = false;
        compare_layout(row, &in, (tq_layout){1, 1, 1, 20001}, &p);
    }
    free(in.data);
    return 12;
}

static void expect(const int16_t *found, int16_t wanted, int a, const char *what)
{
    if (*found == wanted)
        return;
    printf("%s of %d: %d, not %d\n", what, a, *found, wanted);
    exit(1);
}

/* kernels/arrays/fixed_16.h: all numbers, and one more, so that vectors do not fit. */
static size_t compare_fixed_16(void)
{
    static int16_t in[(1 << 16) + 1], out[(1 << 16) + 1];
    const size_t n = sizeof in / sizeof *in;
    size_t done = 0;
    for (size_t i = 0; i < n; i++)
        in[i] = tq_q16_wrap((int32_t)i);
    tq_logistic_q16(in, out, n);
    for (size_t i = 0; i < n; i++, done++)
        expect(&out[i], tq_q16_logistic(in[i]), in[i], "logistic");
    for (int k = 0; k <= 6; k++)
        for (int shift = 0; shift <= 1; shift++) {
            tq_tanh_q16(in, out, n, k, shift);
            for (size_t i = 0; i < n; i++, done++)
                expect(&out[i], tq_q16_tanh(tq_q16_shift_left(in[i], shift), k), in[i], "tanh");
        }
    return done;
}

int main(void)
{
    size_t count, done = 0;
    uint32_t features = tq_cpu_detect(getenv("TQ_DISABLE_CPU"));
    tq_kernels_choose(features);
    const tq_kernel *rows = tq_kernels(&count);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].feature == TQ_CPU_INDEX_SCALAR || !(features >> rows[i].feature & 1))
            continue;
        for (size_t n = 0; n < LONGEST; n++, done++)
            compare(&rows[i], 1, n, false);
        done += compare_rows(&rows[i]) + compare_long(&rows[i]);
        for (int k = 0; k < ROUNDS; k++, done++)
            compare(&rows[i], 1, LONGEST, false);
    }
    done += compare_fixed_16();
    printf("%zu comparisons\n", done);
    return 0;
}
