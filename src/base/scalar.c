/* SPDX-License-Identifier: Apache-2.0 */
#include "base/scalar.h"

const uint8_t tq_scalar_size[TQ_SCALAR_COUNT] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
