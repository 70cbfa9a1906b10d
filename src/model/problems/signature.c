/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of signatures.  They come last and read the flags of each subgraph's inputs and outputs.
 */
#include "model/problems/checks.h"

typedef struct side {
    tq_field_id field;
    tq_location_kind location;
    unsigned flag;
    const char *what;
} side;

static const side sides[] = {
    {TQ_SignatureDef_inputs, TQ_LOCATION_SIGNATURE_INPUT, TQ_TENSOR_INPUT, "input"},
    {TQ_SignatureDef_outputs, TQ_LOCATION_SIGNATURE_OUTPUT, TQ_TENSOR_OUTPUT, "output"},
};

static void check_tensor(tq_checker *checker, const tq_table *map, int64_t subgraph, const side *side,
                         tq_location location)
{
    int64_t tensor = tq_get_int(map, TQ_TensorMap_tensor_index);
    if (!tq_get_string(map, TQ_TensorMap_name).size)
        tq_report(checker, TQ_PROBLEM_SIGNATURE_NAME, location, "the %s needs a name to be called by", side->what);
    if (subgraph >= checker->model->subgraphs.count)
        return;
    uint64_t tensors = checker->first[subgraph + 1] - checker->first[subgraph];
    if ((uint64_t)tensor >= tensors)
        tq_report(checker, TQ_PROBLEM_SIGNATURE_TENSOR, location, "the tensor is %lld; subgraph %lld has %llu",
                  (long long)tensor, (long long)subgraph, (unsigned long long)tensors);
    else if (!(checker->all_flags[checker->first[subgraph] + (uint64_t)tensor] & side->flag))
        tq_report(checker, TQ_PROBLEM_SIGNATURE_FOREIGN, location, "tensor %lld is no %s of subgraph %lld",
                  (long long)tensor, side->what, (long long)subgraph);
}

static tq_status check_side(tq_checker *checker, const tq_table *signature, uint32_t index, const side *side,
                            tq_error *error)
{
    tq_vector maps = tq_get_vector(signature, side->field);
    int64_t subgraph = tq_get_int(signature, TQ_SignatureDef_subgraph_index);
    tq_location location = tq_location_of(side->location, index);
    for (uint32_t i = 0; i < maps.count && !checker->stopped; i++) {
        tq_table map = tq_vector_table(&maps, i);
        location.slot = i;
        check_tensor(checker, &map, subgraph, side, location);
    }
    return tq_check_names(checker, &maps, TQ_TensorMap_name, TQ_PROBLEM_SIGNATURE_NAME_DUPLICATE, location, true,
                          error);
}

static tq_status check_signature(tq_checker *checker, uint32_t index, tq_error *error)
{
    tq_location location = tq_location_of(TQ_LOCATION_SIGNATURE, index);
    tq_table signature = tq_vector_table(&checker->model->signatures, index);
    int64_t subgraph = tq_get_int(&signature, TQ_SignatureDef_subgraph_index);
    if (!tq_get_string(&signature, TQ_SignatureDef_signature_key).size)
        tq_report(checker, TQ_PROBLEM_SIGNATURE_KEY, location, "the signature needs a key to be called by");
    if (subgraph >= checker->model->subgraphs.count)
        tq_report(checker, TQ_PROBLEM_SIGNATURE_SUBGRAPH, location, "the subgraph is %lld of %u", (long long)subgraph,
                  checker->model->subgraphs.count);
    tq_status status = TQ_OK;
    for (size_t i = 0; i < sizeof sides / sizeof *sides && status == TQ_OK; i++)
        status = check_side(checker, &signature, index, &sides[i], error);
    return status;
}

tq_status tq_check_signatures(tq_checker *checker, tq_error *error)
{
    const tq_vector *signatures = &checker->model->signatures;
    tq_status status = TQ_OK;
    for (uint32_t i = 0; i < signatures->count && status == TQ_OK && !checker->stopped; i++)
        status = check_signature(checker, i, error);
    if (status == TQ_OK)
        status = tq_check_names(checker, signatures, TQ_SignatureDef_signature_key, TQ_PROBLEM_SIGNATURE_DUPLICATE,
                                tq_location_of(TQ_LOCATION_SIGNATURE, 0), false, error);
    return status;
}
