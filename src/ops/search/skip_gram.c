/* SPDX-License-Identifier: Apache-2.0
 *
 * SKIP_GRAM: all sequences of ngram_size words of a text, in order, with up to max_skip_size words skipped between two
 * neighbours; with include_all_ngrams also shorter sequences.
 *
 * White space separates words; the text after the last white space is a word too, even if it begins with white space.
 * Source: LiteRT f6745779, tflite/kernels/skip_gram.cc, also for the order of the grams.
 */
#include <string.h>

#include "model/tensor.h"
#include "ops/check.h"

typedef struct word {
    uint32_t at, size;
} word;

/* A walk over all grams, which counts them and their bytes, or writes them. */
typedef struct grams {
    const unsigned char *text;
    const word *words;
    uint32_t *stack; /* indices of the words of the current gram */
    int64_t word_count, size, skip;
    bool all;
    uint64_t count, bytes;
    unsigned char *out; /* NULL: only count */
    uint64_t at;        /* in out */
} grams;

static bool is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static uint32_t find_words(tq_bytes text, word *out)
{
    uint32_t count = 0, begin = 0, size = (uint32_t)text.size;
    for (uint32_t i = 1; i < size; i++) {
        if (!is_space(text.data[i]))
            continue;
        if (i > begin && !is_space(text.data[begin]))
            out[count++] = (word){begin, i - begin};
        begin = i + 1;
    }
    if (size > begin)
        out[count++] = (word){begin, size - begin};
    return count;
}

static void take_gram(grams *g, int64_t size)
{
    uint64_t bytes = (uint64_t)size - 1;
    if (tq_stop_after((size_t)size))
        return;
    for (int64_t i = 0; i < size; i++)
        bytes += g->words[g->stack[i]].size;
    if (g->out != NULL) {
        int32_t end = (int32_t)(g->at + bytes);
        for (int64_t i = 0; i < size; i++) {
            word w = g->words[g->stack[i]];
            if (i > 0)
                g->out[g->at++] = ' ';
            memcpy(g->out + g->at, g->text + w.at, w.size);
            g->at += w.size;
        }
        memcpy(g->out + 4 * (g->count + 2), &end, 4);
    }
    g->count++;
    g->bytes += bytes;
}

/* Whether the walk can advance the word at `depth`. */
static bool can_advance(const grams *g, int64_t depth)
{
    int64_t left = g->word_count - 2 - (depth < g->size ? g->stack[depth] : 0); /* words after the next one */
    if (depth >= g->size || left < 0)
        return false;
    /* too few words to complete a gram: without this test a walk may take 2^n steps */
    if (!g->all && left < g->size - depth - 1)
        return false;
    return depth == 0 || (int64_t)g->stack[depth] - g->stack[depth - 1] <= g->skip;
}

/* All grams, or as many as fit in 2 GB. */
static void walk(grams *g)
{
    size_t work = 0;
    memset(g->stack, 0, (size_t)g->size * sizeof *g->stack);
    g->count = g->bytes = 0;
    for (int64_t depth = 1; depth >= 0 && 4 * (g->count + 2) + g->bytes <= INT32_MAX && !tq_stop_count(&work, 8);) {
        if (can_advance(g, depth)) {
            g->stack[depth++]++;
            if (depth < g->size)
                g->stack[depth] = g->stack[depth - 1];
            continue;
        }
        if (depth > 0 && (g->all ? depth <= g->size : depth == g->size))
            take_gram(g, depth);
        depth--;
    }
}

static tq_status eval_skip_gram(tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    tq_bytes bytes = {node->in[0]->data, node->in[0]->bytes};
    tq_strings strings;
    TQ_TRY(tq_strings_open(bytes, &strings, error));
    if (strings.count < 1)
        return tq_input_fail(node, 0, error, "has no string; it needs one");
    tq_bytes text = tq_strings_item(&strings, 0);
    word *words = node->scratch;
    grams g = {.text = text.data, .words = words, .stack = (uint32_t *)(void *)(words + text.size + 1)};
    g.word_count = find_words(text, words);
    g.size = tq_get_int(options, TQ_SkipGramOptions_ngram_size);
    g.skip = tq_get_int(options, TQ_SkipGramOptions_max_skip_size);
    g.all = tq_get_int(options, TQ_SkipGramOptions_include_all_ngrams) != 0;
    if (g.size > 0 && g.size <= g.word_count)
        walk(&g);
    if (tq_stop_now())
        return TQ_INTERRUPTED; /* the count is incomplete */
    uint64_t header = 4 * (g.count + 2);
    tq_shape shape = {1, {(int32_t)(g.count < INT32_MAX ? g.count : INT32_MAX)}};
    if (header + g.bytes > INT32_MAX)
        return tq_output_fail(node, 0, error, "would take more than 2 GB of strings");
    TQ_TRY(tq_output_bytes(node, 0, &shape, header + g.bytes, error));
    int32_t count = (int32_t)g.count, first = (int32_t)header;
    g.out = node->out[0]->data;
    g.at = header;
    memcpy(g.out, &count, 4);
    memcpy(g.out + 4, &first, 4);
    if (g.size > 0 && g.size <= g.word_count)
        walk(&g);
    return TQ_OK;
}

/* Scratch for the words and the stack: at most one of each for each byte. */
static tq_status request_scratch(tq_node *node, tq_error *error)
{
    return tq_node_scratch(node, ((uint64_t)node->in[0]->bytes + 1) * (sizeof(word) + sizeof(uint32_t)), error);
}

tq_status tq_prepare_skip_gram(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(STRING), error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(STRING), error));
    tq_output_later(node, 0);
    node->eval = eval_skip_gram;
    return tq_shape_from_values(node, 1u << 0, request_scratch, error);
}
