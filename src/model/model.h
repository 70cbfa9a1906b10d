/* SPDX-License-Identifier: Apache-2.0
 *
 * A model: views over a verified file.  Only opening allocates: a few bytes, and an index of external
 * buffers.  Several threads may read an open model at once.  The caller's bytes must outlive the model and
 * every view of it.
 *
 * Reading is lenient: for an index out of range these functions return "none".  problems.h reports such
 * indices.
 */
#ifndef TQ_MODEL_MODEL_H
#define TQ_MODEL_MODEL_H

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/shared.h"
#include "base/status.h"
#include "flatbuffer/table.h"

#define TQ_MODEL_IDENTIFIER "TFL3" /* bytes 4 to 7 of a file */

/* The least offset of buffers and custom options outside the flatbuffer; 0 and 1 mean unset. */
enum { TQ_FIRST_OUTSIDE_OFFSET = 2 };

typedef struct tq_model {
    tq_bytes file;
    tq_table root;
    tq_vector operator_codes, subgraphs, buffers, metadata, signatures;
    tq_vector external_groups, external_buffers;
    uint64_t *external_index; /* [external_buffers.count]: id << 32 | index, sorted; NULL: none */
    tq_allocator allocator;
    tq_shared *shared; /* values made of constants, which all interpreters of the model share */
} tq_model;

typedef struct tq_subgraph {
    tq_table table;
    tq_vector tensors, operators, inputs, outputs;
} tq_subgraph;

typedef struct tq_operator {
    tq_table table;
    int64_t code; /* TQ_BuiltinOperator_x, or a value unknown to the schema; -1: opcode_index is out of range */
    int32_t version; /* 1 where the file has none */
    tq_bytes custom_name; /* data NULL unless code is CUSTOM and the file has a name */
} tq_operator;

/* Verifies `file`, of any size, and opens a view of it.  The caller closes it.  Fails as tq_verify does; TQ_NO_MEMORY.
 */
tq_status tq_model_open(tq_bytes file, const tq_allocator *allocator, tq_model *model, tq_error *error);
void tq_model_close(tq_model *model);

/* Whether bytes 4 to 7 of the file are TQ_MODEL_IDENTIFIER. */
bool tq_model_has_identifier(const tq_model *model);

/* The subgraph or operator at any index; table.at == 0: out of range. */
tq_subgraph tq_model_subgraph(const tq_model *model, size_t index);
tq_operator tq_model_operator(const tq_model *model, const tq_subgraph *subgraph, size_t index);

/* The builtin operator of an OperatorCode: the larger of its two fields. */
int64_t tq_operator_code_builtin(const tq_table *operator_code);

/* The options table of an operator: builtin_options or builtin_options_2, whichever is set.  id TQ_TABLE_NONE: no
   options, or options of unknown type. */
typedef struct tq_options {
    tq_table_id id;
    tq_table table;
} tq_options;
tq_options tq_operator_options(const tq_operator *op);

/* The unions of a file's operator that may hold its options. */
typedef struct tq_option_union {
    tq_field_id field;
    tq_union_id members;
} tq_option_union;

enum { TQ_OPTION_UNIONS = 2 };
extern const tq_option_union tq_option_unions[TQ_OPTION_UNIONS];

/* The custom options of an operator, from custom_options or from large_custom_options_offset and _size.  data NULL:
   none.  TQ_DATA_RANGE: they pass the end of the file. */
tq_status tq_operator_custom_options(const tq_operator *op, tq_bytes *out, tq_error *error);

/* The bytes of the buffer at any index: Buffer.data, or Buffer.offset and size in files over 2 GB.  data NULL: the
   buffer stores none, or the index is out of range.  Checks the buffer (verify.h): TQ_DATA_RANGE, and the failures of
   tq_table_find and tq_vector_find. */
tq_status tq_model_buffer(const tq_model *model, uint64_t index, tq_bytes *out, tq_error *error);

/* The external buffer with an id (Tensor.external_buffer), which is not its index.  at == 0: none. */
tq_table tq_model_external_buffer(const tq_model *model, int64_t id);

#endif
