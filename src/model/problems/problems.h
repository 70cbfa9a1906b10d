/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems: invalid or suspicious parts of a model that opened, a row of problems.def for each kind.
 *
 * The checks take time proportional to the file (n log n for names that must differ) and read at most
 * 4 * size + 16 MiB of constant data; past that budget they report UNCHECKED once and go on without data.  They
 * allocate 9 bytes a tensor, 9 a subgraph, 16 a level of nested calls and 4 a name.  They report the first 1000
 * problems of each code and, last, the number of the others.
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
    const char *text; /* its meaning */
} tq_problem_kind;

extern const tq_problem_kind tq_problem_kinds[TQ_PROBLEM_COUNT];

/* "error" or "warning". */
const char *tq_severity_name(tq_severity severity);

/* The kind of a location.  `slot` is an index in a list: an operator's inputs, a signature's outputs. */
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
    uint32_t subgraph; /* of TQ_LOCATION_SUBGRAPH and the kinds after it */
    uint32_t index;    /* of the tensor, operator, buffer, signature ... */
    uint32_t slot;     /* of INPUT, OUTPUT, INTERMEDIATE */
} tq_location;

typedef struct tq_problem {
    tq_problem_code code;
    tq_location location;
    char location_text[192]; /* "subgraph 0, operator 3 CONV_2D, input 1"; names are cut and made printable */
    char text[256];       /* what was found and what is needed */
} tq_problem;

/* Takes a problem, which lives until the function returns, or NULL, now and then, as a question whether to go on. False
   ends the checks. */
typedef bool tq_problem_sink(void *context, const tq_problem *problem);

/* Checks the model and hands every problem to the sink.  TQ_NO_MEMORY; false from the sink is no failure. */
tq_status tq_model_problems(const tq_model *model, const tq_allocator *allocator, tq_problem_sink *sink, void *context,
                            tq_error *error);

#endif
