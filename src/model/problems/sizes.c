/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the output's size, where the file fixes it: TFLite counts elements in an int.
 */
#include "base/checked.h"
#include "flatbuffer/flexbuffer.h"
#include "model/problems/checks.h"

static void check_elements(tq_checker *checker, const tq_checked_node *node, bool fits, uint64_t count)
{
    if (!fits || count > INT32_MAX)
        tq_report(checker, TQ_PROBLEM_OUTPUT_SIZE, tq_checked_operator(checker, node),
                  "the output would have more than 2^31 - 1 elements");
}

static void check_range_size(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers parts[3];
    for (uint32_t i = 0; i < 3; i++)
        if (!tq_checked_integers(checker, node, i, &parts[i]) || parts[i].count != 1)
            return;
    double step = (double)tq_integer(&parts[2], 0);
    double length = ((double)tq_integer(&parts[1], 0) - (double)tq_integer(&parts[0], 0)) / (step != 0 ? step : 1);
    if (length > INT32_MAX)
        check_elements(checker, node, false, 0);
}

/* A constant of factors; `count` elements times all of them must fit. */
static void check_growth(tq_checker *checker, const tq_checked_node *node, uint64_t count)
{
    tq_integers factors;
    bool fits = true;
    if (!tq_checked_integers(checker, node, 1, &factors))
        return;
    for (uint64_t i = 0; i < factors.count; i++) {
        int64_t factor = tq_integer(&factors, i);
        if (factor < 0)
            return;
        if (!tq_mul_u64(count, (uint64_t)factor, &count))
            fits = false;
    }
    check_elements(checker, node, fits, count);
}

/* ONE_HOT's depth and TILE's multiples. */
static void check_repeats(tq_checker *checker, const tq_checked_node *node)
{
    uint64_t count;
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    if (tq_known_count(&data, &count))
        check_growth(checker, node, count);
}

static void check_resize(tq_checker *checker, const tq_checked_node *node)
{
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    int64_t batch = data.shape.count == 4 ? tq_known_dimension(&data, 0) : -1;
    int64_t depth = batch < 0 ? -1 : tq_known_dimension(&data, 3);
    if (batch >= 0 && depth >= 0)
        check_growth(checker, node, (uint64_t)batch * (uint64_t)depth);
}

static void check_concatenation(tq_checker *checker, const tq_checked_node *node)
{
    tq_known_shape first = tq_known_shape_of(checker, &node->inputs, 0);
    int64_t axis = tq_get_int(&node->options.table, TQ_ConcatenationOptions_axis), sum = 0;
    axis += axis < 0 ? (int64_t)first.shape.count : 0;
    for (uint32_t i = 0; axis >= 0 && i < node->inputs.count; i++) {
        tq_known_shape shape = tq_known_shape_of(checker, &node->inputs, i);
        int64_t dimension = axis < (int64_t)shape.shape.count ? tq_known_dimension(&shape, (uint32_t)axis) : 0;
        sum += dimension > 0 ? dimension : 0; /* each is < 2^31, and there are fewer than 2^32 */
    }
    if (sum > INT32_MAX)
        tq_report(checker, TQ_PROBLEM_OUTPUT_SIZE, tq_checked_operator(checker, node),
                  "the inputs' dimensions sum to %lld; a dimension is at most 2^31 - 1", (long long)sum);
}

/* The lookups replace the first dimension of the table. */
static void check_embedding(tq_checker *checker, const tq_checked_node *node)
{
    tq_known_shape ids = tq_known_shape_of(checker, &node->inputs, 0),
                   values = tq_known_shape_of(checker, &node->inputs, 1);
    uint64_t count, all;
    if (!tq_known_count(&ids, &count) || !tq_known_count(&values, &all) || !values.shape.count)
        return;
    int64_t rows = tq_known_dimension(&values, 0);
    bool fits = rows <= 0 || tq_mul_u64(count, all / (uint64_t)rows, &count);
    check_elements(checker, node, fits, rows > 0 ? count : 0);
}

static void check_pad(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers pads;
    uint64_t pad;
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    if (!data.known || !tq_checked_integers(checker, node, 1, &pads) || pads.count != 2 * (uint64_t)data.shape.count)
        return;
    for (uint32_t i = 0; i < data.shape.count; i++) {
        int64_t dimension = tq_known_dimension(&data, i);
        if (!tq_pads_at(&pads, i, &pad) ||
            (pad <= INT32_MAX && pad + (uint64_t)(dimension > 0 ? dimension : 0) <= INT32_MAX))
            continue;
        tq_report(checker, TQ_PROBLEM_OUTPUT_SIZE, tq_checked_location(checker, node, 1),
                  "dimension %u, padded by %llu, is more than 2^31 - 1", i, (unsigned long long)pad);
        return;
    }
}

/* ---- detection post-processing: its options give the sizes of its outputs ---- */

static bool key_is(tq_bytes key, const char *name)
{
    return key.size == strlen(name) && memcmp(key.data, name, key.size) == 0;
}

static bool flex_integer(const tq_flex_reader *reader, const tq_flex *item, int64_t *out)
{
    if (item->kind != TQ_FLEX_INT && item->kind != TQ_FLEX_UINT)
        return false;
    tq_value value = tq_flex_scalar(reader, item);
    *out = value.kind == TQ_VALUE_UINT && value.u > INT64_MAX ? INT64_MAX : value.i;
    return true;
}

static void check_detections(tq_checker *checker, const tq_checked_node *node)
{
    static const char *const names[] = {"max_detections", "max_classes_per_detection", "num_classes",
                                        "detections_per_class"};
    int64_t product = 1;
    tq_bytes bytes;
    tq_flex_reader reader;
    tq_flex root, item;
    if (!key_is(node->op.custom_name, "TFLite_Detection_PostProcess") ||
        tq_operator_custom_options(&node->op, &bytes, NULL) != TQ_OK || !bytes.data ||
        !tq_checker_spend(checker, bytes.size, tq_checked_operator(checker, node)) ||
        tq_flex_open(bytes, &reader, &root, NULL) != TQ_OK || root.kind != TQ_FLEX_MAP)
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
                tq_report(checker, TQ_PROBLEM_OPTION_RANGE, tq_checked_operator(checker, node),
                          "%s is %lld; it needs to be from 1 to 2^31 - 1", names[n], (long long)value);
            else if (n < 2 && product <= INT32_MAX)
                product *= value;
        }
    }
    check_elements(checker, node, true, (uint64_t)product);
}

void tq_check_sizes(tq_checker *checker, const tq_checked_node *node)
{
    static const tq_node_check checks[] = {
        {TQ_BuiltinOperator_CONCATENATION, check_concatenation},
        {TQ_BuiltinOperator_TILE, check_repeats},
        {TQ_BuiltinOperator_ONE_HOT, check_repeats},
        {TQ_BuiltinOperator_RESIZE_BILINEAR, check_resize},
        {TQ_BuiltinOperator_RESIZE_NEAREST_NEIGHBOR, check_resize},
        {TQ_BuiltinOperator_RANGE, check_range_size},
        {TQ_BuiltinOperator_PAD, check_pad},
        {TQ_BuiltinOperator_PADV2, check_pad},
        {TQ_BuiltinOperator_MIRROR_PAD, check_pad},
        {TQ_BuiltinOperator_EMBEDDING_LOOKUP, check_embedding},
        {TQ_BuiltinOperator_CUSTOM, check_detections},
    };
    tq_run_node_checks(checker, node, checks, sizeof checks / sizeof *checks);
}
