/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sparsity.h"

#include "base/checked.h"
#include "base/stop.h"
#include "model/tensor.h"

#define LLU(x) ((unsigned long long)(x))
#define FAIL(...) tq_fail(error, TQ_BAD_SPARSITY, TQ_NO_OFFSET, __VA_ARGS__)

static tq_indices read_indices(const tq_table *dimension, tq_field_id field)
{
    static const struct {
        tq_field_id values;
        tq_scalar scalar;
    } kinds[] = {
        [TQ_SparseIndexVector_Int32Vector] = {TQ_Int32Vector_values, TQ_I32},
        [TQ_SparseIndexVector_Uint16Vector] = {TQ_Uint16Vector_values, TQ_U16},
        [TQ_SparseIndexVector_Uint8Vector] = {TQ_Uint8Vector_values, TQ_U8},
    };
    tq_union stored = tq_get_union(dimension, field);
    if (!stored.type || stored.type >= sizeof kinds / sizeof *kinds)
        return (tq_indices){{dimension->file, 0, 0}, TQ_I32};
    return (tq_indices){tq_get_vector(&stored.value, kinds[stored.type].values), kinds[stored.type].scalar};
}

tq_dimension tq_sparsity_dimension(const tq_table *sparsity, size_t level)
{
    tq_vector dimensions = tq_get_vector(sparsity, TQ_SparsityParameters_dim_metadata);
    tq_table table = tq_vector_table(&dimensions, level);
    return (tq_dimension){
        .format = tq_get_int(&table, TQ_DimensionMetadata_format),
        .dense_size = (int32_t)tq_get_int(&table, TQ_DimensionMetadata_dense_size),
        .segments = read_indices(&table, TQ_DimensionMetadata_array_segments),
        .indices = read_indices(&table, TQ_DimensionMetadata_array_indices),
    };
}

/* Facts about the dimensions, before the levels are read.  Each is loaded from the file once, so that bytes that change
   during the call cannot become an unchecked index. */
typedef struct layout {
    uint32_t rank, blocks;
    uint64_t size[TQ_SPARSITY_LEVELS];       /* of dimension d of the shape */
    uint64_t stride[TQ_SPARSITY_LEVELS];     /* elements between neighbours along d */
    uint32_t dimension_of[TQ_SPARSITY_LEVELS]; /* the dimension of a level */
    uint32_t level_of[TQ_SPARSITY_LEVELS];   /* the inverse */
    uint32_t block_map[TQ_SPARSITY_LEVELS];
    bool is_blocked[TQ_SPARSITY_LEVELS];
    uint64_t block[TQ_SPARSITY_LEVELS];      /* steps along d in a block; 1: not blocked */
} layout;

/* traversal_order must name each of the n dimensions, then each of the k. */
static tq_status read_order(const tq_vector *order, layout *to, tq_error *error)
{
    uint32_t levels = to->rank + to->blocks;
    bool seen[TQ_SPARSITY_LEVELS] = {false};
    if (order->count != levels)
        return FAIL("traversal_order has %u items; %u dimensions and %u blocked ones need %u", order->count, to->rank,
                    to->blocks, levels);
    for (uint32_t n = 0; n < levels; n++) {
        int32_t dimension = tq_vector_i32(order, n);
        uint32_t end = n < to->rank ? to->rank : levels;
        if (dimension < 0 || (uint32_t)dimension >= end)
            return FAIL("traversal_order[%u] is %d; it needs to be below %u", n, dimension, end);
        if (seen[dimension])
            return FAIL("traversal_order has dimension %d twice", dimension);
        seen[dimension] = true;
        to->dimension_of[n] = (uint32_t)dimension;
        to->level_of[dimension] = n;
    }
    return TQ_OK;
}

/* The level inside a block must be DENSE: a sparse one does not store the block's size. */
static tq_status read_blocks(const tq_table *sparsity, const tq_vector *block_map, layout *to, tq_error *error)
{
    for (uint32_t b = 0; b < to->blocks; b++) {
        int32_t dimension = tq_vector_i32(block_map, b);
        if (dimension < 0 || (uint32_t)dimension >= to->rank)
            return FAIL("block_map[%u] is %d; it needs to be from 0 to %d", b, dimension, (int)to->rank - 1);
        if (to->is_blocked[dimension])
            return FAIL("block_map has dimension %d twice", dimension);
        uint32_t level = to->level_of[to->rank + b];
        tq_dimension stored = tq_sparsity_dimension(sparsity, level);
        if (stored.format != TQ_DimensionType_DENSE)
            return FAIL("level %u is inside a block and not DENSE", level);
        if (stored.dense_size <= 0 || to->size[dimension] % (uint32_t)stored.dense_size)
            return FAIL("blocks of %d do not divide dimension %d of size %llu", stored.dense_size, dimension,
                        LLU(to->size[dimension]));
        to->block_map[b] = (uint32_t)dimension;
        to->block[dimension] = (uint32_t)stored.dense_size;
        to->is_blocked[dimension] = true;
    }
    return TQ_OK;
}

static void read_shape(const tq_vector *shape, layout *to)
{
    uint64_t stride = 1;
    for (uint32_t d = to->rank; d-- > 0;) {
        to->size[d] = (uint32_t)tq_vector_i32(shape, d);
        to->block[d] = 1;
        to->stride[d] = stride;
        stride *= to->size[d]; /* wraps only where some size is 0, and then no element is written */
    }
}

static tq_status read_layout(const tq_vector *shape, const tq_table *sparsity, layout *to, tq_error *error)
{
    tq_vector order = tq_get_vector(sparsity, TQ_SparsityParameters_traversal_order);
    tq_vector block_map = tq_get_vector(sparsity, TQ_SparsityParameters_block_map);
    tq_vector dimensions = tq_get_vector(sparsity, TQ_SparsityParameters_dim_metadata);
    if ((uint64_t)shape->count + block_map.count > TQ_SPARSITY_LEVELS)
        return FAIL("%u dimensions and %u blocked ones; sparse tensors may have %d in all", shape->count,
                    block_map.count, TQ_SPARSITY_LEVELS);
    if (dimensions.count != shape->count + block_map.count)
        return FAIL("dim_metadata has %u items; %u dimensions and %u blocked ones need %u", dimensions.count,
                    shape->count, block_map.count, shape->count + block_map.count);
    to->rank = shape->count;
    to->blocks = block_map.count;
    read_shape(shape, to);
    tq_status status = read_order(&order, to, error);
    return status == TQ_OK ? read_blocks(sparsity, &block_map, to, error) : status;
}

/* The size and the stride of level `n`. */
static void measure_level(const layout *from, uint32_t n, tq_sparse_level *level)
{
    uint32_t dimension = from->dimension_of[n];
    bool inside = dimension >= from->rank;
    uint32_t d = inside ? from->block_map[dimension - from->rank] : dimension;
    level->size = inside ? from->block[d] : from->size[d] / from->block[d];
    level->stride = from->stride[d] * (inside ? 1 : from->block[d]);
}

/* Checks segments and indices of a sparse level.  above: the number of positions of the level above. */
static tq_status check_csr(const tq_sparse_level *level, unsigned n, uint64_t above, tq_error *error)
{
    uint32_t segments = level->segments.vector.count, indices = level->indices.vector.count;
    if (!level->segments.vector.at || !level->indices.vector.at)
        return FAIL("level %u is SPARSE_CSR and has no %s", n,
                    level->segments.vector.at ? "array_indices" : "array_segments");
    if (above >= UINT32_MAX || segments != above + 1)
        return FAIL("level %u has %u array_segments; %llu positions above it need one more", n, segments, LLU(above));
    int32_t before = 0;
    for (uint32_t i = 0; i < segments; i++) {
        int32_t at = tq_indices_at(&level->segments, i);
        if (at < before || (i == 0 && at != 0))
            return FAIL("level %u: array_segments[%u] is %d; they need to start at 0 and never fall", n, i, at);
        before = at;
    }
    if ((uint32_t)before != indices)
        return FAIL("level %u: array_segments end at %d, array_indices has %u", n, before, indices);
    for (uint32_t i = 0; i < indices; i++) {
        int32_t index = tq_indices_at(&level->indices, i);
        if (index < 0 || (uint64_t)index >= level->size)
            return FAIL("level %u: array_indices[%u] is %d; the dimension has size %llu", n, i, index,
                        LLU(level->size));
    }
    return TQ_OK;
}

/* Reads level `n`.  The number of positions: in, of the level above; out, of this level. */
static tq_status read_level(const tq_table *sparsity, unsigned n, tq_sparse_level *level, uint64_t *positions,
                            tq_error *error)
{
    tq_dimension stored = tq_sparsity_dimension(sparsity, n);
    level->is_sparse = stored.format == TQ_DimensionType_SPARSE_CSR;
    level->segments = stored.segments;
    level->indices = stored.indices;
    if (level->is_sparse) {
        tq_status status = check_csr(level, n, *positions, error);
        if (status == TQ_OK)
            *positions = level->indices.vector.count;
        return status;
    }
    if (stored.format != TQ_DimensionType_DENSE)
        return FAIL("level %u has the unknown format %lld", n, (long long)stored.format);
    if (stored.dense_size < 0 || (uint32_t)stored.dense_size != level->size)
        return FAIL("level %u has dense_size %d; the shape gives %llu", n, stored.dense_size, LLU(level->size));
    if (!tq_mul_u64(*positions, level->size, positions))
        return FAIL("level %u and those above it describe more than 2^64 values", n);
    return TQ_OK;
}

tq_status tq_sparsity_open(const tq_table *tensor, tq_sparsity *out, tq_error *error)
{
    tq_table sparsity = tq_get_table(tensor, TQ_Tensor_sparsity);
    tq_vector shape = tq_get_vector(tensor, TQ_Tensor_shape);
    tq_sparsity opened = {.stored_count = 1};
    layout dimensions = {0};
    if (!sparsity.at)
        return FAIL("the tensor has no sparsity parameters");
    tq_status status = tq_shape_count(&shape, &opened.dense_count, error);
    if (status == TQ_OK)
        status = read_layout(&shape, &sparsity, &dimensions, error);
    opened.levels = dimensions.rank + dimensions.blocks;
    for (uint32_t n = 0; status == TQ_OK && n < opened.levels; n++) {
        measure_level(&dimensions, n, &opened.level[n]);
        status = read_level(&sparsity, n, &opened.level[n], &opened.stored_count, error);
    }
    if (status == TQ_OK)
        *out = opened;
    return status;
}

/* ---- writing ----
   A walk over all positions of all levels.  No level has more positions than stored values, or than segments of a level
   below it: no size is 0 where there is a value.  Counts are those that were checked; segments and indices are loaded
   again, and so checked again. */

typedef struct filler {
    const tq_sparsity *sparsity;
    const uint8_t *stored;
    uint8_t *dense;
    unsigned element_size;
    uint32_t next[TQ_SPARSITY_LEVELS]; /* of a sparse level: the next position */
    tq_error *error;
} filler;

static tq_status fail_changed(const filler *f)
{
    return tq_fail(f->error, TQ_BAD_SPARSITY, TQ_NO_OFFSET, "the sparsity parameters changed while they were read");
}

/* Copies `count` stored values from `position` on to adjacent elements from `at` on. */
static tq_status put(const filler *f, uint64_t position, uint64_t at, uint64_t count)
{
    if (at > f->sparsity->dense_count || count > f->sparsity->dense_count - at)
        return fail_changed(f);
    size_t size = f->element_size;
    tq_copy(f->dense + (size_t)at * size, f->stored + (size_t)position * size, (size_t)count * size);
    return tq_stop_after(8) ? TQ_INTERRUPTED : TQ_OK;
}

static tq_status fill(filler *f, uint32_t n, uint64_t position, uint64_t at);

static tq_status fill_segment(filler *f, uint32_t n, uint64_t position, uint64_t at)
{
    const tq_sparse_level *level = &f->sparsity->level[n];
    int32_t first = tq_indices_at(&level->segments, (size_t)position);
    int32_t end = tq_indices_at(&level->segments, (size_t)position + 1);
    if (first < 0 || (uint32_t)first != f->next[n] || end < first || (uint32_t)end > level->indices.vector.count)
        return fail_changed(f);
    f->next[n] = (uint32_t)end;
    for (uint32_t i = (uint32_t)first; i < (uint32_t)end; i++) {
        int32_t index = tq_indices_at(&level->indices, i);
        if (index < 0 || (uint64_t)index >= level->size)
            return fail_changed(f);
        tq_status status = fill(f, n + 1, i, at + (uint64_t)index * level->stride);
        if (status != TQ_OK)
            return status;
    }
    return TQ_OK;
}

/* Writes the values of level `n` and all levels below it at a position of the level above.  at: the dense element of
   the indices so far.  The recursion ends at TQ_SPARSITY_LEVELS. */
static tq_status fill(filler *f, uint32_t n, uint64_t position, uint64_t at)
{
    if (n == f->sparsity->levels)
        return put(f, position, at, 1);
    const tq_sparse_level *level = &f->sparsity->level[n];
    if (level->is_sparse)
        return fill_segment(f, n, position, at);
    if (n + 1 == f->sparsity->levels && level->stride == 1)
        return put(f, position * level->size, at, level->size);
    tq_status status = TQ_OK;
    for (uint64_t i = 0; status == TQ_OK && i < level->size && !tq_stop_after(8); i++)
        status = fill(f, n + 1, position * level->size + i, at + i * level->stride);
    return status;
}

/* The bytes of an element; TQ_BAD_TYPE unless they are whole. */
static tq_status find_element_size(const tq_table *tensor, unsigned *out, tq_error *error)
{
    int64_t type = tq_get_int(tensor, TQ_Tensor_type);
    const tq_type_row *row = tq_type(type);
    if (!row || !row->bits || row->bits % 8)
        return tq_fail(error, TQ_BAD_TYPE, TQ_NO_OFFSET,
                       "a sparse tensor of type %s (%d); elements need to be whole bytes", row ? row->name : "unknown",
                       (int)type);
    *out = row->bits / 8u;
    return TQ_OK;
}

static tq_status open_stored(const tq_table *tensor, tq_bytes stored, tq_sparsity *sparsity, unsigned *size,
                             tq_error *error)
{
    tq_status status = find_element_size(tensor, size, error);
    if (status == TQ_OK)
        status = tq_sparsity_open(tensor, sparsity, error);
    if (status == TQ_OK && sparsity->stored_count > stored.size / *size)
        return tq_fail(error, TQ_DATA_SIZE, TQ_NO_OFFSET,
                       "the sparsity parameters describe %llu values; the buffer's %llu bytes hold %llu",
                       LLU(sparsity->stored_count), LLU(stored.size), LLU(stored.size / *size));
    return status;
}

tq_status tq_tensor_densify_check(const tq_table *tensor, tq_bytes stored, tq_error *error)
{
    tq_sparsity sparsity;
    unsigned size = 0;
    return open_stored(tensor, stored, &sparsity, &size, error);
}

tq_status tq_tensor_densify(const tq_table *tensor, tq_bytes stored, uint8_t *dense, uint64_t dense_size,
                            tq_error *error)
{
    tq_sparsity sparsity;
    unsigned size = 0;
    uint64_t needed;
    tq_status status = open_stored(tensor, stored, &sparsity, &size, error);
    if (status != TQ_OK)
        return status;
    if (!tq_mul_u64(sparsity.dense_count, size, &needed) || needed != dense_size)
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                       "%llu bytes for a dense tensor of %llu elements of %u bytes", LLU(dense_size),
                       LLU(sparsity.dense_count), size);
    if (!sparsity.stored_count)
        return TQ_OK;
    filler f = {.sparsity = &sparsity, .stored = stored.data, .dense = dense, .element_size = size, .error = error};
    return fill(&f, 0, 0, 0);
}
