/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of one operator with a filter: channels, groups and biases, as far as the file fixes them.  LiteRT's prepare
 * functions divide by some of them.
 */
#include "model/problems/checks.h"

/* The input's last dimension must be a multiple of `channels`, dimension `at` of the filter. */
static void check_groups(tq_checker *checker, const tq_checked_node *node, uint32_t input, uint32_t at, bool once)
{
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, input),
                   filter = tq_known_shape_of(checker, &node->inputs, 1);
    int64_t depth = data.shape.count ? tq_known_dimension(&data, data.shape.count - 1) : -1;
    int64_t channels = at < filter.shape.count ? tq_known_dimension(&filter, at) : -1;
    if (channels == 0 || (channels > 0 && depth >= 0 && (depth % channels || (once && depth != channels))))
        tq_report(checker, TQ_PROBLEM_GROUPS, tq_checked_operator(checker, node),
                  "the filter takes %lld channels; the input has %lld", (long long)channels, (long long)depth);
}

/* The number of biases must be dimension `at` of the filter, its output channels. */
static void check_bias(tq_checker *checker, const tq_checked_node *node, uint32_t bias_input, uint32_t at)
{
    tq_known_shape bias = tq_known_shape_of(checker, &node->inputs, bias_input),
                   filter = tq_known_shape_of(checker, &node->inputs, 1);
    int64_t channels = at < filter.shape.count ? tq_known_dimension(&filter, at) : -1;
    uint64_t count;
    if (channels >= 0 && bias.shape.count && tq_known_count(&bias, &count) && count != (uint64_t)channels)
        tq_report(checker, TQ_PROBLEM_SHAPE_MISMATCH, tq_checked_location(checker, node, bias_input),
                  "there are %llu biases; the filter has %lld outputs", (unsigned long long)count, (long long)channels);
}

/* The filter of a depthwise convolution must have depth_multiplier channels for each input channel. */
static void check_depthwise(tq_checker *checker, const tq_checked_node *node)
{
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0),
                   filter = tq_known_shape_of(checker, &node->inputs, 1);
    int64_t depth = data.shape.count == 4 ? tq_known_dimension(&data, 3) : -1;
    int64_t channels = filter.shape.count == 4 ? tq_known_dimension(&filter, 3) : -1;
    if (depth >= 0 && channels >= 0 && (depth == 0 || channels % depth))
        tq_report(checker, TQ_PROBLEM_GROUPS, tq_checked_operator(checker, node),
                  "the filter has %lld channels; the input has %lld, which needs to divide it", (long long)channels,
                  (long long)depth);
    check_bias(checker, node, 2, 3);
}

static void check_conv_2d(tq_checker *checker, const tq_checked_node *node)
{
    check_groups(checker, node, 0, 3, false);
    check_bias(checker, node, 2, 0);
}

static void check_conv_3d(tq_checker *checker, const tq_checked_node *node)
{
    check_groups(checker, node, 0, 3, true);
    check_bias(checker, node, 2, 4);
}

static void check_transpose_conv(tq_checker *checker, const tq_checked_node *node)
{
    check_groups(checker, node, 2, 3, true);
    check_bias(checker, node, 3, 0);
}

static void check_fully_connected(tq_checker *checker, const tq_checked_node *node)
{
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0),
                   weights = tq_known_shape_of(checker, &node->inputs, 1);
    int64_t depth = weights.shape.count == 2 ? tq_known_dimension(&weights, 1) : -1;
    uint64_t count = 0;
    bool known = tq_known_count(&data, &count);
    if (depth == 0 || (depth > 0 && known && count % (uint64_t)depth))
        tq_report(checker, TQ_PROBLEM_GROUPS, tq_checked_operator(checker, node),
                  "the weights take %lld values; the input has %llu, which needs to be a multiple", (long long)depth,
                  (unsigned long long)count);
    check_bias(checker, node, 2, 0);
}

static void check_svdf(tq_checker *checker, const tq_checked_node *node)
{
    tq_known_shape weights = tq_known_shape_of(checker, &node->inputs, 1);
    int64_t rank = tq_get_int(&node->options.table, TQ_SVDFOptions_rank);
    int64_t filters = weights.shape.count ? tq_known_dimension(&weights, 0) : -1;
    if (rank > 0 && filters >= 0 && filters % rank)
        tq_report(checker, TQ_PROBLEM_GROUPS, tq_checked_operator(checker, node),
                  "the rank is %lld; there are %lld filters, which it needs to divide", (long long)rank,
                  (long long)filters);
}

void tq_check_convolutions(tq_checker *checker, const tq_checked_node *node)
{
    static const tq_node_check checks[] = {
        {TQ_BuiltinOperator_DEPTHWISE_CONV_2D, check_depthwise},
        {TQ_BuiltinOperator_FULLY_CONNECTED, check_fully_connected},
        {TQ_BuiltinOperator_SVDF, check_svdf},
        {TQ_BuiltinOperator_CONV_2D, check_conv_2d},
        {TQ_BuiltinOperator_CONV_3D, check_conv_3d},
        {TQ_BuiltinOperator_TRANSPOSE_CONV, check_transpose_conv},
    };
    tq_run_node_checks(checker, node, checks, sizeof checks / sizeof *checks);
}
