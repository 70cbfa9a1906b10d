/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the checks of one model, and how they report.  For the files of this folder alone.
 */
#ifndef TQ_MODEL_PROBLEMS_CHECKER_H
#define TQ_MODEL_PROBLEMS_CHECKER_H

#include "model/problems/problems.h"

/* Flags of a tensor, in one byte. */
enum {
    TQ_TENSOR_INPUT = 1,     /* of its subgraph */
    TQ_TENSOR_OUTPUT = 2,    /* of its subgraph */
    TQ_TENSOR_CONSTANT = 4,  /* the file stores its data */
    TQ_TENSOR_VARIABLE = 8,
    TQ_TENSOR_GIVEN = 16,    /* has a value before any operator runs, or its lack of one was reported */
    TQ_TENSOR_WRITTEN = 32,  /* an operator that was checked already writes it */
};

typedef struct tq_checker {
    const tq_model *model;
    const tq_allocator *allocator;
    tq_problem_sink *sink;
    void *context;                     /* the sink's */
    bool stopped;                      /* the sink returned false: nothing more is reported */
    uint64_t counts[TQ_PROBLEM_COUNT]; /* problems found, by code, those that are not reported included */
    uint64_t data_left;                /* bytes of constants that may still be read */
    uint8_t *all_flags;                /* TQ_TENSOR_ bits of all tensors of all subgraphs */
    uint64_t *first;                   /* [subgraphs + 1]: the index of a subgraph's tensor 0 in all_flags */
    uint32_t *writers; /* [tensors of the subgraph]: the first operator that writes it, plus 1; 0: none */
    uint32_t *readers; /* [tensors of the subgraph]: the last operator found to read it, plus 1; 0: none */
    /* the subgraph that is being checked */
    uint32_t subgraph_index;
    tq_subgraph subgraph;
    uint8_t *flags; /* all_flags from its tensor 0 on */
} tq_checker;

/* ---- reporting ---- */

/* Hands a problem at `place` to the sink: its text is `format`, cut to the size of tq_problem.text.  Of one code, the
   first 1000 are reported and the rest counted. */
void tq_report(tq_checker *checker, tq_problem_code code, tq_location place, const char *format, ...) TQ_PRINTF(4, 5);

/* Reports how many problems of each code were counted only. */
void tq_report_the_rest(tq_checker *checker);

/* A place outside of subgraphs: item `index` of its list. */
static inline tq_location tq_location_of(tq_location_kind kind, size_t index)
{
    return (tq_location){kind, 0, (uint32_t)index, 0};
}

/* A place in the subgraph that is being checked; `slot` counts only for kinds that have one. */
static inline tq_location tq_location_in(const tq_checker *checker, tq_location_kind kind, size_t index, size_t slot)
{
    return (tq_location){kind, checker->subgraph_index, (uint32_t)index, (uint32_t)slot};
}

#define TQ_NAME_SIZE 64

/* A name cut to 60 bytes at a character of UTF-8, with ? for each control character. */
void tq_printable(tq_bytes name, char out[TQ_NAME_SIZE]);

/* Takes `bytes` from checker->data_left.  False: the budget is spent, which is reported once. */
bool tq_checker_spend(tq_checker *checker, uint64_t bytes, tq_location place);

/* Reports, as `code`, each item whose `field` equals that of an earlier item; items without a name are left out.
   `place` gets the item's number as its slot (in_slots) or as its index.  TQ_NO_MEMORY. */
tq_status tq_check_names(tq_checker *checker, const tq_vector *items, tq_field_id field, tq_problem_code code,
                         tq_location place, bool in_slots, tq_error *error);

#endif
