/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of one operator's shapes against each other, its options and its constants, where the file
 * fixes them: what LiteRT would divide by, multiply or split while it prepares.
 */
#include "base/checked.h"
#include "flatbuffer/flexbuffer.h"
#include "model/problems_walk.h"

static tq_place here(const tq_walk *walk, const tq_node *node)
{
    return tq_place_in(walk, TQ_PLACE_OPERATOR, node->index, 0);
}

static void check_elements(tq_walk *walk, const tq_node *node, bool fits, uint64_t count)
{
    if (!fits || count > INT32_MAX)
        tq_report(walk, TQ_PROBLEM_OUTPUT_SIZE, here(walk, node), "the output would have more than 2^31 - 1 elements");
}

/* ---- convolutions ---- */

/* The input's last dimension must be a multiple of `channels`, dimension `at` of the filter. */
static void check_groups(tq_walk *walk, const tq_node *node, uint32_t input, uint32_t at, bool once)
{
    tq_known_shape data = tq_known_shape_of(walk, &node->inputs, input), filter = tq_known_shape_of(walk, &node->inputs, 1);
    int64_t depth = data.shape.count ? tq_known_dimension(&data, data.shape.count - 1) : -1;
    int64_t channels = at < filter.shape.count ? tq_known_dimension(&filter, at) : -1;
    if (channels == 0 || (channels > 0 && depth >= 0 && (depth % channels || (once && depth != channels))))
        tq_report(walk, TQ_PROBLEM_GROUPS, here(walk, node), "the filter takes %lld channels; the input has %lld", (long long)channels,
                  (long long)depth);
}

/* A filter of depthwise convolution has depth_multiplier channels for each of the input. */
static void check_depthwise(tq_walk *walk, const tq_node *node)
{
    tq_known_shape data = tq_known_shape_of(walk, &node->inputs, 0), filter = tq_known_shape_of(walk, &node->inputs, 1);
    int64_t depth = data.shape.count == 4 ? tq_known_dimension(&data, 3) : -1;
    int64_t channels = filter.shape.count == 4 ? tq_known_dimension(&filter, 3) : -1;
    if (depth >= 0 && channels >= 0 && (depth == 0 || channels % depth))
        tq_report(walk, TQ_PROBLEM_GROUPS, here(walk, node), "the filter has %lld channels; the input has %lld, which needs to divide it",
                  (long long)channels, (long long)depth);
}

/* ---- splitting and packing ---- */

/* The dimension of input `input` that a constant axis in input `axis_input` names; -1: not known. */
static int64_t split_dimension(tq_walk *walk, const tq_node *node, uint32_t input, uint32_t axis_input)
{
    tq_integers axis;
    tq_known_shape data = tq_known_shape_of(walk, &node->inputs, input);
    if (!data.known || !tq_node_integers(walk, node, axis_input, &axis) || axis.count != 1)
        return -1;
    int64_t at = tq_integer(&axis, 0), rank = (int64_t)data.shape.count;
    at += at < 0 ? rank : 0;
    return at >= 0 && at < rank ? tq_known_dimension(&data, (uint32_t)at) : -1;
}

static void check_number(tq_walk *walk, const tq_node *node, const char *option, int64_t value, uint32_t count, const char *of)
{
    if (value != (int64_t)count)
        tq_report(walk, TQ_PROBLEM_SHAPE_MISMATCH, here(walk, node), "%s is %lld; the operator has %u %s", option, (long long)value, count, of);
}

static void check_split(tq_walk *walk, const tq_node *node)
{
    int64_t splits = tq_get_int(&node->options.table, TQ_SplitOptions_num_splits);
    int64_t dimension = split_dimension(walk, node, 1, 0);
    check_number(walk, node, "num_splits", splits, node->outputs.count, "outputs");
    if (splits > 0 && dimension > 0 && dimension % splits)
        tq_report(walk, TQ_PROBLEM_SHAPE_MISMATCH, here(walk, node), "a dimension of %lld cannot be split into %lld equal parts",
                  (long long)dimension, (long long)splits);
}

static void check_split_v(tq_walk *walk, const tq_node *node)
{
    tq_integers sizes;
    int64_t dimension = split_dimension(walk, node, 0, 2), sum = 0, open = 0;
    check_number(walk, node, "num_splits", tq_get_int(&node->options.table, TQ_SplitVOptions_num_splits), node->outputs.count, "outputs");
    if (!tq_node_integers(walk, node, 1, &sizes))
        return;
    if (sizes.count != node->outputs.count)
        tq_report(walk, TQ_PROBLEM_CONSTANT_COUNT, tq_node_place(walk, node, 1), "there are %llu sizes; the operator has %u outputs",
                  (unsigned long long)sizes.count, node->outputs.count);
    for (uint64_t i = 0; i < sizes.count; i++) {
        int64_t size = tq_integer(&sizes, i);
        open += size == -1;
        if (size < -1 || size > INT32_MAX || open > 1) {
            tq_report(walk, TQ_PROBLEM_CONSTANT_VALUE, tq_node_place(walk, node, 1),
                      "size %llu is %lld; it needs to be 0 or more, and only one may be -1", (unsigned long long)i, (long long)size);
            return;
        }
        sum += size == -1 ? 0 : size; /* below 2^31 a value: no file holds enough to overflow */
    }
    if (dimension >= 0 && (open ? sum > dimension : sum != dimension))
        tq_report(walk, TQ_PROBLEM_SHAPE_MISMATCH, tq_node_place(walk, node, 1), "the sizes sum to %lld; the dimension is %lld", (long long)sum,
                  (long long)dimension);
}

static void check_unpack(tq_walk *walk, const tq_node *node)
{
    tq_known_shape data = tq_known_shape_of(walk, &node->inputs, 0);
    int64_t number = tq_get_int(&node->options.table, TQ_UnpackOptions_num);
    int64_t axis = tq_get_int(&node->options.table, TQ_UnpackOptions_axis);
    axis += axis < 0 ? (int64_t)data.shape.count : 0;
    int64_t dimension = data.known && axis >= 0 && axis < (int64_t)data.shape.count ? tq_known_dimension(&data, (uint32_t)axis) : -1;
    check_number(walk, node, "num", number, node->outputs.count, "outputs");
    if (dimension >= 0 && dimension != number)
        tq_report(walk, TQ_PROBLEM_SHAPE_MISMATCH, here(walk, node), "num is %lld; the dimension is %lld", (long long)number, (long long)dimension);
}

/* ---- blocks ---- */

static void check_space_to_depth(tq_walk *walk, const tq_node *node)
{
    tq_known_shape data = tq_known_shape_of(walk, &node->inputs, 0);
    int64_t block = tq_get_int(&node->options.table, TQ_SpaceToDepthOptions_block_size);
    for (uint32_t i = 1; data.shape.count == 4 && block > 0 && i < 3; i++) {
        int64_t dimension = tq_known_dimension(&data, i);
        if (dimension > 0 && dimension % block)
            tq_report(walk, TQ_PROBLEM_SHAPE_MISMATCH, here(walk, node), "block_size is %lld; dimension %u is %lld, which it needs to divide",
                      (long long)block, i, (long long)dimension);
    }
}

static void check_depth_to_space(tq_walk *walk, const tq_node *node)
{
    tq_known_shape data = tq_known_shape_of(walk, &node->inputs, 0);
    int64_t block = tq_get_int(&node->options.table, TQ_DepthToSpaceOptions_block_size);
    int64_t depth = data.shape.count == 4 ? tq_known_dimension(&data, 3) : -1;
    if (block > 0 && depth > 0 && depth % (block * block))
        tq_report(walk, TQ_PROBLEM_SHAPE_MISMATCH, here(walk, node), "block_size is %lld; the depth is %lld, which its square needs to divide",
                  (long long)block, (long long)depth);
}

/* ---- shapes that constants give ---- */

static void check_reshape(tq_walk *walk, const tq_node *node)
{
    tq_integers dims;
    uint64_t count = 0, product = 1, open = 0;
    tq_known_shape data = tq_known_shape_of(walk, &node->inputs, 0);
    bool counted = tq_known_count(&data, &count);
    if (!tq_node_integers(walk, node, 1, &dims))
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
        tq_report(walk, TQ_PROBLEM_CONSTANT_VALUE, tq_node_place(walk, node, 1), "%llu values are -1; only one may be", (unsigned long long)open);
    bool scalar = dims.count == 1 && tq_integer(&dims, 0) == 0 && count == 1; /* as old converters wrote scalars */
    if (!counted || open > 1 || scalar)
        return;
    if (open ? (product == 0 ? count != 0 : count % product != 0) : product != count)
        tq_report(walk, TQ_PROBLEM_SHAPE_MISMATCH, tq_node_place(walk, node, 1),
                  "the new shape has %llu elements%s; the input has %llu", (unsigned long long)product, open ? " or a multiple" : "",
                  (unsigned long long)count);
}

static void check_squeeze(tq_walk *walk, const tq_node *node)
{
    tq_known_shape data = tq_known_shape_of(walk, &node->inputs, 0);
    tq_vector dims = tq_get_vector(&node->options.table, TQ_SqueezeOptions_squeeze_dims);
    for (uint32_t i = 0; i < dims.count; i++) {
        int64_t axis = tq_vector_i32(&dims, i);
        axis += axis < 0 ? (int64_t)data.shape.count : 0;
        int64_t dimension = axis >= 0 && axis < (int64_t)data.shape.count ? tq_known_dimension(&data, (uint32_t)axis) : -1;
        if (dimension < 0 || dimension == 1)
            continue;
        tq_report(walk, TQ_PROBLEM_SHAPE_MISMATCH, here(walk, node), "dimension %lld, which is to be squeezed, is %lld and needs to be 1",
                  (long long)axis, (long long)dimension);
        return;
    }
}

static void check_slice(tq_walk *walk, const tq_node *node)
{
    tq_integers begin, size;
    tq_known_shape data = tq_known_shape_of(walk, &node->inputs, 0);
    if (!data.known || !tq_node_integers(walk, node, 1, &begin) || !tq_node_integers(walk, node, 2, &size))
        return;
    for (uint32_t i = 0; i < data.shape.count && i < begin.count && i < size.count; i++) {
        int64_t dimension = tq_known_dimension(&data, i), first = tq_integer(&begin, i), length = tq_integer(&size, i);
        if (dimension < 0 || first < 0 || length < -1 || (first <= dimension && (length == -1 || length <= dimension - first)))
            continue;
        tq_report(walk, TQ_PROBLEM_INDEX_RANGE, tq_node_place(walk, node, 1), "begin %lld and size %lld leave dimension %u, which is %lld",
                  (long long)first, (long long)length, i, (long long)dimension);
        return;
    }
}

static void check_strided_slice(tq_walk *walk, const tq_node *node)
{
    tq_integers parts[3];
    bool known = true;
    for (uint32_t i = 0; i < 3; i++)
        known = tq_node_integers(walk, node, i + 1, &parts[i]) && known;
    if (known && (parts[0].count != parts[1].count || parts[0].count != parts[2].count))
        tq_report(walk, TQ_PROBLEM_CONSTANT_COUNT, here(walk, node), "there are %llu begins, %llu ends and %llu strides",
                  (unsigned long long)parts[0].count, (unsigned long long)parts[1].count, (unsigned long long)parts[2].count);
    uint32_t ellipsis = (uint32_t)tq_get_int(&node->options.table, TQ_StridedSliceOptions_ellipsis_mask);
    if (ellipsis & (ellipsis - 1))
        tq_report(walk, TQ_PROBLEM_OPTION_RANGE, here(walk, node), "ellipsis_mask is %u; it may have one bit at most", ellipsis);
}

static void check_mirror_pad(tq_walk *walk, const tq_node *node)
{
    tq_integers pads;
    tq_known_shape data = tq_known_shape_of(walk, &node->inputs, 0);
    bool reflect = tq_get_int(&node->options.table, TQ_MirrorPadOptions_mode) == TQ_MirrorPadMode_REFLECT;
    if (!data.known || !tq_node_integers(walk, node, 1, &pads))
        return;
    for (uint64_t i = 0; i < pads.count && i / 2 < data.shape.count; i++) {
        int64_t dimension = tq_known_dimension(&data, (uint32_t)(i / 2)), pad = tq_integer(&pads, i);
        if (dimension < 0 || pad <= dimension - reflect || pad == 0)
            continue;
        tq_report(walk, TQ_PROBLEM_CONSTANT_VALUE, tq_node_place(walk, node, 1), "pad %llu is %lld; there are %lld values to mirror",
                  (unsigned long long)i, (long long)pad, (long long)(dimension - reflect));
        return;
    }
}

/* ---- outputs too large to address ---- */

static void check_concatenation(tq_walk *walk, const tq_node *node)
{
    tq_known_shape first = tq_known_shape_of(walk, &node->inputs, 0);
    int64_t axis = tq_get_int(&node->options.table, TQ_ConcatenationOptions_axis), sum = 0;
    axis += axis < 0 ? (int64_t)first.shape.count : 0;
    for (uint32_t i = 0; axis >= 0 && i < node->inputs.count; i++) {
        tq_known_shape shape = tq_known_shape_of(walk, &node->inputs, i);
        int64_t dimension = axis < (int64_t)shape.shape.count ? tq_known_dimension(&shape, (uint32_t)axis) : 0;
        sum += dimension > 0 ? dimension : 0; /* below 2^31 each, and fewer than 2^32 of them */
    }
    if (sum > INT32_MAX)
        tq_report(walk, TQ_PROBLEM_OUTPUT_SIZE, here(walk, node), "the inputs' dimensions sum to %lld; a dimension is at most 2^31 - 1",
                  (long long)sum);
}

static void check_tile(tq_walk *walk, const tq_node *node)
{
    tq_integers multiples;
    uint64_t count;
    tq_known_shape data = tq_known_shape_of(walk, &node->inputs, 0);
    bool fits = true;
    if (!tq_known_count(&data, &count) || !tq_node_integers(walk, node, 1, &multiples))
        return;
    for (uint64_t i = 0; i < multiples.count; i++) {
        int64_t multiple = tq_integer(&multiples, i);
        if (multiple < 0)
            return;
        if (!tq_mul_u64(count, (uint64_t)multiple, &count))
            fits = false;
    }
    check_elements(walk, node, fits, count);
}

/* The lookups replace the first dimension of the values. */
static void check_embedding(tq_walk *walk, const tq_node *node)
{
    tq_known_shape ids = tq_known_shape_of(walk, &node->inputs, 0), values = tq_known_shape_of(walk, &node->inputs, 1);
    uint64_t count, all;
    if (!tq_known_count(&ids, &count) || !tq_known_count(&values, &all) || !values.shape.count)
        return;
    int64_t rows = tq_known_dimension(&values, 0);
    bool fits = rows <= 0 || tq_mul_u64(count, all / (uint64_t)rows, &count);
    check_elements(walk, node, fits, rows > 0 ? count : 0);
}

/* ---- detection post-processing, whose options size its outputs ---- */

static bool key_is(tq_bytes key, const char *name)
{
    return key.size == strlen(name) && memcmp(key.data, name, key.size) == 0;
}

static bool flex_integer(const tq_flex_reader *reader, const tq_flex *item, int64_t *out)
{
    if (item->kind != TQ_FLEX_INT && item->kind != TQ_FLEX_UINT)
        return false;
    tq_value value = tq_flex_number(reader, item);
    *out = value.kind == TQ_VALUE_UINT && value.u > INT64_MAX ? INT64_MAX : value.i;
    return true;
}

static void check_detections(tq_walk *walk, const tq_node *node)
{
    static const char *const names[] = {"max_detections", "max_classes_per_detection", "num_classes", "detections_per_class"};
    int64_t product = 1;
    tq_bytes bytes;
    tq_flex_reader reader;
    tq_flex root, item;
    if (!key_is(node->op.custom_name, "TFLite_Detection_PostProcess") || tq_operator_custom_options(&node->op, &bytes, NULL) != TQ_OK ||
        !bytes.data || !tq_walk_spend(walk, bytes.size, here(walk, node)) || tq_flex_open(bytes, &reader, &root, NULL) != TQ_OK ||
        root.kind != TQ_FLEX_MAP)
        return;
    for (uint64_t i = 0; i < root.count; i++) {
        tq_bytes key;
        int64_t value;
        if (tq_flex_map_key(&reader, &root, i, &key) != TQ_OK || tq_flex_item(&reader, &root, i, &item) != TQ_OK)
            return;
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            if (!key_is(key, names[n]) || !flex_integer(&reader, &item, &value))
                continue;
            if (value < 1 || value > INT32_MAX)
                tq_report(walk, TQ_PROBLEM_OPTION_RANGE, here(walk, node), "%s is %lld; it needs to be from 1 to 2^31 - 1", names[n],
                          (long long)value);
            else if (n < 2 && product <= INT32_MAX)
                product *= value;
        }
    }
    check_elements(walk, node, true, (uint64_t)product);
}

void tq_check_shapes(tq_walk *walk, const tq_node *node)
{
    static const struct {
        int64_t op;
        void (*check)(tq_walk *walk, const tq_node *node);
    } checks[] = {
        {TQ_BuiltinOperator_DEPTHWISE_CONV_2D, check_depthwise},
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
        {TQ_BuiltinOperator_CONCATENATION, check_concatenation},
        {TQ_BuiltinOperator_TILE, check_tile},
        {TQ_BuiltinOperator_EMBEDDING_LOOKUP, check_embedding},
        {TQ_BuiltinOperator_CUSTOM, check_detections},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i].op == node->op.code)
            checks[i].check(walk, node);
    if (node->op.code == TQ_BuiltinOperator_CONV_2D)
        check_groups(walk, node, 0, 3, false);
    if (node->op.code == TQ_BuiltinOperator_TRANSPOSE_CONV)
        check_groups(walk, node, 2, 3, true);
    if (node->op.code == TQ_BuiltinOperator_CONV_3D)
        check_groups(walk, node, 0, 3, true);
    if (node->op.code == TQ_BuiltinOperator_PACK)
        check_number(walk, node, "values_count", tq_get_int(&node->options.table, TQ_PackOptions_values_count), node->inputs.count, "inputs");
}
