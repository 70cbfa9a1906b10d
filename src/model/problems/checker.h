/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the checks of one model, and reporting.  For the files of this folder only.
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
    TQ_TENSOR_GIVEN = 16,    /* has a value before any operator runs, or was reported as having none */
    TQ_TENSOR_WRITTEN = 32,  /* a checked operator writes it */
};

typedef struct tq_checker {
    const tq_model *model;
    const tq_allocator *allocator;
    tq_problem_sink *sink;
    void *context;                     /* the sink's */
    bool stopped;                      /* the sink returned false: nothing more is reported */
    uint64_t counts[TQ_PROBLEM_COUNT]; /* problems by code, reported or not */
    uint64_t data_left;                /* bytes of constants that may still be read */
    uint8_t *all_flags;                /* TQ_TENSOR_ bits of all tensors of all subgraphs */
    uint64_t *first;                   /* [subgraphs + 1]: the index of a subgraph's tensor 0 in all_flags */
    uint32_t *writers; /* [tensors of the subgraph]: the first operator that writes the tensor, plus 1; 0: none */
    uint32_t *readers; /* [tensors of the subgraph]: the last checked operator that reads the tensor, plus 1; 0: none */
    /* the subgraph under check */
    uint32_t subgraph_index;
    tq_subgraph subgraph;
    uint8_t *flags; /* [tensors of the subgraph]: in all_flags */
} tq_checker;

/* ---- reporting ---- */

/* Hands a problem to the sink, with the formatted text, cut to the size of tq_problem.text.  The first 1000 problems of
   a code are reported, all are counted. */
void tq_report(tq_checker *checker, tq_problem_code code, tq_location location, const char *format, ...)
    TQ_PRINTF(4, 5);

/* Reports for each code the number of problems that were counted only. */
void tq_report_the_rest(tq_checker *checker);

/* A location outside of subgraphs: item `index` of its list. */
static inline tq_location tq_location_of(tq_location_kind kind, size_t index)
{
    return (tq_location){kind, 0, (uint32_t)index, 0};
}

/* A location in the subgraph under check; slot: 0 for kinds without one. */
static inline tq_location tq_location_in(const tq_checker *checker, tq_location_kind kind, size_t index, size_t slot)
{
    return (tq_location){kind, checker->subgraph_index, (uint32_t)index, (uint32_t)slot};
}

#define TQ_NAME_SIZE 64

/* A name, cut to 60 bytes at the start of a UTF-8 character, with ? for each control character, and a NUL. */
void tq_printable(tq_bytes name, char out[TQ_NAME_SIZE]);

/* Charges `bytes` to checker->data_left.  False: the budget is exhausted, which is reported once, at `location`. */
bool tq_checker_spend(tq_checker *checker, uint64_t bytes, tq_location location);

/* Reports, as `code`, each table in `items` whose string `field` equals that of an earlier one; absent and empty names
   are skipped.  The location's slot (in_slots) or index is set to the item's index.  TQ_NO_MEMORY. */
tq_status tq_check_names(tq_checker *checker, const tq_vector *items, tq_field_id field, tq_problem_code code,
                         tq_location location, bool in_slots, tq_error *error);

#endif
