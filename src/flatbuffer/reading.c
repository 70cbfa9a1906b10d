/* SPDX-License-Identifier: Apache-2.0 */
#include "flatbuffer/reading.h"

tq_status tq_reading_over_budget(tq_reading *r, size_t at, const char *budget)
{
    return tq_fail(r->error, TQ_TABLE_BUDGET, at,
                   "more %s are reached than a file of %llu bytes can hold; are they shared?", budget,
                   (unsigned long long)r->file.size);
}

tq_status tq_reading_node(tq_reading *r, const tq_table *table, tq_table_id id, tq_tree_node **out)
{
    unsigned slots = tq_slot_count(table), stored = 0;
    if (!r->nodes_left)
        return tq_reading_over_budget(r, table->at, "tables");
    r->nodes_left--;
    if (slots > r->slots_left)
        return tq_reading_over_budget(r, table->at, "slots");
    r->slots_left -= slots;
    for (unsigned slot = 0; slot < slots; slot++)
        stored += tq_slot_at(table, slot) != 0;
    if (stored > r->cells_left)
        return tq_reading_over_budget(r, table->at, "fields");
    r->cells_left -= stored;
    tq_tree_node *node;
    tq_status status = tq_tree_node_make(r->tree, id, &node, r->error);
    if (status == TQ_OK)
        status = tq_region_get(&r->tree->region, stored, sizeof *node->cells, &node->cells, r->error);
    if (status != TQ_OK)
        return status;
    node->capacity = stored;
    node->at = table->at;
    *out = node;
    return TQ_OK;
}
