/* SPDX-License-Identifier: Apache-2.0
 *
 * A model: views over a verified file.  Only opening allocates: little, and an index of external
 * buffers.  An open model may be read from several threads at once.  The caller's bytes must outlive
 * the model and every view of it.
 *
 * Reading is lenient: indices in a file need not fit, and these functions answer "none" for one that
 * does not.  problems.h lists such things.
 */
#ifndef TQ_MODEL_MODEL_H
#define TQ_MODEL_MODEL_H

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/shared.h"
#include "base/status.h"
#include "flatbuffer/table.h"

#define TQ_MODEL_IDENTIFIER "TFL3" /* bytes 4 to 7 of a file */

/* Buffers and custom options outside the flatbuffer have offsets from here on; 0 and 1 mean unset. */
enum { TQ_FIRST_OUTSIDE_OFFSET = 2 };

typedef struct tq_model {
    tq_bytes file;
    tq_table root;
    tq_vector operator_codes, subgraphs, buffers, metadata, signatures;
    tq_vector external_groups, external_buffers;
    uint64_t *external_index; /* id << 32 | place in external_buffers, sorted; NULL without them */
    tq_allocator allocator;
    tq_shared *shared; /* values that interpreters make of constants, once for all interpreters */
} tq_model;

typedef struct tq_subgraph {
    tq_table table;
    tq_vector tensors, operators, inputs, outputs;
} tq_subgraph;

typedef struct tq_operator {
    tq_table table;
    int64_t code; /* TQ_BuiltinOperator_x, or one that the schema does not know; -1: opcode_index is out of range */
    int32_t version; /* 1 where the operator code does not say */
    tq_bytes custom_name; /* data NULL unless code is CUSTOM and the file names it */
} tq_operator;

/* Verifies `file` and makes `model` a view of it, which tq_model_close ends. */
tq_status tq_model_open(tq_bytes file, const tq_allocator *allocator, tq_model *model, tq_error *error);
void tq_model_close(tq_model *model);

bool tq_model_has_identifier(const tq_model *model);

/* Absent parts (an index out of range) have table.at == 0. */
tq_subgraph tq_model_subgraph(const tq_model *model, size_t index);
tq_operator tq_model_operator(const tq_model *model, const tq_subgraph *subgraph, size_t index);

/* An operator code's number: the larger of its two fields. */
int64_t tq_operator_code_builtin(const tq_table *operator_code);

/* The options table of an operator: the one of builtin_options and builtin_options_2 that is set.
   `id` is TQ_TABLE_NONE where there is none or its type is not known. */
typedef struct tq_options {
    tq_table_id id;
    tq_table table;
} tq_options;
tq_options tq_operator_options(const tq_operator *op);

/* An operator's custom options, from its vector or from large_custom_options_offset and _size.
   data NULL: none.  Fails with TQ_DATA_RANGE. */
tq_status tq_operator_custom_options(const tq_operator *op, tq_bytes *out, tq_error *error);

/* A buffer's bytes: Buffer.data, or offset and size for files over 2 GB.  data NULL: the buffer has
   neither, or there is no such buffer.  This is where a buffer is checked (see verify.h): fails with
   TQ_DATA_RANGE and as tq_table_find and tq_vector_find do. */
tq_status tq_model_buffer(const tq_model *model, uint64_t index, tq_bytes *out, tq_error *error);

/* An external buffer by the id that Tensor.external_buffer holds, which is not its index.
   at == 0: none has it. */
tq_table tq_model_external_buffer(const tq_model *model, int64_t id);

#endif
