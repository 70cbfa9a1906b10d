/* SPDX-License-Identifier: Apache-2.0
 *
 * SKIP_GRAM: a text to its n-grams: ngram_size of its words in their order, of which each follows the one before with at most
 * max_skip_size words between; with include_all_ngrams also shorter ones, each behind the longer ones that begin with it.
 * A text of fewer words has none.
 *
 * Words are parted by ASCII white space.  A part that begins with white space, as behind another such, is no word, but the
 * last part of a text is one whatever it begins with.
 *
 * Source: LiteRT f6745779, tflite/kernels/skip_gram.cc.
 */
#include <string.h>

#include "model/tensor.h"
#include "ops/check.h"
#include "ops/scratch.h"

typedef struct word {
    uint32_t at, size;
} word;

typedef struct grams {
    int64_t size, skip;
    bool all;
    size_t words;
    uint64_t words_at, stack_at; /* in scratch */
} grams;

/* ---- words ---- */

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static tq_status text_of(const tq_node *node, tq_bytes *out, tq_error *error)
{
    tq_strings strings;
    tq_status status = tq_strings_open((tq_bytes){node->in[0]->data, node->in[0]->bytes}, &strings, NULL);
    if (status != TQ_OK || strings.count < 1)
        return tq_op_fail(node, error, TQ_BAD_STRINGS, "input 0 holds no string");
    *out = tq_strings_item(&strings, 0);
    return TQ_OK;
}

/* How many words there are; they are written to `words` unless it is NULL. */
static size_t find_words(tq_bytes text, word *words)
{
    size_t count = 0, begin = 0;
    for (size_t i = 1; i <= text.size; i++) {
        bool last = i == text.size;
        if (!last && !is_space(text.data[i]))
            continue;
        if (i > begin && (last || !is_space(text.data[begin]))) {
            if (words)
                words[count] = (word){(uint32_t)begin, (uint32_t)(i - begin)};
            count++;
        }
        begin = i + 1;
    }
    return count;
}

/* ---- n-grams ---- */

typedef struct writer {
    const word *words;
    tq_bytes text;
    uint8_t *out; /* NULL: only count */
    uint64_t count, bytes;
    uint64_t header;
} writer;

/* Counts a gram, or writes it with single spaces between its words. */
static void emit(writer *w, const uint32_t *stack, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const word *from = &w->words[stack[i]];
        if (w->out && i > 0)
            w->out[w->header + w->bytes] = ' ';
        w->bytes += i > 0;
        if (w->out)
            memcpy(w->out + w->header + w->bytes, w->text.data + from->at, from->size);
        w->bytes += from->size;
    }
    w->count++;
    if (w->out) {
        int32_t end = (int32_t)(w->header + w->bytes);
        memcpy(w->out + 4 * (w->count + 1), &end, 4);
    }
}

/* Whether the gram may go on: within the skip, and with words enough left for a whole one if only such count. */
static bool goes_on(const grams *s, const uint32_t *stack, size_t depth, uint32_t next)
{
    if ((int64_t)depth >= s->size || next >= s->words)
        return false;
    if (depth > 0 && (int64_t)next - stack[depth - 1] - 1 > s->skip)
        return false;
    return s->all || (int64_t)(s->words - next) >= s->size - (int64_t)depth;
}

/* All grams in the order of a walk in depth.  Each step down leads to at least one, so that the limit of what strings may take
   bounds the walk. */
static void walk(const grams *s, uint32_t *stack, writer *w)
{
    size_t depth = 0;
    uint32_t next = 0; /* the word to try at `depth` */
    for (;;) {
        if (goes_on(s, stack, depth, next) && w->bytes + 4 * w->count <= INT32_MAX) {
            stack[depth++] = next++;
            continue;
        }
        if (depth == 0)
            return;
        if (s->all || (int64_t)depth == s->size)
            emit(w, stack, depth);
        next = stack[--depth] + 1;
    }
}

static tq_status eval_skip_gram(tq_node *node, tq_error *error)
{
    const grams *s = node->state;
    word *words = tq_scratch_at(node, s->words_at);
    uint32_t *stack = tq_scratch_at(node, s->stack_at);
    writer w = {.words = words};
    TQ_TRY(text_of(node, &w.text, error));
    find_words(w.text, words);
    bool any = s->size > 0 && (uint64_t)s->size <= s->words;
    if (any)
        walk(s, stack, &w);
    uint64_t header = 4 * (w.count + 2);
    if (header + w.bytes > INT32_MAX)
        return tq_output_fail(node, 0, error, "would take more than 2 GB of strings");
    tq_shape shape = {1, {(int32_t)w.count}};
    TQ_TRY(tq_output_bytes(node, 0, &shape, header + w.bytes, error));
    w.out = node->out[0]->data;
    int32_t count = (int32_t)w.count, begin = (int32_t)header;
    memcpy(w.out, &count, 4);
    memcpy(w.out + 4, &begin, 4);
    w.header = header;
    w.count = w.bytes = 0;
    if (any)
        walk(s, stack, &w);
    return TQ_OK;
}

/* The words of the text at hand need so much room. */
static tq_status find_room(tq_node *node, tq_error *error)
{
    grams *s = node->state;
    tq_bytes text;
    uint64_t total = 0;
    TQ_TRY(text_of(node, &text, error));
    s->words = find_words(text, NULL);
    uint64_t depth = s->size > 0 && (uint64_t)s->size <= s->words ? (uint64_t)s->size : 0;
    s->words_at = tq_scratch_part(&total, s->words, sizeof(word));
    s->stack_at = tq_scratch_part(&total, depth, sizeof(uint32_t));
    tq_output_later(node, 0);
    return tq_node_scratch(node, total, error);
}

tq_status tq_prepare_skip_gram(tq_node *node, tq_error *error)
{
    grams *s = NULL;
    TQ_TRY(tq_check_counts(node, 1, 1, 1, 1, error));
    TQ_TRY(tq_check_input(node, 0, TQ_T(STRING), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    if (tq_tensor_count(node->in[0]) < 1)
        return tq_input_fail(node, 0, error, "has no elements; it needs a text");
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->size = tq_get_int(&node->options.table, TQ_SkipGramOptions_ngram_size);
    s->skip = tq_get_int(&node->options.table, TQ_SkipGramOptions_max_skip_size);
    s->all = tq_get_int(&node->options.table, TQ_SkipGramOptions_include_all_ngrams) != 0;
    node->eval = eval_skip_gram;
    return tq_shape_from_values(node, 1u << 0, find_room, error);
}
