/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/products/product.h"

#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/products/groups.h"
#include "ops/products/plain_product.h"
#include "ops/quantized.h"
#include "ops/scratch.h"

typedef struct product {
    tq_product_plan plan;
    tq_gemm gemm;           /* of each group */
    size_t merged;          /* groups of the file in one of `plan` */
    size_t images;          /* runs of the gemm, each of one image, or of all */
    tq_depthwise depthwise; /* where by_channel */
    tq_winograd winograd;   /* where it has a body: in place of the gemm, if the weights allow it */
    tq_gemm_store store;
    bool quantized;         /* the output is quantized: the store has multipliers of columns */
    tq_gemm *packed;        /* [groups], for weights that are not constant */
    bool constant;          /* weights and bias are prepacked */
    uint64_t columns_at, packed_at; /* offsets; packed_at of constant weights: in node->prepacked, else in scratch */
    uint64_t scratch_at;
} product;

/* The front of node->prepacked; columns and weights follow. */
typedef struct prepacked {
    tq_gemm_store store;
    tq_depthwise depthwise;
    tq_winograd winograd;
    tq_gemm packed[]; /* [groups] */
} prepacked;

/* ---- checks ---- */

static const tq_tensor *bias_of(const tq_node *node)
{
    return node->in_count > 2 ? node->in[2] : NULL;
}

static tq_status check_bias(const tq_node *node, size_t channels, tq_error *error)
{
    const tq_tensor *bias = bias_of(node);
    if (!bias)
        return TQ_OK;
    int32_t type = node->in[0]->type;
    TQ_TRY(tq_check_input(node, 2,
                          type == TQ_TensorType_FLOAT32 ? TQ_T(FLOAT32)
                          : type == TQ_TensorType_INT16 ? TQ_T(INT32) | TQ_T(INT64)
                                                        : TQ_T(INT32),
                          error));
    if (tq_tensor_count(bias) != channels)
        return tq_input_fail(node, 2, error, "has %zu elements; the weights make %zu channels", tq_tensor_count(bias),
                             channels);
    return TQ_OK;
}

/* Whether all scales are in [+0, infinity]; *greatest: the greatest finite scale.  Compilers vectorize the loop: the
   bits of non-negative floats, as integers, have the floats' order. */
static bool scales_are_valid(const tq_affine *q, float *greatest)
{
    const int32_t infinite = 0x7F800000;
    int32_t most = 0, others = 0;
    for (uint32_t c = 0; c < q->count; c++) {
        int32_t bits;
        memcpy(&bits, &q->scale[c], sizeof bits);
        others |= (bits < 0) | (bits > infinite);
        bits = bits < infinite ? bits : 0;
        most = bits > most ? bits : most;
    }
    memcpy(greatest, &most, sizeof most);
    return !others;
}

/* One scale, or for signed weights one for each channel; none negative.  Converters write the scale 0 for a channel of
   zeros, and an infinite scale beside an integer input that is always 0. */
static tq_status check_weight_scales(const tq_node *node, size_t channels, int axis, tq_error *error)
{
    const tq_affine *q = &node->in[1]->quantization;
    if (q->count == 0)
        return tq_input_fail(node, 1, error, "has no scale; it needs one");
    if (q->count > 1 && (node->in[1]->type == TQ_TensorType_UINT8 || q->axis != axis || q->count != channels))
        return tq_input_fail(node, 1, error,
                             "has %u scales along dimension %d; it needs one, or (not UINT8) %zu along dimension %d",
                             q->count, q->axis, channels, axis);
    float greatest;
    if (!scales_are_valid(q, &greatest))
        for (uint32_t c = 0; c < q->count; c++)
            if (!(q->scale[c] >= 0))
                return tq_input_fail(node, 1, error, "has the scale %.9g for channel %u; it needs to be 0 or more",
                                     (double)q->scale[c], c);
    return tq_check_input_scale(node, 1, error);
}

tq_status tq_check_product(const tq_node *node, size_t channels, int axis, unsigned int16_weights, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16), error));
    int32_t type = node->in[0]->type;
    const bool widens = node->row.code == TQ_BuiltinOperator_FULLY_CONNECTED && type == TQ_TensorType_UINT8 &&
                        node->out[0] && node->out[0]->type == TQ_TensorType_INT16;
    if (!widens)
        TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_input(node, 1,
                          type == TQ_TensorType_FLOAT32 ? TQ_T(FLOAT32)
                          : type == TQ_TensorType_UINT8 ? TQ_T(UINT8)
                          : type == TQ_TensorType_INT16 ? int16_weights
                                                        : TQ_SIGNED_UP_TO_8_BITS,
                          error));
    TQ_TRY(check_bias(node, channels, error));
    if (type == TQ_TensorType_FLOAT32)
        return TQ_OK;
    TQ_TRY(tq_check_quantized_input(node, 0, error));
    TQ_TRY(tq_check_output_scale(node, 0, error));
    TQ_TRY(check_weight_scales(node, channels, axis, error));
    if (type == TQ_TensorType_INT16) {
        if (tq_zero_point_of(node->in[0]) != 0)
            return tq_input_fail(node, 0, error, "has the zero point %d; INT16 needs 0", tq_zero_point_of(node->in[0]));
    }
    if (node->out[0]->type == TQ_TensorType_INT16 && tq_zero_point_of(node->out[0]) != 0)
        return tq_output_fail(node, 0, error, "has the zero point %d; INT16 needs 0", tq_zero_point_of(node->out[0]));
    return TQ_OK;
}

tq_status tq_product_is_wide(const tq_node *node, int64_t quantized_bias_type, bool *wide, tq_error *error)
{
    const tq_tensor *bias = bias_of(node);
    *wide = false;
    if (node->in[0]->type != TQ_TensorType_INT16)
        return TQ_OK;
    /* FLOAT32 (0) is the option's default. */
    if (quantized_bias_type != TQ_TensorType_FLOAT32) {
        if (quantized_bias_type != TQ_TensorType_INT32 && quantized_bias_type != TQ_TensorType_INT64)
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "quantized_bias_type is %s; it needs to be INT32 or INT64",
                              tq_type_name(quantized_bias_type));
        if (bias && bias->type != quantized_bias_type)
            return tq_input_fail(node, 2, error, "has type %s; quantized_bias_type is %s", tq_type_name(bias->type),
                                 tq_type_name(quantized_bias_type));
        *wide = quantized_bias_type == TQ_TensorType_INT64;
    } else {
        *wide = !bias || bias->type == TQ_TensorType_INT64;
    }
    return TQ_OK;
}

/* ---- the shape of FULLY_CONNECTED ---- */

tq_status tq_fully_connected_fit(tq_node *node, size_t *rows, tq_error *error)
{
    const tq_shape *x = &node->in[0]->shape, *w = &node->in[1]->shape;
    const size_t cols = (size_t)w->dims[1];
    const size_t count = tq_shape_size(x);
    const bool keep_dims = tq_get_int(&node->options.table, TQ_FullyConnectedOptions_keep_num_dims) != 0;
    if ((keep_dims || cols == 0) && (x->rank == 0 || x->dims[x->rank - 1] != w->dims[1]))
        return tq_input_fail(node, 0, error, "must have a last dimension of %d, the columns of the weights",
                             w->dims[1]);
    if (cols && count % cols)
        return tq_input_fail(node, 0, error, "has %zu elements; rows of %zu are needed", count, cols);
    *rows = cols ? count / cols : tq_shape_span(x, 0, x->rank - 1);
    if (*rows > INT32_MAX)
        return tq_input_fail(node, 0, error, "has %zu rows; there may be 2^31 - 1", *rows);
    tq_shape out = {2, {(int32_t)*rows, w->dims[0]}};
    if (keep_dims) {
        out = *x;
        out.dims[out.rank - 1] = w->dims[0];
    }
    return tq_output_shape(node, 0, &out, error);
}

uint8_t tq_weights_flip(const tq_node *node)
{
    enum { MIDDLE = 8 };
    const tq_tensor *w = node->in[1];
    return node->numerics == TQ_NUMERICS_XNNPACK && w->type == TQ_TensorType_INT4 && w->quantization.count > 1 &&
                   w->quantization.zero_point[0] == MIDDLE
               ? (uint8_t)-MIDDLE
               : 0;
}

/* ---- prepare ---- */

static tq_element element_of(const tq_tensor *tensor)
{
    switch (tensor->type) {
    case TQ_TensorType_FLOAT32: return TQ_f32;
    case TQ_TensorType_UINT8: return TQ_u8;
    case TQ_TensorType_INT16: return TQ_i16;
    default: return TQ_i8; /* INT4 and INT2 take a byte each */
    }
}

static double real_at(const void *node, size_t channel)
{
    const product *p = ((const tq_node *)node)->state;
    return tq_product_multiplier(node, &p->plan, channel);
}

static int32_t zero_point_of(const tq_tensor *tensor, const tq_product_plan *plan)
{
    return plan->wraps_zero_points ? tq_zero_point_cut(tensor) : tq_zero_point_of(tensor);
}

static void make_store(tq_node *node, product *p)
{
    const tq_product_plan *plan = &p->plan;
    tq_gemm_store *s = &p->store;
    s->out = element_of(node->out[0]);
    if (s->out == TQ_f32) {
        tq_activation_range_f32(node, plan->activation, &s->floor, &s->ceiling);
        return;
    }
    s->rule = node->numerics == TQ_NUMERICS_XNNPACK ? TQ_REQUANTIZE_FLOAT32_EVEN : plan->rule;
    s->remainder = plan->double_channels;
    s->zero_point = zero_point_of(node->out[0], plan);
    (plan->wraps_zero_points ? tq_activation_range_cut : tq_activation_range)(node, plan->activation, &s->low,
                                                                              &s->high);
    p->quantized = true;
}

static tq_gemm_weights weights_of(const tq_node *node, const tq_product_plan *plan, size_t group)
{
    const tq_tensor *weights = node->in[1], *bias = bias_of(node);
    const size_t each = plan->channels / plan->groups, first = group * each;
    const bool is_float = weights->type == TQ_TensorType_FLOAT32;
    tq_gemm_weights w = {
        .type = element_of(weights), .channel_stride = plan->channel_stride, .k_stride = plan->k_stride};
    w.tap_rows = plan->scan.columns_first ? (size_t)plan->scan.filter_h : 0;
    w.data = (const char *)weights->data + first * plan->channel_stride * (is_float ? sizeof(float) : 1);
    if (!is_float) {
        w.zero_point = plan->ignores_zero_point ? 0 : zero_point_of(weights, plan);
        w.row_zero_point = zero_point_of(node->in[0], plan);
        w.flip = tq_weights_flip(node);
    }
    if (bias) {
        w.bias_type = is_float ? TQ_f32 : bias->type == TQ_TensorType_INT64 ? TQ_GEMM_BIAS_I64 : TQ_i32;
        w.bias = (const char *)bias->data + first * (bias->type == TQ_TensorType_INT64 ? 8 : 4);
    }
    return w;
}

static uint64_t packed_bytes(const product *p)
{
    const uint64_t least = p->winograd.body ? p->winograd.packed_bytes : 0;
    const uint64_t bytes = p->gemm.packed_bytes > least ? p->gemm.packed_bytes : least;
    return p->plan.by_channel ? p->depthwise.packed_bytes : (bytes + 63) / 64 * 64;
}

/* Merged groups' weights, as those of one. */
static void spread(const product *p, tq_gemm_weights *w, uint8_t *to)
{
    const tq_product_plan *plan = &p->plan;
    const tq_merged_shape shape = {p->merged, plan->channels / plan->groups, plan->taps, plan->depth / p->merged};
    tq_spread_groups(&shape, w, to);
}

/* Prepacks weights in `memory`; sets packed[groups], or *depthwise. */
static void pack(const tq_node *node, const product *p, tq_gemm *packed, tq_depthwise *depthwise, char *memory)
{
    for (size_t g = 0; g < p->plan.groups; g++) {
        tq_gemm_weights weights = weights_of(node, &p->plan, g);
        if (p->plan.by_channel) {
            *depthwise = p->depthwise;
            tq_depthwise_pack(depthwise, &weights, memory);
        } else {
            if (p->merged > 1)
                spread(p, &weights, (uint8_t *)memory + p->plan.groups * packed_bytes(p));
            packed[g] = p->gemm;
            tq_gemm_pack(&packed[g], &weights, memory + g * packed_bytes(p));
        }
    }
}

static void prepack(tq_node *node)
{
    const product *p = node->state;
    prepacked *front = node->prepacked;
    front->store = p->store;
    if (p->quantized)
        tq_gemm_store_make(&front->store, p->plan.channels, real_at, node, (char *)node->prepacked + p->columns_at);
    char *memory = (char *)node->prepacked + p->packed_at;
    front->winograd = p->winograd;
    if (p->winograd.body) {
        const tq_gemm_weights weights = weights_of(node, &p->plan, 0);
        if (tq_winograd_pack(&front->winograd, &weights, memory))
            return;
        front->winograd.body = NULL;
    }
    if (p->constant)
        pack(node, p, front->packed, &front->depthwise, memory);
}

static tq_status request_prepack(tq_node *node, const product *p, uint64_t bytes, tq_error *error)
{
    static const tq_scan no_scan;
    const tq_product_plan *plan = &p->plan;
    const tq_scan *scan = plan->by_channel ? &plan->scan : &no_scan; /* weights may be packed for it */
    const int64_t key[] = {(intptr_t)(plan->by_channel   ? (const void *)p->depthwise.kernel
                                      : p->winograd.body ? (const void *)p->winograd.body
                                                         : (const void *)p->gemm.kernel),
                           (int64_t)plan->channels,
                           (int64_t)plan->groups,
                           (int64_t)plan->taps,
                           (int64_t)(plan->by_channel ? plan->depth : p->gemm.length),
                           (int64_t)p->gemm.image_bytes + p->gemm.image,
                           (int64_t)plan->multiplier,
                           (int64_t)plan->channel_stride,
                           (int64_t)plan->k_stride,
                           plan->scan.columns_first,
                           plan->scan.filter_h,
                           plan->rule,
                           (int64_t)plan->double_channels,
                           plan->wide,
                           plan->product_in_f32 + 2 * plan->ignores_zero_point + 4 * plan->wraps_zero_points +
                               8 * tq_weights_flip(node),
                           scan->in_h,
                           scan->in_w,
                           scan->out_h,
                           scan->out_w,
                           scan->stride_h,
                           scan->stride_w,
                           scan->dilation_h,
                           scan->dilation_w,
                           scan->pad_h,
                           scan->pad_w};
    _Static_assert(sizeof key / sizeof *key <= TQ_PREPACK_KEY, "a longer key would be cut");
    return tq_node_prepack(node, bytes, prepack, key, (int)(sizeof key / sizeof *key), error);
}

/* How many small groups become one.  1: floats, where 0 times infinity is NaN, and weights with a zero point. */
static size_t count_merged(const tq_node *node, const product *p)
{
    const tq_product_plan *plan = &p->plan;
    const bool symmetric = node->in[0]->type != TQ_TensorType_UINT8 && node->in[1]->type == TQ_TensorType_INT8;
    if (plan->by_channel || !symmetric || plan->k_stride != 1 || plan->channel_stride != plan->taps * plan->depth)
        return 1;
    return tq_merged_groups(plan->groups, plan->channels / plan->groups, p->gemm.lanes);
}

static tq_status plan_gemm(const tq_node *node, product *p, int flags, tq_error *why)
{
    tq_product_plan *plan = &p->plan;
    const tq_element in = element_of(node->in[0]);
    TQ_TRY(tq_gemm_plan(&p->gemm, in, plan->channels / plan->groups, plan->taps, plan->depth, flags, why));
    p->merged = count_merged(node, p);
    if (p->merged == 1)
        return TQ_OK;
    plan->groups /= p->merged;
    plan->depth *= p->merged;
    return tq_gemm_plan(&p->gemm, in, plan->channels / plan->groups, plan->taps, plan->depth, flags, why);
}

/* Plans the kernel, memory for its weights (prepacked, or in scratch), and its own scratch. */
static tq_status plan_kernel(tq_node *node, product *p, tq_error *error)
{
    const tq_product_plan *plan = &p->plan;
    const tq_element in = element_of(node->in[0]);
    const int flags = (plan->wide ? TQ_GEMM_WIDE : 0) | (node->numerics == TQ_NUMERICS_XNNPACK ? TQ_GEMM_FUSED : 0) |
                      (plan->rows == 1 ? TQ_GEMM_ONE_ROW : 0);
    tq_error why = {0};
    const tq_status status = plan->by_channel ? tq_depthwise_plan(&p->depthwise, in, plan->channels, plan->multiplier,
                                                                  plan->depth, &plan->scan, flags, &why)
                                              : plan_gemm(node, p, flags, &why);
    if (status)
        return tq_op_fail(node, error, status, "%s", why.text);
    const size_t images = plan->scans ? plan->rows / ((size_t)plan->scan.out_h * (size_t)plan->scan.out_w) : 1;
    p->images = node->threads == 1 ? images : 1; /* threads share larger products */
    if (plan->scans && !plan->by_channel)
        tq_gemm_plan_windows(&p->gemm, &plan->scan, plan->row_stride, images / p->images);
    p->images = p->gemm.image ? p->images : 1;
    const tq_tensor *bias = bias_of(node);
    p->constant = tq_is_constant(node->in[1]) && (!bias || tq_is_constant(bias));
    if (p->constant && node->in[1]->data && plan->scans && plan->groups == 1 && !plan->by_channel) {
        const tq_gemm_weights weights = weights_of(node, plan, 0);
        tq_winograd_plan(&p->winograd, &p->gemm, &plan->scan, &weights);
    }
    if (!p->constant)
        TQ_TRY(tq_node_memory(node, plan->groups, sizeof *p->packed, &p->packed, error));
    uint64_t total = 0, bytes = 0;
    tq_scratch_part(&bytes, sizeof(prepacked) + (uint64_t)plan->groups * sizeof(tq_gemm), 1);
    if (p->quantized)
        p->columns_at = tq_scratch_part(&bytes, tq_gemm_store_bytes(plan->channels), 1);
    p->packed_at = tq_scratch_part(p->constant ? &bytes : &total, plan->groups, packed_bytes(p));
    if (p->merged > 1) /* behind them: see spread() */
        tq_scratch_part(p->constant ? &bytes : &total, plan->channels / plan->groups * plan->taps, plan->depth);
    TQ_TRY(request_prepack(node, p, bytes, error));
    uint64_t own =
        plan->by_channel
            ? tq_depthwise_scratch_bytes(&p->depthwise, tq_tensor_count(node->in[0]) / plan->row_stride, node->threads)
            : tq_gemm_scratch_bytes(&p->gemm, node->threads);
    const uint64_t other = p->winograd.body ? tq_winograd_scratch_bytes(&p->winograd, node->threads) : 0;
    own = own > other ? own : other;
    p->scratch_at = tq_scratch_part(&total, own, 1);
    return tq_node_scratch(node, total, error);
}

/* XNNPACK's depthwise kernel for a multiplier of 1 and up to 25 taps sums column by column; its other kernels, row by
   row. */
static bool sums_by_columns(const tq_node *node, const tq_product_plan *plan)
{
    return node->numerics == TQ_NUMERICS_XNNPACK && node->in[0]->type == TQ_TensorType_FLOAT32 && plan->by_channel &&
           plan->multiplier == 1 && plan->depth == 1 && plan->taps <= 25;
}

static tq_status eval(tq_node *node, tq_error *error);

tq_status tq_prepare_product(tq_node *node, const tq_product_plan *plan, tq_error *error)
{
    product *p;
    if (tq_product_is_plain(node, plan))
        return tq_prepare_plain_product(node, plan, error);
    TQ_TRY(tq_node_state(node, sizeof *p, &p, error));
    p->plan = *plan;
    p->plan.scan.columns_first = sums_by_columns(node, plan);
    TQ_TRY(node->out[0]->type == TQ_TensorType_FLOAT32 ? TQ_OK
                                                       : tq_check_activation_scale(node, plan->activation, error));
    make_store(node, p);
    node->eval = eval;
    return plan->rows && plan->channels ? plan_kernel(node, p, error) : TQ_OK;
}

/* ---- eval ---- */

/* Image by image, or all at once. */
static void run_gemm(const tq_node *node, const product *p, const tq_gemm *gemm, const tq_gemm_rows *all,
                     const tq_gemm_store *store, char *out)
{
    if (p->images == 1) { /* what follows takes as long as a short row */
        tq_gemm_run(gemm, all, store, out, p->plan.channels, tq_scratch_at(node, p->scratch_at), node->threads);
        return;
    }
    const size_t in_bytes = tq_tensor_count(node->in[0]) / p->images * tq_element_bytes(node->in[0]->type);
    tq_gemm_rows rows = *all;
    rows.count /= p->images;
    for (size_t i = 0; i < p->images && !tq_stop_now(); i++) {
        tq_gemm_run(gemm, &rows, store, out, p->plan.channels, tq_scratch_at(node, p->scratch_at), node->threads);
        rows.data = (const char *)rows.data + in_bytes;
        out += rows.count * p->plan.channels * tq_element_bytes(node->out[0]->type);
    }
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    product *p = node->state;
    const tq_product_plan *plan = &p->plan;
    if (!plan->rows || !plan->channels)
        return TQ_OK;
    const prepacked *front = node->prepacked;
    tq_depthwise own; /* of weights that are not constant */
    if (!p->constant)
        pack(node, p, p->packed, &own, tq_scratch_at(node, p->packed_at));
    void *scratch = tq_scratch_at(node, p->scratch_at);
    tq_gemm_rows rows = {node->in[0]->data, plan->rows, plan->row_stride, plan->scans ? &plan->scan : NULL};
    if (plan->by_channel) {
        tq_depthwise_run(p->constant ? &front->depthwise : &own, &rows, &front->store, node->out[0]->data,
                         plan->channels, scratch, node->threads);
        return TQ_OK;
    }
    if (front->winograd.body) {
        tq_winograd_run(&front->winograd, &rows, &front->store, node->out[0]->data, plan->channels, scratch,
                        node->threads);
        return TQ_OK;
    }
    if (plan->groups == 1) {
        run_gemm(node, p, p->constant ? front->packed : p->packed, &rows, &front->store, node->out[0]->data);
        return TQ_OK;
    }
    const size_t each = plan->channels / plan->groups;
    const size_t in_size = tq_element_bytes(node->in[0]->type), out_size = tq_element_bytes(node->out[0]->type);
    for (size_t g = 0; g < plan->groups; g++) {
        tq_gemm_store store = tq_gemm_store_from(&front->store, g * each);
        rows.data = (const char *)node->in[0]->data + g * plan->depth * in_size;
        run_gemm(node, p, p->constant ? &front->packed[g] : &p->packed[g], &rows, &store,
                 (char *)node->out[0]->data + g * each * out_size);
    }
    return TQ_OK;
}
