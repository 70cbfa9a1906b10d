/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of one operator's shapes against each other, its options and its constants, where the file fixes them: values
 * that LiteRT's prepare functions divide, split or cut by.
 */
#include "base/checked.h"
#include "model/problems/checks.h"

/* ---- splitting and packing ---- */

/* The dimension of input `input` along the constant axis in input `axis_input`; -1: unknown. */
static int64_t split_dimension(tq_checker *checker, const tq_checked_node *node, uint32_t input, uint32_t axis_input)
{
    tq_integers axis;
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, input);
    if (!data.known || !tq_checked_integers(checker, node, axis_input, &axis) || axis.count != 1)
        return -1;
    int64_t at = tq_integer(&axis, 0), rank = (int64_t)data.shape.count;
    at += at < 0 ? rank : 0;
    return at >= 0 && at < rank ? tq_known_dimension(&data, (uint32_t)at) : -1;
}

static void check_number(tq_checker *checker, const tq_checked_node *node, const char *option, int64_t value,
                         uint32_t count, const char *of)
{
    if (value != (int64_t)count)
        tq_report(checker, TQ_PROBLEM_SHAPE_MISMATCH, tq_checked_operator(checker, node),
                  "%s is %lld; the operator has %u %s", option, (long long)value, count, of);
}

static void check_pack(tq_checker *checker, const tq_checked_node *node)
{
    check_number(checker, node, "values_count", tq_get_int(&node->options.table, TQ_PackOptions_values_count),
                 node->inputs.count, "inputs");
}

static void check_split(tq_checker *checker, const tq_checked_node *node)
{
    int64_t splits = tq_get_int(&node->options.table, TQ_SplitOptions_num_splits);
    int64_t dimension = split_dimension(checker, node, 1, 0);
    check_number(checker, node, "num_splits", splits, node->outputs.count, "outputs");
    if (splits > 0 && dimension > 0 && dimension % splits)
        tq_report(checker, TQ_PROBLEM_SHAPE_MISMATCH, tq_checked_operator(checker, node),
                  "a dimension of %lld cannot be split into %lld equal parts", (long long)dimension, (long long)splits);
}

static void check_split_v(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers sizes;
    int64_t dimension = split_dimension(checker, node, 0, 2), sum = 0, open = 0;
    check_number(checker, node, "num_splits", tq_get_int(&node->options.table, TQ_SplitVOptions_num_splits),
                 node->outputs.count, "outputs");
    if (!tq_checked_integers(checker, node, 1, &sizes))
        return;
    if (sizes.count != node->outputs.count)
        tq_report(checker, TQ_PROBLEM_CONSTANT_COUNT, tq_checked_location(checker, node, 1),
                  "there are %llu sizes; the operator has %u outputs", (unsigned long long)sizes.count,
                  node->outputs.count);
    for (uint64_t i = 0; i < sizes.count; i++) {
        int64_t size = tq_integer(&sizes, i);
        open += size == -1;
        if (size < -1 || size > INT32_MAX || open > 1) {
            tq_report(checker, TQ_PROBLEM_CONSTANT_VALUE, tq_checked_location(checker, node, 1),
                      "size %llu is %lld; it needs to be 0 or more, and only one may be -1", (unsigned long long)i,
                      (long long)size);
            return;
        }
        sum += size == -1 ? 0 : size; /* each value is < 2^31: no file has enough of them to overflow */
    }
    if (dimension >= 0 && (open ? sum > dimension : sum != dimension))
        tq_report(checker, TQ_PROBLEM_SHAPE_MISMATCH, tq_checked_location(checker, node, 1),
                  "the sizes sum to %lld; the dimension is %lld", (long long)sum, (long long)dimension);
}

static void check_unpack(tq_checker *checker, const tq_checked_node *node)
{
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    int64_t number = tq_get_int(&node->options.table, TQ_UnpackOptions_num);
    int64_t axis = tq_get_int(&node->options.table, TQ_UnpackOptions_axis);
    axis += axis < 0 ? (int64_t)data.shape.count : 0;
    bool is_there = data.known && axis >= 0 && axis < (int64_t)data.shape.count;
    int64_t dimension = is_there ? tq_known_dimension(&data, (uint32_t)axis) : -1;
    check_number(checker, node, "num", number, node->outputs.count, "outputs");
    if (dimension >= 0 && dimension != number)
        tq_report(checker, TQ_PROBLEM_SHAPE_MISMATCH, tq_checked_operator(checker, node),
                  "num is %lld; the dimension is %lld", (long long)number, (long long)dimension);
}

/* ---- blocks ---- */

static void check_space_to_depth(tq_checker *checker, const tq_checked_node *node)
{
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    int64_t block = tq_get_int(&node->options.table, TQ_SpaceToDepthOptions_block_size);
    for (uint32_t i = 1; data.shape.count == 4 && block > 0 && i < 3; i++) {
        int64_t dimension = tq_known_dimension(&data, i);
        if (dimension > 0 && dimension % block)
            tq_report(checker, TQ_PROBLEM_SHAPE_MISMATCH, tq_checked_operator(checker, node),
                      "block_size is %lld; dimension %u is %lld, which it needs to divide", (long long)block, i,
                      (long long)dimension);
    }
}

static void check_depth_to_space(tq_checker *checker, const tq_checked_node *node)
{
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    int64_t block = tq_get_int(&node->options.table, TQ_DepthToSpaceOptions_block_size);
    int64_t depth = data.shape.count == 4 ? tq_known_dimension(&data, 3) : -1;
    if (block > 0 && depth > 0 && depth % (block * block))
        tq_report(checker, TQ_PROBLEM_SHAPE_MISMATCH, tq_checked_operator(checker, node),
                  "block_size is %lld; the depth is %lld, which its square needs to divide", (long long)block,
                  (long long)depth);
}

/* ---- shapes in constants ---- */

/* The new shape: input 1 or, without it, an option. */
static bool new_shape(tq_checker *checker, const tq_checked_node *node, tq_integers *out)
{
    tq_vector option = tq_get_vector(&node->options.table, TQ_ReshapeOptions_new_shape);
    if (node->inputs.count != 1)
        return tq_checked_integers(checker, node, 1, out);
    *out = (tq_integers){tq_vector_bytes(&option, 4).data, option.count, 4, true};
    return option.at != 0;
}

static void check_reshape(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers dims;
    uint64_t count = 0, product = 1, open = 0;
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    bool counted = tq_known_count(&data, &count);
    if (!new_shape(checker, node, &dims))
        return;
    for (uint64_t i = 0; i < dims.count; i++) {
        int64_t value = tq_integer(&dims, i);
        open += value == -1;
        if (value < -1)
            return;
        if (value != -1 && !tq_mul_u64(product, (uint64_t)value, &product))
            counted = false;
    }
    if (open > 1)
        tq_report(checker, TQ_PROBLEM_CONSTANT_VALUE, tq_checked_operator(checker, node),
                  "%llu values of the new shape are -1; only one may be", (unsigned long long)open);
    bool scalar = dims.count == 1 && tq_integer(&dims, 0) == 0 && count == 1; /* the scalar of old converters */
    if (!counted || open > 1 || scalar)
        return;
    if (open ? (product == 0 ? count != 0 : count % product != 0) : product != count)
        tq_report(checker, TQ_PROBLEM_SHAPE_MISMATCH, tq_checked_operator(checker, node),
                  "the new shape has %llu elements%s; the input has %llu", (unsigned long long)product,
                  open ? " or a multiple" : "", (unsigned long long)count);
}

static void check_squeeze(tq_checker *checker, const tq_checked_node *node)
{
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    tq_vector dims = tq_get_vector(&node->options.table, TQ_SqueezeOptions_squeeze_dims);
    for (uint32_t i = 0; i < dims.count; i++) {
        int64_t axis = tq_vector_i32(&dims, i);
        axis += axis < 0 ? (int64_t)data.shape.count : 0;
        int64_t dimension =
            axis >= 0 && axis < (int64_t)data.shape.count ? tq_known_dimension(&data, (uint32_t)axis) : -1;
        if (dimension < 0 || dimension == 1)
            continue;
        tq_report(checker, TQ_PROBLEM_SHAPE_MISMATCH, tq_checked_operator(checker, node),
                  "dimension %lld, which is to be squeezed, is %lld and needs to be 1", (long long)axis,
                  (long long)dimension);
        return;
    }
}

static void check_slice(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers begin, size;
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    if (!data.known || !tq_checked_integers(checker, node, 1, &begin) || !tq_checked_integers(checker, node, 2, &size))
        return;
    for (uint32_t i = 0; i < data.shape.count && i < begin.count && i < size.count; i++) {
        int64_t dimension = tq_known_dimension(&data, i), first = tq_integer(&begin, i), length = tq_integer(&size, i);
        if (dimension < 0 || first < 0 || length < -1 ||
            (first <= dimension && (length == -1 || length <= dimension - first)))
            continue;
        tq_report(checker, TQ_PROBLEM_INDEX_RANGE, tq_checked_location(checker, node, 1),
                  "begin %lld and size %lld leave dimension %u, which is %lld", (long long)first, (long long)length, i,
                  (long long)dimension);
        return;
    }
}

/* The number of entries of a strided slice that select along a dimension: all but new axes and the ellipsis. */
static uint64_t walked_dimensions(const tq_checked_node *node, uint64_t entries)
{
    uint64_t skipped = (uint64_t)(tq_get_int(&node->options.table, TQ_StridedSliceOptions_new_axis_mask) |
                                  tq_get_int(&node->options.table, TQ_StridedSliceOptions_ellipsis_mask));
    uint64_t walked = 0;
    for (uint64_t i = 0; i < entries; i++)
        walked += i >= 32 || !(skipped >> i & 1);
    return walked;
}

static void check_strided_slice(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers parts[3];
    bool known = true;
    for (uint32_t i = 0; i < 3; i++)
        known = tq_checked_integers(checker, node, i + 1, &parts[i]) && known;
    if (known && (parts[0].count != parts[1].count || parts[0].count != parts[2].count))
        tq_report(checker, TQ_PROBLEM_CONSTANT_COUNT, tq_checked_operator(checker, node),
                  "there are %llu begins, %llu ends and %llu strides", (unsigned long long)parts[0].count,
                  (unsigned long long)parts[1].count, (unsigned long long)parts[2].count);
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    uint64_t walked = known ? walked_dimensions(node, parts[0].count) : 0;
    if (data.known && walked > data.shape.count)
        tq_report(checker, TQ_PROBLEM_CONSTANT_COUNT, tq_checked_location(checker, node, 1),
                  "the slice has %llu entries; the input has %u dimensions", (unsigned long long)walked,
                  data.shape.count);
    uint32_t ellipsis = (uint32_t)tq_get_int(&node->options.table, TQ_StridedSliceOptions_ellipsis_mask);
    if (ellipsis & (ellipsis - 1))
        tq_report(checker, TQ_PROBLEM_OPTION_RANGE, tq_checked_operator(checker, node),
                  "ellipsis_mask is %u; it may have one bit at most", ellipsis);
}

static void check_mirror_pad(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers pads;
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    bool reflect = tq_get_int(&node->options.table, TQ_MirrorPadOptions_mode) == TQ_MirrorPadMode_REFLECT;
    if (!data.known || !tq_checked_integers(checker, node, 1, &pads))
        return;
    for (uint64_t i = 0; i < pads.count && i / 2 < data.shape.count; i++) {
        int64_t dimension = tq_known_dimension(&data, (uint32_t)(i / 2)), pad = tq_integer(&pads, i);
        if (dimension < 0 || pad <= dimension - reflect || pad == 0)
            continue;
        tq_report(checker, TQ_PROBLEM_CONSTANT_VALUE, tq_checked_location(checker, node, 1),
                  "pad %llu is %lld; there are %lld values to mirror", (unsigned long long)i, (long long)pad,
                  (long long)(dimension - reflect));
        return;
    }
}

/* The blocks must divide the padded dimensions, which follow the batch. */
static void check_space_to_batch(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers blocks, pads;
    uint64_t pad;
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    if (!data.known || !tq_checked_integers(checker, node, 1, &blocks) || !tq_checked_integers(checker, node, 2, &pads))
        return;
    if (pads.count != 2 * blocks.count || blocks.count + 1 > data.shape.count) {
        tq_report(checker, TQ_PROBLEM_CONSTANT_COUNT, tq_checked_operator(checker, node),
                  "there are %llu block sizes and %llu paddings for %u dimensions", (unsigned long long)blocks.count,
                  (unsigned long long)pads.count, data.shape.count);
        return;
    }
    for (uint64_t i = 0; i < blocks.count; i++) {
        int64_t dimension = tq_known_dimension(&data, (uint32_t)i + 1), block = tq_integer(&blocks, i);
        if (dimension < 0 || block < 1 || !tq_pads_at(&pads, i, &pad) || pad > INT32_MAX ||
            (pad + (uint64_t)dimension) % (uint64_t)block == 0)
            continue;
        tq_report(checker, TQ_PROBLEM_SHAPE_MISMATCH, tq_checked_operator(checker, node),
                  "block size %lld does not divide dimension %llu, %llu with its padding", (long long)block,
                  (unsigned long long)i + 1, (unsigned long long)(pad + (uint64_t)dimension));
        return;
    }
}

static void check_batch_to_space(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers blocks;
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    int64_t batch = data.shape.count ? tq_known_dimension(&data, 0) : -1;
    if (batch < 0 || !tq_checked_integers(checker, node, 1, &blocks))
        return;
    for (uint64_t i = 0; i < blocks.count; i++) {
        int64_t block = tq_integer(&blocks, i);
        if (block < 1)
            return;
        if (batch % block) {
            tq_report(checker, TQ_PROBLEM_SHAPE_MISMATCH, tq_checked_operator(checker, node),
                      "block size %lld does not divide what is left of the batch, %lld", (long long)block,
                      (long long)batch);
            return;
        }
        batch /= block;
    }
}

static void check_top_k(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers k;
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    int64_t last = data.shape.count ? tq_known_dimension(&data, data.shape.count - 1) : -1;
    if (last >= 0 && tq_checked_integers(checker, node, 1, &k) && k.count == 1 && tq_integer(&k, 0) > last)
        tq_report(checker, TQ_PROBLEM_CONSTANT_VALUE, tq_checked_location(checker, node, 1),
                  "k is %lld; the last dimension is %lld", (long long)tq_integer(&k, 0), (long long)last);
}

void tq_check_shapes(tq_checker *checker, const tq_checked_node *node)
{
    static const tq_node_check checks[] = {
        {TQ_BuiltinOperator_SPLIT, check_split},
        {TQ_BuiltinOperator_SPLIT_V, check_split_v},
        {TQ_BuiltinOperator_UNPACK, check_unpack},
        {TQ_BuiltinOperator_SPACE_TO_DEPTH, check_space_to_depth},
        {TQ_BuiltinOperator_DEPTH_TO_SPACE, check_depth_to_space},
        {TQ_BuiltinOperator_RESHAPE, check_reshape},
        {TQ_BuiltinOperator_SQUEEZE, check_squeeze},
        {TQ_BuiltinOperator_SLICE, check_slice},
        {TQ_BuiltinOperator_STRIDED_SLICE, check_strided_slice},
        {TQ_BuiltinOperator_MIRROR_PAD, check_mirror_pad},
        {TQ_BuiltinOperator_SPACE_TO_BATCH_ND, check_space_to_batch},
        {TQ_BuiltinOperator_BATCH_TO_SPACE_ND, check_batch_to_space},
        {TQ_BuiltinOperator_TOPK_V2, check_top_k},
        {TQ_BuiltinOperator_PACK, check_pack},
    };
    tq_run_node_checks(checker, node, checks, sizeof checks / sizeof *checks);
}
