/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of all checks of a model: the file, its subgraphs one by one, cycles of calls, signatures.
 */
#include "model/problems/checks.h"

static tq_status prepare(tq_checker *checker, tq_error *error)
{
    uint32_t subgraphs = checker->model->subgraphs.count;
    tq_status status =
        tq_allocate(checker->allocator, (uint64_t)subgraphs + 1, sizeof *checker->first, &checker->first, error);
    if (status != TQ_OK)
        return status;
    uint64_t most = 0;
    for (uint32_t i = 0; i < subgraphs; i++) {
        uint32_t tensors = tq_model_subgraph(checker->model, i).tensors.count;
        checker->first[i + 1] = checker->first[i] + tensors;
        most = tensors > most ? tensors : most;
    }
    status = tq_allocate(checker->allocator, checker->first[subgraphs], 1, &checker->all_flags, error);
    if (status == TQ_OK)
        status = tq_allocate(checker->allocator, most, sizeof *checker->writers, &checker->writers, error);
    if (status == TQ_OK)
        status = tq_allocate(checker->allocator, most, sizeof *checker->readers, &checker->readers, error);
    return status;
}

/* Whether the checks go on to item `index`; asks the sink now and then. */
static bool goes_on(tq_checker *checker, uint32_t index)
{
    enum { ASK_EVERY = 256 };
    if (!checker->stopped && index % ASK_EVERY == 0)
        checker->stopped = !checker->sink(checker->context, NULL);
    return !checker->stopped;
}

static void check_subgraph(tq_checker *checker, uint32_t index)
{
    checker->subgraph_index = index;
    checker->subgraph = tq_model_subgraph(checker->model, index);
    checker->flags = checker->all_flags + checker->first[index];
    /* The file may have changed since the tensors were counted. */
    uint64_t tensors = checker->first[index + 1] - checker->first[index];
    if (checker->subgraph.tensors.count > tensors)
        checker->subgraph.tensors.count = (uint32_t)tensors;
    memset(checker->writers, 0, tensors * sizeof *checker->writers);
    memset(checker->readers, 0, tensors * sizeof *checker->readers);
    for (uint32_t i = 0; i < checker->subgraph.tensors.count && goes_on(checker, i); i++)
        tq_check_tensor(checker, i);
    tq_check_flow(checker);
    for (uint32_t i = 0; i < checker->subgraph.operators.count && goes_on(checker, i); i++)
        tq_check_operator(checker, i);
}

static tq_status check_all(tq_checker *checker, tq_error *error)
{
    tq_check_file(checker);
    tq_check_layout(checker);
    tq_check_external(checker);
    tq_status status = tq_check_metadata(checker, error);
    for (uint32_t i = 0; status == TQ_OK && i < checker->model->subgraphs.count && !checker->stopped; i++)
        check_subgraph(checker, i);
    if (status == TQ_OK)
        status = tq_check_cycles(checker, error);
    if (status == TQ_OK)
        status = tq_check_signatures(checker, error);
    tq_report_the_rest(checker);
    return status;
}

tq_status tq_model_problems(const tq_model *model, const tq_allocator *allocator, tq_problem_sink *sink, void *context,
                            tq_error *error)
{
    tq_checker checker = {.model = model, .allocator = allocator, .sink = sink, .context = context};
    checker.data_left = 4 * (uint64_t)model->file.size + (16u << 20);
    tq_status status = prepare(&checker, error);
    if (status == TQ_OK)
        status = check_all(&checker, error);
    tq_release(allocator, checker.first);
    tq_release(allocator, checker.all_flags);
    tq_release(allocator, checker.writers);
    tq_release(allocator, checker.readers);
    return status;
}
