/* The merge of a reconstruction: the final level of every voxel on a plane that chunks share.
 *
 * A partial is: the head; uint64 level of each terminal so far; per group (position along the other axes) the range of values;
 * the edges of the tree, highest first; uint32 number of each terminal in the whole image.
 *
 * All trees' edges are taken from the highest level down. Each links the top of the smaller part under that of the greater one,
 * so that links are few on every way up, and the highest level at which two terminals are connected is the least one on the way
 * from one to the other. A terminal ends at the highest min(level of the way, seed) of all terminals. Memory: three numbers for
 * every shared voxel; edges are streamed.
 */
#include "base/take.h"
#include "op/sorted_runs.h"
#include "ops/morphology/rebuild.h"
#include <stdlib.h>

typedef struct {
    fv_finish         *f;
    int64_t            chunks, shared, most; /* most: terminals of a chunk */
    fv__rebuild_head  *head;
    bool               wide;         /* keys have 8 bytes, else 4 */
    uint32_t          *up;           /* per shared voxel: what it is linked to, itself at the top */
    void              *level, *best; /* keys: of the link (voxels of the part at the top); the best seed of the part below */
    fv__rebuild_range *range;        /* per group of the whole image */
    uint32_t          *number;       /* of one chunk's terminals */
    uint64_t          *final;        /* their levels */
} merge;

static uint64_t get(const merge *m, const void *keys, int64_t i) {
    return m->wide ? ((const uint64_t *)keys)[i] : ((const uint32_t *)keys)[i];
}

static size_t key_size(const merge *m) { return m->wide ? 8 : 4; }

static void set(const merge *m, void *keys, int64_t i, uint64_t key) {
    if (m->wide)
        ((uint64_t *)keys)[i] = key;
    else
        ((uint32_t *)keys)[i] = (uint32_t)key;
}

/* ---------------------------------------------------------------- numbers of shared voxels: plane by plane, axis by axis */

static int64_t plane_voxels(const fv_image_type *image, int d) {
    return fv_image_type_voxels(image) / FV_MAX(image->shape[d], 1);
}

int64_t fv__rebuild_shared(const fv_lattice *lattice, const fv_image_type *image) {
    int     spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    int64_t shared = 0;
    for (int k = 0; k < n; k++) shared += (fv__lattice_count_axis(lattice, spatial[k]) - 1) * plane_voxels(image, spatial[k]);
    return shared;
}

/* A voxel on several planes has its number on the first. */
int64_t fv__rebuild_number(const fv_lattice *lattice, const fv_image_type *image, const int64_t *position) {
    int     spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    int64_t before = 0, index = 0;
    for (int k = 0; k < n; k++) {
        int d = spatial[k];
        if (!fv__rebuild_on_plane(lattice, d, position[d])) {
            before += (fv__lattice_count_axis(lattice, d) - 1) * plane_voxels(image, d);
            continue;
        }
        for (int i = 0; i < image->ndim; i++)
            if (i != d) index = index * image->shape[i] + position[i];
        return before + (position[d] / lattice->chunk[d] - 1) * plane_voxels(image, d) + index;
    }
    return -1;
}

/* ---------------------------------------------------------------- groups */

/* Number of a chunk's group among those of the whole image. */
static int64_t group_number(const fv_image_type *image, const fv_region *chunk, int64_t group) {
    int     spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    int64_t at[FV_MAX_DIMS] = { 0 }, number = 0;
    for (int d = image->ndim - 1; d >= 0; d--) {
        bool is_spatial = false;
        for (int k = 0; k < n; k++) is_spatial = is_spatial || spatial[k] == d;
        at[d] = is_spatial ? -1 : chunk->start[d] + group % chunk->size[d];
        if (!is_spatial) group /= chunk->size[d];
    }
    for (int d = 0; d < image->ndim; d++)
        if (at[d] >= 0) number = number * image->shape[d] + at[d];
    return number;
}

static int64_t count_groups(const fv_image_type *image) {
    int     spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    int64_t groups = fv_image_type_voxels(image);
    for (int k = 0; k < n; k++) groups /= FV_MAX(image->shape[spatial[k]], 1);
    return groups;
}

/* ---------------------------------------------------------------- reading */

static fv_status read_heads(merge *m, fv_error *error) {
    for (int64_t c = 0; c < m->chunks; c++) {
        FV_TRY(m->f->read(m->f, c, 0, &m->head[c], sizeof *m->head, error));
        m->most = FV_MAX(m->most, m->head[c].terminals);
    }
    return FV_OK;
}

static fv_status read_numbers(merge *m, int64_t chunk, fv_error *error) {
    const fv__rebuild_head *h = &m->head[chunk];
    size_t                  offset = fv__rebuild_edges_offset(h) + (size_t)h->edges * sizeof(fv__rebuild_edge);
    return m->f->read(m->f, chunk, offset, m->number, (size_t)h->terminals * sizeof *m->number, error);
}

static fv_status read_seeds(merge *m, int64_t chunk, fv_error *error) {
    const fv__rebuild_head *h = &m->head[chunk];
    fv_region               own = fv__lattice_chunk(m->f->lattice, chunk);
    FV_TRY(read_numbers(m, chunk, error));
    FV_TRY(m->f->read(m->f, chunk, sizeof *h, m->final, (size_t)h->terminals * 8, error));
    for (int64_t i = 0; i < h->terminals; i++)
        if (get(m, m->best, m->number[i]) < m->final[i]) set(m, m->best, m->number[i], m->final[i]);
    for (int64_t g = 0; g < h->groups; g++) {
        fv__rebuild_range range, *all = &m->range[group_number(&m->f->in[0]->image, &own, g)];
        size_t            offset = sizeof *h + (size_t)h->terminals * 8 + (size_t)g * sizeof range;
        FV_TRY(m->f->read(m->f, chunk, offset, &range, sizeof range, error));
        all->low = FV_MIN(all->low, range.low);
        all->high = FV_MAX(all->high, range.high);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- joining */

static uint32_t top(const merge *m, uint32_t i) {
    while (m->up[i] != i) i = m->up[i];
    return i;
}

static void edges_where(const void *context, int64_t chunk, size_t *offset, size_t *end) {
    const fv__rebuild_head *h = &((const merge *)context)->head[chunk];
    *offset = fv__rebuild_edges_offset(h);
    *end = *offset + (size_t)h->edges * sizeof(fv__rebuild_edge);
}

static void edge_key(const void *context, const uint8_t *record, fv_run_key *key) {
    fv__rebuild_edge edge;
    (void)context;
    memcpy(&edge, record, sizeof edge);
    key->first = fv__run_key_unsigned(~edge.level);
}

static const uint8_t *add_edge(void *context, const uint8_t *record, const fv_region *chunk) {
    merge           *m = context;
    fv__rebuild_edge edge;
    (void)chunk;
    memcpy(&edge, record, sizeof edge);
    uint32_t a = top(m, edge.a), b = top(m, edge.b);
    if (a != b) {
        uint64_t of_a = get(m, m->level, a), of_b = get(m, m->level, b);
        uint32_t upper = of_a < of_b ? b : a, lower = of_a < of_b ? a : b;
        uint64_t rise = FV_MIN(edge.level, get(m, m->best, lower));
        m->up[lower] = upper;
        set(m, m->level, upper, of_a + of_b);
        set(m, m->level, lower, edge.level);
        if (get(m, m->best, upper) < rise) set(m, m->best, upper, rise);
    }
    return record + sizeof edge;
}

/* What lies below a terminal has reached it; from above the best comes down the way. */
static uint64_t final_level(const merge *m, uint32_t i) {
    uint32_t way[64];
    int      n = 0;
    for (; m->up[i] != i; i = m->up[i]) way[n++] = i;
    uint64_t best = get(m, m->best, i);
    while (n--) best = FV_MAX(get(m, m->best, way[n]), FV_MIN(get(m, m->level, way[n]), best));
    return best;
}

static fv_status put_levels(merge *m, int64_t chunk, fv_error *error) {
    const fv__rebuild_head *h = &m->head[chunk];
    fv_region               own = fv__lattice_chunk(m->f->lattice, chunk);
    FV_TRY(read_numbers(m, chunk, error));
    for (int64_t i = 0; i < h->terminals; i++) m->final[i] = final_level(m, m->number[i]);
    FV_TRY(m->f->put(m->f, chunk, m->final, (size_t)h->terminals * 8, error));
    for (int64_t g = 0; g < h->groups; g++)
        FV_TRY(m->f->put(m->f, chunk, &m->range[group_number(&m->f->in[0]->image, &own, g)], sizeof *m->range, error));
    return FV_OK;
}

static fv_status merge_all(merge *m, fv_error *error) {
    static const fv_sorted_runs runs = {
        .most = sizeof(fv__rebuild_edge), .where = edges_where, .key = edge_key, .add = add_edge
    };
    int64_t groups = count_groups(&m->f->in[0]->image);
    FV_TRY(read_heads(m, error));
    FV_TRY(FV_TAKE(m->number, (size_t)m->most * sizeof *m->number + 1, error));
    FV_TRY(FV_TAKE(m->final, (size_t)m->most * sizeof *m->final + 1, error));
    FV_TRY(FV_TAKE_BUFFER(m->up, (size_t)m->shared * sizeof *m->up, error));
    FV_TRY(FV_TAKE_BUFFER(m->best, (size_t)m->shared * key_size(m), error));
    FV_TRY(FV_TAKE_BUFFER(m->level, (size_t)m->shared * key_size(m), error));
    FV_TRY(FV_TAKE(m->range, (size_t)groups * sizeof *m->range + 1, error));
    for (int64_t g = 0; g < groups; g++) m->range[g] = (fv__rebuild_range){ UINT64_MAX, 0 };
    for (int64_t i = 0; i < m->shared; i++) {
        m->up[i] = (uint32_t)i;
        set(m, m->level, i, 1);
        set(m, m->best, i, 0);
    }
    for (int64_t c = 0; c < m->chunks; c++) FV_TRY(read_seeds(m, c, error));
    FV_TRY(fv__sorted_runs_merge(m->f, &runs, m, error));
    for (int64_t c = 0; c < m->chunks; c++) FV_TRY(put_levels(m, c, error));
    return FV_OK;
}

fv_status fv__rebuild_finish(fv_finish *f, fv_error *error) {
    const fv_image_type *image = &f->in[0]->image;
    merge                m = { .f = f, .chunks = f->npartials, .shared = fv__rebuild_shared(f->lattice, image) };
    m.wide = fv_dtype_size(image->dtype) == 8;
    if (!m.shared) return FV_OK;
    FV_TRY(FV_TAKE(m.head, (size_t)m.chunks * sizeof *m.head, error));
    fv_status status = merge_all(&m, error);
    free(m.head);
    free(m.number);
    free(m.final);
    fv__buffer_free(m.up, (size_t)m.shared * sizeof *m.up);
    fv__buffer_free(m.best, (size_t)m.shared * key_size(&m));
    fv__buffer_free(m.level, (size_t)m.shared * key_size(&m));
    free(m.range);
    return status;
}
