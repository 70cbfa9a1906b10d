/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file is that is no model, by its first bytes.
 */
#ifndef TQ_MODEL_FILETYPES_H
#define TQ_MODEL_FILETYPES_H

#include "base/bytes.h"

/* "a zip archive ..."; NULL: not known, or a model's identifier stands in its place. */
const char *tq_filetype(tq_bytes file);

#endif
