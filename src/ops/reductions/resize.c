/* SPDX-License-Identifier: Apache-2.0
 *
 * RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR over [batch, height, width, channels].
 *
 * Bilinear, float32 and uint8, in float32, with s = in / out, or (in - 1) / (out - 1) with align_corners:
 *     v = y * s, or (y + 0.5) * s - 0.5 with half_pixel_centers;  y0 = max(floor(v), 0), y1 = min(ceil(v), in - 1)
 *     a * (1 - (v - y0)) * (1 - (u - x0)) + ... + 0, or + 0.5 and truncated for uint8
 *     optimized: the four products of weights first, from left to right and then down; float32 to twice the height and
 *     width, without options: means of two, ((a + b) / 2 + (c + d) / 2) / 2 for two columns
 * Bilinear, int8 and int16, in 10-bit fixed point: s = tdiv(1024 * in + out / 2, out) or, with align_corners,
 *     tdiv(1024 * (in - 1) + (out - 1) / 2, out - 1);  v = y * s (+ s / 2 - 512);  tdiv(sum +- 2^19, 2^20)
 * Bilinear, XNNPACK's, each with s in float32: v = y * s, or f32(y * s) + f32(s / 2 - 1/2), within [0, in - 1];
 *     y0 = floor(v), y1 = min(y0 + 1, in - 1).  8 bits: weights even(2^11 (v - y0)) / 2^11, first between columns, then
 *     between rows, ties up at the end.  float32: the same with weights v - y0.
 * Nearest: min(floor((y + o) * s), in - 1), with align_corners away() in place of floor(); o = 0.5 with
 *     half_pixel_centers.
 * Where rounding of s leads past the last pixel, int8 and int16 use the last pixel; the reference reads past it.
 *
 * Source: LiteRT f6745779, tflite/kernels/internal/reference/{resize_bilinear,resize_nearest_neighbor}.h,
 * internal/optimized/resize_bilinear.h; XNNPACK 75db3c09, src/indirection.c, src/s8-ibilinear, src/f32-ibilinear.
 */
#include <math.h>
#include <string.h>

#include "base/round.h"
#include "base/sizes.h"
#include "kernels/isa.h"
#include "ops/check.h"
#include "ops/parallel.h"
#include "ops/quantized.h"
#include "ops/reductions/resize_lines.h"

/* Columns whose samples are computed at once, on the stack: a row of most pictures, which is written to its end. */
#define COLUMNS 1024

#define COST 120 /* picoseconds for an element of the output */

#define LINES 8 /* rows of the output that a thread takes at once, to share lines of resize_lines.h */

/* `count` pixels of an output row, from two rows of the input. */
typedef struct line {
    const char *top, *bottom;
    tq_sample y;
    const tq_sample *columns;
    size_t count, width, depth; /* pixels of the output and of the input's rows, channels */
} line;
typedef void (*mix_fn)(const line *l, void *out);

typedef struct scaler scaler;
struct scaler {
    bool align_corners, half_pixel;
    tq_sample_fn find;
    tq_fixed_mix fixed; /* where mix is NULL */
    mix_fn mix, twice; /* twice: for twice the height and width without options; NULL: mix */
    size_t element;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- samples ---- */

static float scale_of(const scaler *s, int64_t in, int64_t out)
{
    return s->align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

static tq_sample find_real(const void *context, int64_t at, int64_t in, int64_t out)
{
    const scaler *s = context;
    const float scale = scale_of(s, in, out);
    float v = s->half_pixel ? ((float)at + 0.5f) * scale - 0.5f : (float)at * scale;
    int64_t low = (int64_t)floorf(v), high = least((int64_t)ceilf(v), in - 1);
    low = low < 0 ? 0 : least(low, in - 1);
    tq_sample p = {(size_t)low, (size_t)(high < 0 ? 0 : high), v - (float)low, 0};
    return p;
}

static tq_sample find_fixed(const void *context, int64_t at, int64_t in, int64_t out)
{
    const scaler *s = context;
    int64_t scale = (1024 * in + out / 2) / out;
    if (s->align_corners && out > 1)
        scale = (1024 * (in - 1) + (out - 1) / 2) / (out - 1);
    int64_t v = at * scale + (s->half_pixel ? scale / 2 - 512 : 0);
    int64_t low = v < 0 ? 0 : least(v / 1024, in - 1), high = least((v + 1023) / 1024, in - 1);
    /* where both are one pixel, any weights make the same sum: a weight of 0 cannot overflow */
    tq_sample p = {(size_t)low, (size_t)high, 0, low == high ? 0 : (int32_t)(v - 1024 * low)};
    return p;
}

static tq_sample find_even(const void *context, int64_t at, int64_t in, int64_t out)
{
    const scaler *s = context;
    const float scale = scale_of(s, in, out);
    float v = (float)at * scale, last = (float)(in - 1);
    if (s->half_pixel)
        v += 0.5f * scale - 0.5f;
    v = v < 0 ? 0 : v > last ? last : v;
    const int64_t low = least((int64_t)v, in - 1); /* `last` may have been rounded up */
    const float real = v - (float)low;
    tq_sample p = {(size_t)low, (size_t)least(low + 1, in - 1), real, (int32_t)rintf(real * 2048)};
    return p;
}

static tq_sample find_nearest(const void *context, int64_t at, int64_t in, int64_t out)
{
    const scaler *s = context;
    const float scale = scale_of(s, in, out);
    float v = ((float)at + (s->half_pixel ? 0.5f : 0.0f)) * scale;
    int64_t index = least((int64_t)(s->align_corners ? tq_round_f32(v) : floorf(v)), in - 1);
    tq_sample p = {(size_t)index, (size_t)index, 0, 0};
    return p;
}

/* ---- mixing n channels of four pixels: (y0, x0), (y1, x0), (y0, x1), (y1, x1) ---- */

#define CORNERS(type)                                                                                                  \
    const type *restrict a = corners[0], *restrict b = corners[1], *restrict c = corners[2], *restrict d = corners[3]; \
    type *restrict y_out = out

#define REAL_SUM                                                                           \
    ((float)a[i] * (1 - y->real) * (1 - x->real) + (float)b[i] * y->real * (1 - x->real) + \
     (float)c[i] * (1 - y->real) * x->real + (float)d[i] * y->real * x->real)

TQ_BODY void mix_f32(const void *const corners[4], const tq_sample *y, const tq_sample *x, void *out, size_t n)
{
    CORNERS(float);
    for (size_t i = 0; i < n; i++)
        y_out[i] = REAL_SUM + 0.0f;
}

/* The same of a (1 - y) and b y for a and b, c (1 - y) and d y for c and d: see mix_u8_line. */
TQ_BODY void mix_products(const void *const corners[4], const tq_sample *y, const tq_sample *x, void *out, size_t n)
{
    CORNERS(float);
    (void)y;
    for (size_t i = 0; i < n; i++)
        y_out[i] = a[i] * (1 - x->real) + b[i] * (1 - x->real) + c[i] * x->real + d[i] * x->real + 0.5f;
}

TQ_BODY void mix_u8(const void *const corners[4], const tq_sample *y, const tq_sample *x, void *out, size_t n)
{
    CORNERS(uint8_t);
    for (size_t i = 0; i < n; i++) {
        float sum = REAL_SUM + 0.5f;
        sum = sum < 0 ? 0 : sum;
        y_out[i] = (uint8_t)(int32_t)(sum > 255 ? 255 : sum);
    }
}

/* The optimized kernels': the products of the weights first. */
#define WEIGHTS                                                                                    \
    const float upper_left = (1 - y->real) * (1 - x->real), upper_right = (1 - y->real) * x->real; \
    const float lower_left = y->real * (1 - x->real), lower_right = y->real * x->real
#define WEIGHED_SUM \
    ((float)a[i] * upper_left + (float)c[i] * upper_right + (float)b[i] * lower_left + (float)d[i] * lower_right)

TQ_BODY void weigh_f32(const void *const corners[4], const tq_sample *y, const tq_sample *x, void *out, size_t n)
{
    CORNERS(float);
    WEIGHTS;
    for (size_t i = 0; i < n; i++)
        y_out[i] = WEIGHED_SUM + 0.0f;
}

/* The runtime has another formula for eight times the size: both are exact. */
TQ_BODY void weigh_u8(const void *const corners[4], const tq_sample *y, const tq_sample *x, void *out, size_t n)
{
    CORNERS(uint8_t);
    WEIGHTS;
    for (size_t i = 0; i < n; i++) {
        float sum = WEIGHED_SUM + 0.5f;
        sum = sum < 0 ? 0 : sum;
        y_out[i] = (uint8_t)(int32_t)(sum > 255 ? 255 : sum);
    }
}

/* Twice the size: each sample is a pixel or the mean of two or four. */
TQ_BODY void halve_f32(const void *const corners[4], const tq_sample *y, const tq_sample *x, void *out, size_t n)
{
    CORNERS(float);
    if (x->real == 0 && y->real == 0) {
        memcpy(y_out, a, n * sizeof *a);
        return;
    }
    if (x->real != 0 && y->real != 0) {
        for (size_t i = 0; i < n; i++)
            y_out[i] = ((a[i] + b[i]) / 2 + (c[i] + d[i]) / 2) / 2;
        return;
    }
    const float *restrict other = y->real != 0 ? b : c;
    for (size_t i = 0; i < n; i++)
        y_out[i] = (a[i] + other[i]) / 2;
}

/* Weights lie in [0, 1024]. */
#define FIXED_SUM(wide)                                                                                   \
    ((wide)a[i] * ((1024 - y->fixed) * (1024 - x->fixed)) + (wide)b[i] * (y->fixed * (1024 - x->fixed)) + \
     (wide)c[i] * ((1024 - y->fixed) * x->fixed) + (wide)d[i] * (y->fixed * x->fixed))

TQ_BODY void mix_i16(const void *const corners[4], const tq_sample *y, const tq_sample *x, void *out, size_t n)
{
    CORNERS(int16_t);
    for (size_t i = 0; i < n; i++) {
        int64_t sum = FIXED_SUM(int64_t);
        y_out[i] = (int16_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
    }
}

/* The same with ties up, as with TFLITE_SINGLE_ROUNDING. */
#define MIX_UP(name, type, wide)                                                                                 \
    TQ_BODY void name(const void *const corners[4], const tq_sample *y, const tq_sample *x, void *out, size_t n) \
    {                                                                                                            \
        CORNERS(type);                                                                                           \
        for (size_t i = 0; i < n; i++)                                                                           \
            y_out[i] = (type)((FIXED_SUM(wide) + (1 << 19)) >> 20);                                              \
    }
MIX_UP(up_i16, int16_t, int64_t)

/* XNNPACK's: a upper left, b lower left, c upper right, d lower right. */
TQ_BODY void even_f32(const void *const corners[4], const tq_sample *y, const tq_sample *x, void *out, size_t n)
{
    CORNERS(float);
    for (size_t i = 0; i < n; i++) {
        float above = a[i] + (c[i] - a[i]) * x->real, below = b[i] + (d[i] - b[i]) * x->real;
        y_out[i] = above + (below - above) * y->real;
    }
}

/* Compilers vectorize a constant number of channels whose results cannot overlap the input.  Of these a vector is
   stored: gcc's memcpy would read them back by eight bytes. */
#define MIX_SOME(name, type, at, some)                                                                             \
    do {                                                                                                           \
        typedef type vector __attribute__((vector_size((some) * sizeof(type)), aligned(sizeof(type)), may_alias)); \
        const void *const part[4] = {(const type *)corners[0] + (at), (const type *)corners[1] + (at),             \
                                     (const type *)corners[2] + (at), (const type *)corners[3] + (at)};            \
        union {                                                                                                    \
            type each[some];                                                                                       \
            vector all;                                                                                            \
        } made;                                                                                                    \
        name(part, &own.y, &right, made.each, some);                                                               \
        *(vector *)(void *)(y + (at)) = made.all;                                                                  \
    } while (0)

/* Channels in blocks, of which the last may overlap the one before.  A block of FEW may reach into the pixels to the
   right, whose own results then overwrite its last. */
enum { FEW = 4 };
#define MIX(isa, target, name, type, block)                                                          \
    target static void name##_##isa(const line *l, void *out)                                        \
    {                                                                                                \
        const line own = *l; /* stores cannot change it */                                           \
        const size_t n = own.depth;                                                                  \
        type *y = out;                                                                               \
        for (size_t x = 0; x < own.count; x++, y += n) {                                             \
            const tq_sample right = own.columns[x];                                                  \
            const type *const top = (const type *)own.top, *const bottom = (const type *)own.bottom; \
            const size_t low = right.low * n, high = right.high * n;                                 \
            const void *const corners[4] = {top + low, bottom + low, top + high, bottom + high};     \
            if (n >= block)                                                                          \
                for (size_t i = 0; i < n; i += block)                                                \
                    MIX_SOME(name, type, tq_min_size(i, n - block), block);                          \
            else if (n >= FEW)                                                                       \
                for (size_t i = 0; i < n; i += FEW)                                                  \
                    MIX_SOME(name, type, tq_min_size(i, n - FEW), FEW);                              \
            else if (high + FEW <= own.width * n && (own.count - x) * n >= FEW)                      \
                MIX_SOME(name, type, 0, FEW);                                                        \
            else                                                                                     \
                name(corners, &own.y, &right, y, n);                                                 \
        }                                                                                            \
    }

/* UINT8 by way of floats: the pixels' products with the weights of the rows, which neighbouring columns share, then the
   sums of their products with those of the columns, then bytes. */
enum { PRODUCTS = 2048, TOGETHER = 128 /* columns */ };

/* At most TOGETHER columns, which read at most PRODUCTS channels of neighbouring pixels, and write so many. */
TQ_BODY void mix_u8_part(const line *l, const tq_sample *from, size_t count, uint8_t *restrict out, mix_fn mix)
{
    float above[PRODUCTS], below[PRODUCTS], sums[PRODUCTS];
    tq_sample columns[TOGETHER];
    const size_t n = l->depth, first = from[0].low, pixels = from[count - 1].high + 1 - first;
    const uint8_t *top = (const uint8_t *)l->top + first * n, *bottom = (const uint8_t *)l->bottom + first * n;
    const float upper = 1 - l->y.real, lower = l->y.real;
    for (size_t i = 0; i < pixels * n; i++)
        above[i] = (float)top[i] * upper;
    for (size_t i = 0; i < pixels * n; i++)
        below[i] = (float)bottom[i] * lower;
    for (size_t k = 0; k < count; k++)
        columns[k] = (tq_sample){from[k].low - first, from[k].high - first, from[k].real, 0};
    const line products = {(const char *)above, (const char *)below, l->y, columns, count, pixels, n};
    mix(&products, sums);
    for (size_t i = 0; i < count * n; i++) {
        const float sum = sums[i] < 0 ? 0 : sums[i], least = sum > 255 ? 255 : sum;
        out[i] = (uint8_t)(int32_t)least;
    }
}

TQ_BODY void mix_u8_line(const line *l, uint8_t *out, mix_fn mix)
{
    const size_t n = l->depth, most = PRODUCTS / n;
    for (size_t x = 0, count; x < l->count; x += count, out += count * n) {
        const tq_sample *from = l->columns + x;
        count = tq_min_size(tq_min_size(l->count - x, TOGETHER), most);
        while (count > 1 && from[count - 1].high + 1 - from[0].low > most)
            count--;
        if (count > 0 && from[count - 1].high + 1 - from[0].low <= most) {
            mix_u8_part(l, from, count, out, mix);
            continue;
        }
        const uint8_t *top = (const uint8_t *)l->top, *bottom = (const uint8_t *)l->bottom;
        const void *const corners[4] = {top + from->low * n, bottom + from->low * n, top + from->high * n,
                                        bottom + from->high * n};
        mix_u8(corners, &l->y, from, out, n);
        count = 1;
    }
}

#define MIX_U8(isa, target)                                   \
    target static void mix_u8_##isa(const line *l, void *out) \
    {                                                         \
        mix_u8_line(l, out, mix_products_##isa);              \
    }

#define MIXES(isa, target)                   \
    MIX(isa, target, mix_f32, float, 8)      \
    MIX(isa, target, mix_products, float, 8) \
    MIX_U8(isa, target)                      \
    MIX(isa, target, mix_i16, int16_t, 16)   \
    MIX(isa, target, weigh_f32, float, 8)    \
    MIX(isa, target, weigh_u8, uint8_t, 16)  \
    MIX(isa, target, up_i16, int16_t, 16)    \
    MIX(isa, target, halve_f32, float, 8)    \
    MIX(isa, target, even_f32, float, 8)
TQ_EVERY_ISA(MIXES)

static const struct mix_row {
    int32_t type;
    tq_sample_fn find;
    mix_fn mix[TQ_ISAS], twice[TQ_ISAS];
    tq_fixed_mix fixed; /* of 8 bits: without mix */
} mixes[] =
    {
        {TQ_TensorType_FLOAT32, find_real, TQ_ISA_FUNCTIONS(mix_f32), {0}, {0}},
        {TQ_TensorType_UINT8, find_real, TQ_ISA_FUNCTIONS(mix_u8), {0}, {0}},
        {TQ_TensorType_INT8, find_fixed, {0}, {0}, {128, 10, 1}},
        {TQ_TensorType_INT16, find_fixed, TQ_ISA_FUNCTIONS(mix_i16), {0}, {0}},
    },
  single_mixes[] =
      {
          {TQ_TensorType_INT8, find_fixed, {0}, {0}, {128, 10, 0}},
          {TQ_TensorType_INT16, find_fixed, TQ_ISA_FUNCTIONS(up_i16), {0}, {0}},
      },
  optimized_mixes[] =
      {
          {TQ_TensorType_FLOAT32, find_real, TQ_ISA_FUNCTIONS(weigh_f32), TQ_ISA_FUNCTIONS(halve_f32), {0}},
          {TQ_TensorType_UINT8, find_real, TQ_ISA_FUNCTIONS(weigh_u8), {0}, {0}},
      },
  xnnpack_mixes[] = {
      {TQ_TensorType_FLOAT32, find_even, TQ_ISA_FUNCTIONS(even_f32), {0}, {0}},
      {TQ_TensorType_UINT8, find_even, {0}, {0}, {0, 11, 0}},
      {TQ_TensorType_INT8, find_even, {0}, {0}, {128, 11, 0}},
  };

static const struct mix_row *find_mix(const struct mix_row *from, size_t count, int32_t type)
{
    for (size_t i = 0; i < count; i++)
        if (from[i].type == type)
            return &from[i];
    return NULL;
}

static const struct mix_row *mix_of(const tq_node *node)
{
    const int32_t type = node->in[0]->type;
    const struct mix_row *row = NULL;
    if (node->numerics == TQ_NUMERICS_XNNPACK)
        row = find_mix(xnnpack_mixes, sizeof xnnpack_mixes / sizeof *xnnpack_mixes, type);
    else if (node->numerics == TQ_NUMERICS_OPTIMIZED)
        row = find_mix(optimized_mixes, sizeof optimized_mixes / sizeof *optimized_mixes, type);
    else if (tq_rounds_once(node))
        row = find_mix(single_mixes, sizeof single_mixes / sizeof *single_mixes, type);
    return row ? row : find_mix(mixes, sizeof mixes / sizeof *mixes, type);
}

/* ---- all pixels ---- */

typedef struct job {
    const scaler *s;
    mix_fn mix;
    const tq_tensor *in, *out;
} job;

static void scale_row(const job *j, size_t row, const tq_sample *columns, size_t begin, size_t end)
{
    const int32_t *in = j->in->shape.dims, *out = j->out->shape.dims;
    size_t depth = (size_t)in[3], pixel = depth * j->s->element, row_bytes = (size_t)in[2] * pixel;
    size_t batch = row / (size_t)out[1];
    tq_sample y = j->s->find(j->s, (int64_t)(row % (size_t)out[1]), in[1], out[1]);
    const char *image = (const char *)j->in->data + batch * (size_t)in[1] * row_bytes;
    const char *top = image + y.low * row_bytes, *bottom = image + y.high * row_bytes;
    char *to = (char *)j->out->data + (row * (size_t)out[2] + begin) * pixel;
    const line whole = {top, bottom, y, columns, end - begin, (size_t)in[2], depth};
    if (j->mix)
        j->mix(&whole, to);
    else
        for (size_t x = begin; x < end; x++, to += pixel)
            memcpy(to, top + columns[x - begin].low * pixel, pixel);
}

/* Whether two neighbouring rows of the output are copies of one row of the input. */
static bool same_source(const job *j, size_t before, size_t row)
{
    const int32_t *in = j->in->shape.dims, *out = j->out->shape.dims;
    size_t height = (size_t)out[1];
    return !j->mix && before / height == row / height &&
           j->s->find(j->s, (int64_t)(before % height), in[1], out[1]).low ==
               j->s->find(j->s, (int64_t)(row % height), in[1], out[1]).low;
}

static void repeat_row(const job *j, size_t row, size_t begin, size_t end)
{
    const int32_t *out = j->out->shape.dims;
    size_t pixel = (size_t)out[3] * j->s->element, line = (size_t)out[2] * pixel;
    char *to = (char *)j->out->data + row * line + begin * pixel;
    memcpy(to, to - line, (end - begin) * pixel);
}

static void scale_rows(void *context, size_t begin, size_t end)
{
    const job *j = context;
    size_t width = (size_t)j->out->shape.dims[2];
    tq_sample columns[COLUMNS];
    for (size_t x = 0; x < width; x += COLUMNS) {
        size_t stop = width - x < COLUMNS ? width : x + COLUMNS;
        for (size_t k = x; k < stop; k++)
            columns[k - x] = j->s->find(j->s, (int64_t)k, j->in->shape.dims[2], (int64_t)width);
        for (size_t row = begin; row < end && !tq_stop_after((stop - x) * (size_t)j->out->shape.dims[3]); row++)
            if (row == begin || !same_source(j, row - 1, row))
                scale_row(j, row, columns, x, stop);
            else
                repeat_row(j, row, x, stop);
    }
}

static void scale_lines(void *context, size_t begin, size_t end)
{
    tq_resize_lines_run(context, begin, end);
}

static bool is_doubled(const tq_node *node, const scaler *s)
{
    const int32_t *in = node->in[0]->shape.dims, *out = node->out[0]->shape.dims;
    return s->twice && !s->align_corners && !s->half_pixel && out[1] / 2.0 == in[1] && out[2] / 2.0 == in[2];
}

/* Whether all samples of a dimension are multiples of 1/128. */
static bool is_fine(const scaler *s, int64_t in, int64_t out)
{
    const float steps = 64 * scale_of(s, in, out);
    return steps == floorf(steps) && in <= 1 << 16;
}

/* With multiples of 1/128, as of twice and four times the size, float32 holds all sums of UINT8 exactly: the rules in
   float32 have the results of XNNPACK's in fixed point, with its samples. */
static scaler as_fixed(const tq_node *node)
{
    scaler s = *(const scaler *)node->state;
    const int32_t *in = node->in[0]->shape.dims, *out = node->out[0]->shape.dims;
    if (s.find == find_real && node->in[0]->type == TQ_TensorType_UINT8 && is_fine(&s, in[1], out[1]) &&
        is_fine(&s, in[2], out[2])) {
        s.find = find_even;
        s.fixed = (tq_fixed_mix){0, 11, 0};
    }
    return s;
}

static tq_status eval_resize(tq_node *node, tq_error *error)
{
    (void)error;
    const scaler own = as_fixed(node), *s = &own;
    job j = {s, is_doubled(node, s) ? s->twice : s->mix, node->in[0], node->out[0]};
    const int32_t *out = node->out[0]->shape.dims;
    const size_t row = (size_t)out[2] * (size_t)out[3];
    const size_t rows = (size_t)out[0] * (size_t)out[1];
    if (row > 0 && s->fixed.bits) {
        const int32_t *in = node->in[0]->shape.dims;
        tq_resize_lines lines = {s->fixed,
                                 s->find,
                                 s,
                                 node->in[0]->data,
                                 node->out[0]->data,
                                 (size_t)in[1],
                                 (size_t)in[2],
                                 (size_t)out[1],
                                 (size_t)out[2],
                                 (size_t)out[3]};
        tq_parallel_work(rows, LINES, row * COST, node->threads, scale_lines, &lines);
    } else if (row > 0)
        tq_parallel_work(rows, 1, row * COST, node->threads, scale_rows, &j);
    return TQ_OK;
}

/* ---- preparing ---- */

static tq_status resize_shape(tq_node *node, tq_error *error)
{
    tq_shape shape = node->in[0]->shape;
    for (int d = 1; d <= 2; d++) {
        int64_t size = tq_integer_at(node->in[1], (size_t)d - 1);
        if (size < 1)
            return tq_input_fail(node, 1, error, "has %lld; it needs at least 1", (long long)size);
        if (shape.dims[d] == 0)
            return tq_input_fail(node, 0, error, "has no pixels to resize");
        TQ_TRY(tq_dim_of(node, size, &shape.dims[d], error));
    }
    return tq_output_shape(node, 0, &shape, error);
}

static tq_status prepare_resize(tq_node *node, scaler s, tq_error *error)
{
    scaler *state = NULL;
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_rank(node, 0, 4, 4, error));
    TQ_TRY(tq_check_list(node, 1, 2, error));
    TQ_TRY(tq_node_state(node, sizeof *state, &state, error));
    s.element = tq_element_bytes(node->in[0]->type);
    *state = s;
    node->eval = eval_resize;
    return tq_shape_from_values(node, 1u << 1, resize_shape, error);
}

tq_status tq_prepare_resize_bilinear(tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    scaler s = {.align_corners = tq_get_int(options, TQ_ResizeBilinearOptions_align_corners) != 0,
                .half_pixel = tq_get_int(options, TQ_ResizeBilinearOptions_half_pixel_centers) != 0};
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(UINT8) | TQ_T(INT8) | TQ_T(INT16), error));
    if (s.align_corners && s.half_pixel)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has both align_corners and half_pixel_centers");
    const struct mix_row *row = mix_of(node);
    s.find = row->find;
    s.fixed = row->fixed;
    s.mix = row->mix[tq_isa()];
    s.twice = row->twice[tq_isa()];
    return prepare_resize(node, s, error);
}

tq_status tq_prepare_resize_nearest_neighbor(tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    scaler s = {.align_corners = tq_get_int(options, TQ_ResizeNearestNeighborOptions_align_corners) != 0,
                .half_pixel = tq_get_int(options, TQ_ResizeNearestNeighborOptions_half_pixel_centers) != 0,
                .find = find_nearest};
    if (tq_element_bytes(node->in[0]->type) == 0)
        return tq_input_fail(node, 0, error, "is %s, which is not resized", tq_type_name(node->in[0]->type));
    return prepare_resize(node, s, error);
}
