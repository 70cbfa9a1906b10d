/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks, a file for each subject.  model.c calls them in order; operator.c calls the checks of one operator.  Each
 * reports to the checker.  index: a tensor or operator of checker->subgraph, in range.  Those with a status fail with
 * TQ_NO_MEMORY only.
 */
#ifndef TQ_MODEL_PROBLEMS_CHECKS_H
#define TQ_MODEL_PROBLEMS_CHECKS_H

#include "model/problems/node.h"

void tq_check_file(tq_checker *checker); /* file.c */
void tq_check_external(tq_checker *checker);
void tq_check_layout(tq_checker *checker); /* layout.c */
tq_status tq_check_metadata(tq_checker *checker, tq_error *error);
tq_status tq_check_signatures(tq_checker *checker, tq_error *error); /* signature.c */
void tq_check_tensor(tq_checker *checker, uint32_t index); /* tensor.c */
void tq_check_quantization(tq_checker *checker, uint32_t index, const tq_table *tensor); /* quantization.c */
void tq_check_flow(tq_checker *checker); /* graph.c */
void tq_check_operator(tq_checker *checker, uint32_t index); /* operator.c */
void tq_check_options(tq_checker *checker, const tq_checked_node *node); /* options.c */
void tq_check_constants(tq_checker *checker, const tq_checked_node *node); /* constants.c */
void tq_check_shapes(tq_checker *checker, const tq_checked_node *node); /* shapes.c */
void tq_check_convolutions(tq_checker *checker, const tq_checked_node *node); /* convolution.c */
void tq_check_sizes(tq_checker *checker, const tq_checked_node *node); /* sizes.c */
void tq_check_calls(tq_checker *checker, const tq_checked_node *node); /* calls.c */
tq_status tq_check_cycles(tq_checker *checker, tq_error *error);

#endif
