/* SPDX-License-Identifier: Apache-2.0
 *
 * What is invalid or suspicious in a model that opened: the rows of problems.def, found by walking it.
 *
 * The checks take time in proportion to the file (n log n for names that must differ) and reads at most
 * 4 * size + 16 MiB of constant data; past that it says so once and goes on without the data.  It
 * allocates 9 bytes a tensor, 9 a subgraph, 16 a level of nested calls and 4 a name.  Of one code it reports the
 * first 1000 finds and, as the last entry, how many more there are.
 */
#ifndef TQ_MODEL_PROBLEMS_PROBLEMS_H
#define TQ_MODEL_PROBLEMS_PROBLEMS_H

#include "model/model.h"

typedef enum tq_problem_code {
#define PROBLEM(symbol, code, severity, text) TQ_PROBLEM_##symbol,
#include "model/problems/problems.def"
#undef PROBLEM
    TQ_PROBLEM_COUNT
} tq_problem_code;

typedef enum tq_severity { TQ_SEVERITY_ERROR, TQ_SEVERITY_WARNING } tq_severity;

typedef struct tq_problem_kind {
    const char *code; /* "scale-count" */
    tq_severity severity;
    const char *text; /* what it means */
} tq_problem_kind;

extern const tq_problem_kind tq_problem_kinds[TQ_PROBLEM_COUNT];

/* "error" or "warning". */
const char *tq_severity_name(tq_severity severity);

/* Where it is.  `slot` is a place in a list: an operator's input, a signature's output. */
typedef enum tq_location_kind {
    TQ_LOCATION_MODEL,
    TQ_LOCATION_OPERATOR_CODE,
    TQ_LOCATION_BUFFER,
    TQ_LOCATION_EXTERNAL_GROUP,
    TQ_LOCATION_EXTERNAL_BUFFER,
    TQ_LOCATION_METADATA,
    TQ_LOCATION_SIGNATURE,
    TQ_LOCATION_SIGNATURE_INPUT,
    TQ_LOCATION_SIGNATURE_OUTPUT,
    TQ_LOCATION_SUBGRAPH,
    TQ_LOCATION_SUBGRAPH_INPUT,
    TQ_LOCATION_SUBGRAPH_OUTPUT,
    TQ_LOCATION_TENSOR,
    TQ_LOCATION_OPERATOR,
    TQ_LOCATION_OPERATOR_INPUT,
    TQ_LOCATION_OPERATOR_OUTPUT,
    TQ_LOCATION_OPERATOR_INTERMEDIATE
} tq_location_kind;

typedef struct tq_location {
    tq_location_kind kind;
    uint32_t subgraph; /* of SUBGRAPH and what follows it */
    uint32_t index;    /* of the tensor, operator, buffer, signature ... */
    uint32_t slot;     /* of INPUT, OUTPUT, INTERMEDIATE */
} tq_location;

typedef struct tq_problem {
    tq_problem_code code;
    tq_location place;
    char location_text[192]; /* "subgraph 0, operator 3 CONV_2D, input 1"; names are cut and made printable */
    char text[256];       /* what was found and what is needed */
} tq_problem;

/* Takes one problem, or NULL, which asks now and then whether to go on; false ends the checks. */
typedef bool tq_problem_sink(void *context, const tq_problem *problem);

/* Reports everything that is wrong with `model`.  Fails with TQ_NO_MEMORY only; a sink that ends the
   checker is no failure. */
tq_status tq_model_problems(const tq_model *model, const tq_allocator *allocator, tq_problem_sink *sink, void *context,
                            tq_error *error);

#endif
