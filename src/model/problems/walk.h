/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files problems_*.c share: the state of one walk, and how it reports.  Not for others.
 */
#ifndef TQ_MODEL_PROBLEMS_WALK_H
#define TQ_MODEL_PROBLEMS_WALK_H

#include "model/problems/problems.h"

/* What is known of a tensor, one byte each. */
enum {
    TQ_TENSOR_INPUT = 1,     /* of its subgraph */
    TQ_TENSOR_OUTPUT = 2,    /* of its subgraph */
    TQ_TENSOR_CONSTANT = 4,  /* the file stores its data */
    TQ_TENSOR_VARIABLE = 8,
    TQ_TENSOR_GIVEN = 16,    /* readable before any operator ran; also: blamed already */
    TQ_TENSOR_WRITTEN = 32,  /* by an operator up to where the walk is */
};

typedef struct tq_walk {
    const tq_model *model;
    const tq_allocator *allocator;
    tq_problem_sink *sink;
    void *context;
    bool stopped;
    uint64_t counts[TQ_PROBLEM_COUNT];
    uint64_t data_left; /* bytes of constants that may still be read */
    uint8_t *all_flags; /* of all tensors of all subgraphs */
    uint64_t *first;    /* a subgraph: its first in all_flags; one more closes the last */
    uint32_t *writers;  /* a tensor of the current subgraph: its first writer + 1, or 0 */
    uint32_t *readers;  /* a tensor of the current subgraph: the last operator + 1 that was seen to read it */
    /* the current subgraph */
    uint32_t subgraph_index;
    tq_subgraph subgraph;
    uint8_t *flags;
} tq_walk;

/* ---- reporting ---- */

void tq_report(tq_walk *walk, tq_problem_code code, tq_place place, const char *format, ...) TQ_PRINTF(4, 5);

static inline tq_place tq_place_of(tq_place_kind kind, size_t index)
{
    return (tq_place){kind, 0, (uint32_t)index, 0};
}

static inline tq_place tq_place_in(const tq_walk *walk, tq_place_kind kind, size_t index, size_t slot)
{
    return (tq_place){kind, walk->subgraph_index, (uint32_t)index, (uint32_t)slot};
}

#define TQ_NAME_SIZE 64

/* A name cut to 60 bytes, with ? for control characters. */
void tq_printable(tq_bytes name, char out[TQ_NAME_SIZE]);

/* Takes `bytes` from what may be read; false: no more may, which is reported once. */
bool tq_walk_spend(tq_walk *walk, uint64_t bytes, tq_place place);

/* Reports each name that an earlier item of the vector has too; items without a name count for nothing. */
tq_status tq_check_names(tq_walk *walk, const tq_vector *items, tq_field_id field, tq_problem_code code, tq_place place,
                         bool in_slots, tq_error *error);

/* ---- one operator, as the checks of operators see it ---- */

typedef struct tq_node {
    uint32_t index;
    tq_operator op;
    tq_options options; /* at == 0, of the right id: absent, so that every field has its default */
    tq_vector inputs, outputs;
} tq_node;

/* The tensor of an input; at == 0: none, or out of range. */
tq_table tq_node_input(const tq_walk *walk, const tq_node *node, uint32_t slot);
tq_place tq_node_place(const tq_walk *walk, const tq_node *node, uint32_t slot);

static inline tq_place tq_node_whole(const tq_walk *walk, const tq_node *node)
{
    return tq_place_in(walk, TQ_PLACE_OPERATOR, node->index, 0);
}

/* Runs the checks that belong to the operator. */
typedef struct tq_node_check {
    int64_t op;
    void (*check)(tq_walk *walk, const tq_node *node);
} tq_node_check;
void tq_run_checks(tq_walk *walk, const tq_node *node, const tq_node_check *checks, size_t count);

/* A shape as far as the file fixes it. */
typedef struct tq_known_shape {
    bool known; /* the rank */
    tq_vector shape, signature;
    bool constant;
} tq_known_shape;
tq_known_shape tq_known_shape_of(const tq_walk *walk, const tq_vector *tensors, uint32_t slot);
int64_t tq_known_dimension(const tq_known_shape *shape, uint32_t i); /* -1: not known */
bool tq_known_count(const tq_known_shape *shape, uint64_t *out);     /* false: not known */

/* The values of an input that is a constant of integers. */
typedef struct tq_integers {
    const uint8_t *data;
    uint64_t count;
    unsigned size; /* bytes of one */
    bool is_signed;
} tq_integers;
bool tq_node_integers(tq_walk *walk, const tq_node *node, uint32_t slot, tq_integers *out);
int64_t tq_integer(const tq_integers *integers, uint64_t i);

/* By how much a constant of pairs pads dimension i, front and back; false: a pad is negative. */
bool tq_pads_at(const tq_integers *pads, uint64_t i, uint64_t *out);

/* ---- the checks, one subject a file ---- */

void tq_check_file(tq_walk *walk);                                    /* problems_file.c */
void tq_check_external(tq_walk *walk);
void tq_check_layout(tq_walk *walk);                                  /* problems_layout.c */
tq_status tq_check_metadata(tq_walk *walk, tq_error *error);
tq_status tq_check_signatures(tq_walk *walk, tq_error *error);        /* problems_signature.c */
void tq_check_tensor(tq_walk *walk, uint32_t index);                  /* problems_tensor.c */
void tq_check_quantization(tq_walk *walk, uint32_t index, const tq_table *tensor); /* problems_quantization.c */
void tq_check_flow(tq_walk *walk);                                    /* problems_graph.c */
void tq_check_operator(tq_walk *walk, uint32_t index);                /* problems_operator.c */
void tq_check_options(tq_walk *walk, const tq_node *node);            /* problems_options.c */
void tq_check_constants(tq_walk *walk, const tq_node *node);          /* problems_constants.c */
void tq_check_shapes(tq_walk *walk, const tq_node *node);             /* problems_shapes.c */
void tq_check_convolutions(tq_walk *walk, const tq_node *node);       /* problems_convolution.c */
void tq_check_sizes(tq_walk *walk, const tq_node *node);              /* problems_sizes.c */
void tq_check_calls(tq_walk *walk, const tq_node *node);              /* problems_calls.c */
tq_status tq_check_cycles(tq_walk *walk, tq_error *error);

#endif
