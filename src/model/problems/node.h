/* SPDX-License-Identifier: Apache-2.0
 *
 * One operator under check, and its facts as far as the file fixes them.
 */
#ifndef TQ_MODEL_PROBLEMS_NODE_H
#define TQ_MODEL_PROBLEMS_NODE_H

#include "model/problems/checker.h"

typedef struct tq_checked_node {
    uint32_t index; /* in the subgraph */
    tq_operator op;
    tq_options options; /* id: the operator's own options.  table.at == 0: absent, and every field has its default */
    tq_vector inputs, outputs; /* int32 tensor indices, not checked */
} tq_checked_node;

/* ---- inputs; slot: any value ---- */

/* The tensor of input `slot`; at == 0: no such input, or its index is -1 or out of range. */
tq_table tq_checked_input(const tq_checker *checker, const tq_checked_node *node, uint32_t slot);

/* The location of input `slot`, and of the operator. */
tq_location tq_checked_location(const tq_checker *checker, const tq_checked_node *node, uint32_t slot);

static inline tq_location tq_checked_operator(const tq_checker *checker, const tq_checked_node *node)
{
    return tq_location_in(checker, TQ_LOCATION_OPERATOR, node->index, 0);
}

/* A row of a table of checks for an operator code. */
typedef struct tq_node_check {
    int64_t op;
    void (*check)(tq_checker *checker, const tq_checked_node *node);
} tq_node_check;

/* Calls all of the `count` rows whose `op` is the node's. */
void tq_run_node_checks(tq_checker *checker, const tq_checked_node *node, const tq_node_check *checks, size_t count);

/* ---- shapes ---- */

/* A tensor's shape as far as the file fixes it. */
typedef struct tq_known_shape {
    bool known;                 /* the rank */
    tq_vector shape, signature; /* int32; signature: -1 for an open dimension */
    bool constant;              /* the tensor is a constant: `shape` counts, not `signature` */
} tq_known_shape;

/* The shape of the tensor at `slot` (any value) of a vector of tensor indices; all zero: no tensor. */
tq_known_shape tq_known_shape_of(const tq_checker *checker, const tq_vector *tensors, uint32_t slot);

/* Dimension i; -1: open, or i >= the rank.  The file may store other negative dimensions. */
int64_t tq_known_dimension(const tq_known_shape *shape, uint32_t i);

/* The number of elements.  False: a dimension is open or negative, or the product passes 2^62. */
bool tq_known_count(const tq_known_shape *shape, uint64_t *out);

/* ---- constants of integers ---- */

/* The values of a constant input of an integer type of at least 8 bits. */
typedef struct tq_integers {
    const uint8_t *data; /* little-endian, at any alignment */
    uint64_t count;
    unsigned size; /* bytes of a value: 1, 2, 4 or 8 */
    bool is_signed;
} tq_integers;

/* The values of input `slot`.  False: no constant, another type, sparse, too few bytes, or the budget is exhausted. */
bool tq_checked_integers(tq_checker *checker, const tq_checked_node *node, uint32_t slot, tq_integers *out);

/* Value i < count.  UINT64 values above 2^63 - 1 become negative. */
int64_t tq_integer(const tq_integers *integers, uint64_t i);

/* *out: the sum of both paddings of dimension i, from a constant of 2 values a dimension; 2 * i + 1 < count.  False:
   one of them is negative. */
bool tq_pads_at(const tq_integers *pads, uint64_t i, uint64_t *out);

#endif
