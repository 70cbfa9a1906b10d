/* SPDX-License-Identifier: Apache-2.0
 *
 * How many tensors an operator takes and gives, which of them it may leave out, and which hold state: arity.def by
 * operator.  An operator without a row takes and gives any number, and may leave out any.
 */
#ifndef TQ_MODEL_ARITY_H
#define TQ_MODEL_ARITY_H

#include "model/model.h"

typedef enum tq_arity_fit { TQ_ARITY_FITS, TQ_ARITY_INPUTS, TQ_ARITY_OUTPUTS } tq_arity_fit;

enum { TQ_ARITY_TEXT = 64 };

/* Which count does not fit the operator.  needed: the counts that do, in words ("2 to 3", "20 or 24"), of outputs for
   the number of inputs at hand; "" where all fits. */
tq_arity_fit tq_arity_check(const tq_operator *op, uint32_t inputs, uint32_t outputs, char needed[TQ_ARITY_TEXT]);

/* Whether this input, or an output, may be -1. */
bool tq_arity_optional_input(const tq_operator *op, uint32_t input);
bool tq_arity_optional_output(const tq_operator *op);

/* Whether this input must be a variable. */
bool tq_arity_is_state(const tq_operator *op, uint32_t input);

#endif
