/* SPDX-License-Identifier: Apache-2.0
 *
 * The arity of operators, from the rows of arity.def: the number of inputs and outputs, which of them are optional, and
 * which inputs hold state.  An operator without a row has any number of tensors, all optional.
 */
#ifndef TQ_MODEL_ARITY_H
#define TQ_MODEL_ARITY_H

#include "model/model.h"

typedef enum tq_arity_fit { TQ_ARITY_FITS, TQ_ARITY_INPUTS, TQ_ARITY_OUTPUTS } tq_arity_fit;

enum { TQ_ARITY_TEXT = 64 }; /* bytes of a text, with its NUL */

/* Whether these numbers of inputs and outputs fit the operator, or which does not.  needed: the numbers that fit, as
   text ("2 to 3", "20 or 24"); numbers of outputs are those for this number of inputs; "" for TQ_ARITY_FITS. */
tq_arity_fit tq_arity_check(const tq_operator *op, uint32_t inputs, uint32_t outputs, char needed[TQ_ARITY_TEXT]);

/* Whether the input, any index, may be -1; whether all outputs may be -1. */
bool tq_arity_optional_input(const tq_operator *op, uint32_t input);
bool tq_arity_optional_output(const tq_operator *op);

/* Whether the input, any index, must be a variable. */
bool tq_arity_is_state(const tq_operator *op, uint32_t input);

#endif
