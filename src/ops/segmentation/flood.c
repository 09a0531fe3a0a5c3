/* Watershed of a box; see flood.h. */
#include "ops/segmentation/flood.h"
#include "kernels/bits.h"
#include "kernels/keys.h"
#include "op/promote.h"
#include "op/scratch.h"

#define BLOCK FV__FLOOD_BLOCK

/* ---------------------------------------------------------------- inference */

static fv_status check_shape(const fv_image_type *image, const fv_image_type *other, const char *name, fv_error *error) {
    FV_TRY(fv__same_shape(image, "image", other, name, error));
    for (int d = 0; d < image->ndim; d++)
        if (strcmp(image->axis[d], other->axis[d]))
            return fv_fail(error, FV_ERROR_USAGE, "%s has axis %s where image has %s; the axes must be equal", name,
                           other->axis[d], image->axis[d]);
    return FV_OK;
}

fv_status fv__flood_infer(fv_infer *i, int64_t connectivity, fv_error *error) {
    const fv_image_type *image = &i->in[0]->image, *markers = &i->in[1]->image;
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    if (fv_dtype_is_complex(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s; it must be real", fv_dtype_name(image->dtype));
    if (n < 1 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d spatial axes; one to three named z, y, x are needed", n);
    if (connectivity > n)
        return fv_fail(error, FV_ERROR_USAGE, "connectivity = %lld: at most %d, the number of spatial axes of the image",
                       (long long)connectivity, n);
    FV_TRY(check_shape(image, markers, "markers", error));
    if (!fv_dtype_is_integer(markers->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "markers is %s; it must be an integer label image (label(markers) makes one)",
                       fv_dtype_name(markers->dtype));
    if (i->in[2]->kind == FV_KIND_IMAGE) {
        FV_TRY(check_shape(image, &i->in[2]->image, "mask", error));
        if (i->in[2]->image.dtype != FV_BOOL)
            return fv_fail(error, FV_ERROR_USAGE, "mask is %s; it must be bool (mask > 0 makes one)",
                           fv_dtype_name(i->in[2]->image.dtype));
    }
    i->out->image.dtype = markers->dtype;
    return FV_OK;
}

/* ---------------------------------------------------------------- geometry */

static void set_offsets(fv__flood *f, int64_t connectivity) {
    f->noffsets = 0;
    for (int code = 0; code < 27; code++) {
        int     step[3] = { code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1 }, steps = 0;
        int64_t offset = 0;
        bool    exists = true;
        for (int d = 0; d < 3; d++) {
            steps += step[d] != 0;
            exists = exists && (!step[d] || f->axis[d] >= 0);
            offset += step[d] * f->stride[d];
        }
        if (exists && steps && steps <= connectivity) f->offset[f->noffsets++] = offset;
    }
}

size_t fv__flood_init(fv__flood *f, const fv_image_type *image, const fv_region *own, int64_t connectivity, void *scratch) {
    int spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    *f = (fv__flood){ .image = image, .own = *own, .axis = { -1, -1, -1 }, .groups = 1 };
    for (int i = 0; i < n; i++) f->axis[3 - n + i] = spatial[i];
    for (int d = 0; d < image->ndim; d++)
        if (d != f->axis[0] && d != f->axis[1] && d != f->axis[2]) {
            f->other[f->nothers++] = d;
            f->groups *= own->size[d];
        }
    int64_t stride = 1, voxels = f->groups;
    for (int d = 2; d >= 0; d--) {
        f->size[d] = f->axis[d] >= 0 ? own->size[f->axis[d]] : 1;
        f->pad[d] = f->axis[d] >= 0;
        f->stride[d] = stride;
        stride *= f->size[d] + 2 * f->pad[d];
        voxels *= f->size[d];
    }
    f->group_stride = stride;
    f->cells = f->groups * stride;
    f->wide = fv_dtype_size(image->dtype) == 8 || image->dtype == FV_INT32 || image->dtype == FV_UINT32;
    set_offsets(f, connectivity);
    f->nblocks = f->groups * f->size[0] * f->size[1] * ((f->size[2] + BLOCK - 1) / BLOCK);
    fv_scratch pieces = { scratch, 0 };
    int64_t    room = f->room = -f->offset[0] + BLOCK; /* neighbours and vectors reach beyond the first and last cell */
    int64_t    key = f->wide ? 8 : 4, edges = voxels / 2 + (f->cells - voxels) + 1;
    char      *keys = fv__scratch_take(&pieces, (f->cells + 2 * room) * key);
    uint32_t  *nodes = fv__scratch_take(&pieces, (f->cells + 2 * room) * 4);
    f->key = keys ? keys + room * key : NULL;
    f->node = nodes ? nodes + room : NULL;
    f->kind = fv__scratch_take(&pieces, f->cells + 1); /* the first step counts one more */
    f->block = fv__scratch_take(&pieces, f->nblocks * (int64_t)sizeof *f->block);
    f->up = fv__scratch_take(&pieces, (f->cells + 1) * 4);
    f->seat = fv__scratch_take(&pieces, f->cells * 4);
    f->active = fv__scratch_take(&pieces, (f->cells + 1) * 4);
    f->choice = fv__scratch_take(&pieces, (f->cells + 1) * 4);
    f->tree = fv__scratch_take(&pieces, (f->cells + 1) * 4);
    f->best = fv__scratch_take(&pieces, edges * (f->wide ? 24 : 16));
    return pieces.used;
}

static void group_position(const fv__flood *f, int64_t group, int64_t *position) {
    for (int i = f->nothers - 1; i >= 0; i--) {
        position[f->other[i]] = f->own.start[f->other[i]] + group % f->own.size[f->other[i]];
        group /= f->own.size[f->other[i]];
    }
}

void fv__flood_position(const fv__flood *f, int64_t cell, int64_t *position) {
    int64_t rest = cell % f->group_stride;
    group_position(f, cell / f->group_stride, position);
    for (int d = 0; d < 3; rest %= f->stride[d], d++)
        if (f->axis[d] >= 0) position[f->axis[d]] = f->own.start[f->axis[d]] + rest / f->stride[d] - f->pad[d];
}

/* Position of an edge's earlier end in the whole image's raster order, and which neighbour of it the later end is. */
static uint64_t place_of(const fv__flood *f, int64_t lower, int64_t upper) {
    int64_t  position[FV_MAX_DIMS], index = 0;
    uint64_t code = 0;
    fv__flood_position(f, lower, position);
    for (int d = 0; d < 3; d++)
        if (f->axis[d] >= 0) index = index * f->image->shape[f->axis[d]] + position[f->axis[d]];
    while (f->offset[code] != upper - lower) code++;
    return (uint64_t)index * 32 + code;
}

/* ---------------------------------------------------------------- reading */

#define MASKED(KEY)                                                                                                              \
    for (int64_t i = 0; i < n; i++) {                                                                                            \
        ((KEY *)to)[i] = set[i * stride] ? ((KEY *)to)[i] : (KEY) ~(KEY)0;                                                       \
    }
static void mask_keys(void *to, bool wide, const uint8_t *set, int64_t stride, int64_t n) {
    if (wide)
        MASKED(uint64_t)
    else
        MASKED(uint32_t)
}

/* The greatest key means that there is no voxel; the greatest integer of 64 bits shares the one before. */
static void free_last_key(uint64_t *key, int64_t n) {
    for (int64_t i = 0; i < n; i++) key[i] -= key[i] == UINT64_MAX;
}

/* Rows of the box and its shell, as far as the image reaches: what is not there has no key. */
static void load_row(fv__flood *f, const fv_block *image, const fv_block *mask, const int64_t *start, int64_t cell, int64_t n) {
    int    x = f->axis[2];
    size_t size = f->wide ? 8 : 4;
    char  *to = (char *)f->key + cell * (int64_t)size;
    fv__keys_load(to, f->wide, fv__block_at(image, start), image->dtype, image->stride[x], n);
    if (fv_dtype_size(image->dtype) == 8) free_last_key((uint64_t *)to, n);
    if (mask) mask_keys(to, f->wide, fv__block_at(mask, start), mask->stride[x], n);
}

/* A row of cells from -pad on: what lies in low..high is read, the others are no voxels. */
static void fill_row(fv__flood *f, const fv_block *image, const fv_block *mask, int64_t *position, int64_t first, int64_t low,
                     int64_t high) {
    int64_t size = f->wide ? 8 : 4, from = -f->pad[2], to = f->size[2] + f->pad[2];
    char   *row = (char *)f->key + first * size;
    memset(row + from * size, 0xff, (size_t)((low - from) * size));
    memset(row + high * size, 0xff, (size_t)((to - high) * size));
    position[f->axis[2]] = f->own.start[f->axis[2]] + low;
    if (high > low) load_row(f, image, mask, position, first + low, high - low);
}

static void load_image(fv__flood *f, const fv_block *image, const fv_block *mask) {
    int64_t          size = f->wide ? 8 : 4, position[FV_MAX_DIMS];
    const fv_region *there = &image->region;
    memset((char *)f->key - f->room * size, 0xff, (size_t)(f->room * size));
    memset((char *)f->key + f->cells * size, 0xff, (size_t)(f->room * size));
    int64_t low[3] = { 0 }, high[3] = { 1, 1, 1 }; /* from the first own voxel on */
    for (int d = 0; d < 3; d++) {
        if (f->axis[d] < 0) continue;
        low[d] = FV_MAX(there->start[f->axis[d]] - f->own.start[f->axis[d]], -f->pad[d]);
        high[d] = FV_MIN(there->start[f->axis[d]] + there->size[f->axis[d]] - f->own.start[f->axis[d]], f->size[d] + f->pad[d]);
        f->has_halo = f->has_halo || low[d] < 0 || high[d] > f->size[d];
    }
    for (int64_t group = 0; group < f->groups; group++) {
        group_position(f, group, position);
        for (int64_t z = -f->pad[0]; z < f->size[0] + f->pad[0]; z++)
            for (int64_t y = -f->pad[1]; y < f->size[1] + f->pad[1]; y++) {
                bool inside = z >= low[0] && z < high[0] && y >= low[1] && y < high[1];
                if (f->axis[0] >= 0) position[f->axis[0]] = f->own.start[f->axis[0]] + z;
                if (f->axis[1] >= 0) position[f->axis[1]] = f->own.start[f->axis[1]] + y;
                fill_row(f, image, mask, position, fv__flood_row(f, group, z, y), low[2], inside ? high[2] : low[2]);
            }
    }
}

/* ---------------------------------------------------------------- joining */

/* Follows links to the one that links to itself, and links all on the way to it. */
static uint32_t flatten(uint32_t *link, uint32_t from) {
    uint32_t root = from;
    while (link[root] != root) root = link[root];
    while (link[from] != root) {
        uint32_t next = link[from];
        link[from] = root;
        from = next;
    }
    return root;
}

typedef uint32_t words __attribute__((vector_size(FV_VECTOR_BYTES), aligned(sizeof(uint32_t)), may_alias));

/* Bit i: cell i of a block has a cell of another region beside it. */
static uint64_t border_bits(const fv__flood *f, const uint32_t *node) {
    enum { LANES = FV_VECTOR_BYTES / sizeof(uint32_t) };
    uint32_t differs[BLOCK];
    uint8_t  bytes[BLOCK];
    for (int64_t i = 0; i < BLOCK; i += LANES) {
        words own = *(const words *)(node + i), any = { 0 };
        for (int k = 0; k < f->noffsets; k++) {
            words near = *(const words *)(node + f->offset[k] + i);
            any |= (words)(near != own) & (words)(near != FV__NO_NODE);
        }
        *(words *)(differs + i) = any;
    }
    for (int64_t i = 0; i < BLOCK; i++) bytes[i] = (uint8_t)differs[i];
    return fv__bits_pack(bytes);
}

/* Own cells that have a cell of another region beside them. */
static int64_t list_border(fv__flood *f, bool closed_only) {
    int64_t  count = 0;
    uint32_t most = closed_only ? (uint32_t)f->closed : FV__NO_NODE;
    for (int64_t b = 0; b < f->nblocks; b++) {
        int64_t         cell = f->block[b].first, n = f->block[b].count;
        const uint32_t *node = f->node + cell;
        uint32_t        any = 0;
        for (int64_t i = 0; i < n; i++) any |= node[i] < most;
        if (!any) continue;
        for (uint64_t bits = border_bits(f, node) & (UINT64_MAX >> (BLOCK - n)); bits; bits &= bits - 1) {
            int i = __builtin_ctzll(bits);
            if (node[i] < most) f->active[count++] = (uint32_t)(cell + i);
        }
    }
    return count;
}

#define KEY uint32_t
#define NAME(name) name##_narrow
#include "ops/segmentation/flood_keys.h"
#define KEY uint64_t
#define NAME(name) name##_wide
#include "ops/segmentation/flood_keys.h"

void fv__flood_load(fv__flood *f, const fv_block *image, const fv_block *markers, const fv_block *mask) {
    load_image(f, image, mask);
    fv__flood_first(f, markers);
}

void fv__flood_join(fv__flood *f) {
    if (f->wide)
        join_wide(f);
    else
        join_narrow(f);
}

void fv__flood_keep(fv__flood *f, fv_bytes *edges) {
    for (int64_t v = 0; v < f->cells; v++)
        if (f->node[v] != FV__NO_NODE) f->node[v] = f->up[f->node[v]];
    if (f->wide)
        keep_wide(f, edges);
    else
        keep_narrow(f, edges);
}
