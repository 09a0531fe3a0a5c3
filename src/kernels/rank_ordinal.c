/* Rank filters of any type and size by numbers instead of values.
 *
 * The voxels of a tile, with all that its boxes look at, are sorted once and numbered: no two are equal. The numbers in the
 * box are then a set of bits; sliding the box sets and clears one bit for each voxel that enters and leaves, and the result
 * is found by walking a few set bits up or down from the last one.
 */
#include "kernels/rank.h"
#include "op/kernels.h"

enum { Z = FV_SIDE_Z, Y = FV_SIDE_Y, X = FV_SIDE_X };
enum { TILE_VOXELS = 1 << 16, MAX_TILE_VOXELS = 1 << 21 };

typedef struct {
    uint64_t key;
    uint32_t voxel;
} item;

/* Bits of the numbers present, and of the words of these that are not empty. */
typedef struct set {
    uint64_t *word, *summary;
} set;

typedef struct job {
    const fv_rank *f;
    fv_side        side[3];
    fv_dtype       dtype;
    int64_t        tile[3], padded[3], voxels; /* results of a tile; voxels that it looks at */
    item          *item, *spare;
    uint32_t      *number; /* of each voxel */
    int64_t       *map[3];
    set            set;
    int64_t        place, before; /* numbers below place that are in the set */
} job;

static void *carve(char **cursor, int64_t bytes) {
    void *place = *cursor;
    *cursor += (bytes + 63) / 64 * 64;
    return place;
}

/* Tiles as near to cubes as the region allows, at least as long as the box where memory permits, so that the voxels around
 * a tile are not much more than the tile. */
static void set_tile(job *j) {
    int64_t limit = TILE_VOXELS;
    for (int d = 0; d < 3; d++) j->tile[d] = 1;
    for (int64_t edge = 2;; edge++) {
        int64_t tile[3], voxels = 1, small = 1;
        bool    whole = true, short_of_box = false;
        for (int d = 0; d < 3; d++) {
            int64_t all = j->side[d].end - j->side[d].start;
            tile[d] = FV_MIN(edge, all);
            whole &= tile[d] == all;
            short_of_box |= tile[d] < FV_MIN(j->side[d].size, all);
            voxels *= tile[d] + j->side[d].size - 1;
            small *= j->tile[d] + j->side[d].size - 1;
        }
        limit = short_of_box ? MAX_TILE_VOXELS : TILE_VOXELS;
        if (voxels > FV_MAX(limit, small)) break;
        memcpy(j->tile, tile, sizeof tile);
        if (whole) break;
    }
}

static size_t lay_out(job *j, const fv_rank *f, const fv_need *need, void *memory) {
    *j = (job){ .f = f, .dtype = need->in[0]->image.dtype, .voxels = 1 };
    fv__box_sides(&f->box, need, j->side);
    set_tile(j);
    for (int d = 0; d < 3; d++) j->voxels *= j->padded[d] = j->tile[d] + j->side[d].size - 1;
    char   *cursor = memory;
    int64_t words = j->voxels / 64 + 1;
    j->item = carve(&cursor, j->voxels * (int64_t)sizeof(item));
    j->spare = carve(&cursor, j->voxels * (int64_t)sizeof(item));
    j->number = carve(&cursor, j->voxels * 4);
    for (int d = 0; d < 3; d++) j->map[d] = carve(&cursor, j->padded[d] * 8);
    j->set.word = carve(&cursor, words * 8);
    j->set.summary = carve(&cursor, (words / 64 + 1) * 8);
    return (size_t)(cursor - (char *)memory);
}

size_t fv__rank_ordinal_scratch(const fv_rank *f, const fv_need *need) {
    job j;
    return lay_out(&j, f, need, NULL);
}

/* ---------------------------------------------------------------- numbering */

static uint64_t load_key(const void *p, fv_dtype dtype) {
    uint64_t bits = 0, sign = (uint64_t)1 << (8 * fv_dtype_size(dtype) - 1);
    switch (fv_dtype_size(dtype)) {
    case 1: bits = *(const uint8_t *)p; break;
    case 2: bits = *(const uint16_t *)p; break;
    case 4: bits = *(const uint32_t *)p; break;
    default: bits = *(const uint64_t *)p;
    }
    fv_key key = fv__key_of(dtype, false);
    if (key == FV_KEY_PLAIN) return bits;
    if (key == FV_KEY_FLIP || !(bits & sign)) return bits ^ sign;
    return ~bits & (sign | (sign - 1));
}

static void store_key(void *p, uint64_t bits, fv_dtype dtype) {
    uint64_t sign = (uint64_t)1 << (8 * fv_dtype_size(dtype) - 1);
    fv_key   key = fv__key_of(dtype, false);
    if (key == FV_KEY_FLIP || (key == FV_KEY_FLOAT && bits & sign))
        bits ^= sign;
    else if (key == FV_KEY_FLOAT)
        bits = ~bits;
    memcpy(p, &bits, fv_dtype_size(dtype)); /* little end first */
}

/* Stable sort by key, one byte after the other; a byte that is the same everywhere is passed over. */
static void sort_items(job *j, int bytes) {
    for (int b = 0; b < bytes; b++) {
        int64_t count[257] = { 0 };
        for (int64_t i = 0; i < j->voxels; i++) count[(j->item[i].key >> 8 * b & 255) + 1]++;
        bool same = false;
        for (int v = 1; v <= 256; v++) same |= count[v] == j->voxels;
        if (same) continue;
        for (int v = 1; v <= 256; v++) count[v] += count[v - 1];
        for (int64_t i = 0; i < j->voxels; i++) j->spare[count[j->item[i].key >> 8 * b & 255]++] = j->item[i];
        item *swap = j->item;
        j->item = j->spare;
        j->spare = swap;
    }
}

/* Sorts and numbers what the tile at `start` looks at. */
static void number_tile(job *j, const char *in, const int64_t *start, uint64_t constant) {
    size_t  size = fv_dtype_size(j->dtype);
    int64_t n = 0;
    for (int d = 0; d < 3; d++)
        for (int64_t i = 0; i < j->padded[d]; i++)
            j->map[d][i] = fv__side_source(&j->side[d], j->f->box.border, start[d] - j->side[d].before + i);
    for (int64_t z = 0; z < j->padded[Z]; z++)
        for (int64_t y = 0; y < j->padded[Y]; y++) {
            bool        outside = j->map[Z][z] < 0 || j->map[Y][y] < 0;
            const char *row = in + ((j->map[Z][z] - j->side[Z].in_start) * j->side[Z].in_stride +
                                    (j->map[Y][y] - j->side[Y].in_start) * j->side[Y].in_stride) *
                                       (int64_t)size;
            for (int64_t x = 0; x < j->padded[X]; x++, n++) {
                int64_t column = j->map[X][x];
                bool    held = !outside && column >= 0;
                j->item[n].key =
                    held ? load_key(row + (column - j->side[X].in_start) * j->side[X].in_stride * (int64_t)size, j->dtype)
                         : constant;
                j->item[n].voxel = (uint32_t)n;
            }
        }
    sort_items(j, (int)size);
    for (int64_t i = 0; i < j->voxels; i++) j->number[j->item[i].voxel] = (uint32_t)i;
}

/* ---------------------------------------------------------------- the sliding set */

static void insert(job *j, uint32_t number) {
    uint64_t *word = &j->set.word[number / 64];
    if (!*word) j->set.summary[number / 4096] |= (uint64_t)1 << (number / 64 % 64);
    *word |= (uint64_t)1 << number % 64;
    j->before += number < j->place;
}

static void take(job *j, uint32_t number) {
    uint64_t *word = &j->set.word[number / 64];
    *word &= ~((uint64_t)1 << number % 64);
    if (!*word) j->set.summary[number / 4096] &= ~((uint64_t)1 << (number / 64 % 64));
    j->before -= number < j->place;
}

/* The least number in the set that is not below `from`; there must be one. */
static int64_t next(const set *s, int64_t from) {
    uint64_t word = s->word[from / 64] >> from % 64;
    if (word) return from + __builtin_ctzll(word);
    int64_t  w = from / 64 + 1;
    uint64_t summary = s->summary[w / 64] >> w % 64;
    if (summary)
        w += __builtin_ctzll(summary);
    else {
        int64_t k = w / 64 + 1;
        while (!s->summary[k]) k++;
        w = k * 64 + __builtin_ctzll(s->summary[k]);
    }
    return w * 64 + __builtin_ctzll(s->word[w]);
}

/* The largest number in the set below `from`; there must be one. */
static int64_t previous(const set *s, int64_t from) {
    int64_t  at = from - 1, w = at / 64;
    uint64_t word = s->word[w] << (63 - at % 64);
    if (word) return at - __builtin_clzll(word);
    w--;
    uint64_t summary = s->summary[w / 64] << (63 - w % 64);
    if (summary)
        w -= __builtin_clzll(summary);
    else {
        int64_t k = w / 64 - 1;
        while (!s->summary[k]) k--;
        w = k * 64 + 63 - __builtin_clzll(s->summary[k]);
    }
    return w * 64 + 63 - __builtin_clzll(s->word[w]);
}

static int64_t find(job *j) {
    for (; j->before > j->f->rank; j->before--) j->place = previous(&j->set, j->place);
    int64_t at = next(&j->set, j->place);
    for (; j->before < j->f->rank; j->before++) at = next(&j->set, at + 1);
    j->place = at;
    return at;
}

/* All voxels of column x of the box whose corner is (z, y). */
static void slide(job *j, int64_t z, int64_t y, int64_t x, void (*change)(job *, uint32_t)) {
    for (int64_t dz = 0; dz < j->side[Z].size; dz++)
        for (int64_t dy = 0; dy < j->side[Y].size; dy++)
            change(j, j->number[((z + dz) * j->padded[Y] + y + dy) * j->padded[X] + x]);
}

static void tile(job *j, char *out, const int64_t *count) {
    size_t size = fv_dtype_size(j->dtype);
    for (int64_t z = 0; z < count[Z]; z++)
        for (int64_t y = 0; y < count[Y]; y++) {
            char *row = out + (z * j->side[Z].out_stride + y * j->side[Y].out_stride) * (int64_t)size;
            for (int64_t c = 0; c < j->side[X].size - 1; c++) slide(j, z, y, c, insert);
            for (int64_t x = 0; x < count[X]; x++) {
                slide(j, z, y, x + j->side[X].size - 1, insert);
                store_key(row + x * j->side[X].out_stride * (int64_t)size, j->item[find(j)].key, j->dtype);
                slide(j, z, y, x, take);
            }
            for (int64_t c = count[X]; c < count[X] + j->side[X].size - 1; c++) slide(j, z, y, c, take);
        }
}

static void channel(job *j, const char *in, char *out, uint64_t constant) {
    const fv_side *side = j->side;
    int64_t        start[3], count[3], words = j->voxels / 64 + 1, size = (int64_t)fv_dtype_size(j->dtype);
    for (start[Z] = side[Z].start; start[Z] < side[Z].end; start[Z] += j->tile[Z])
        for (start[Y] = side[Y].start; start[Y] < side[Y].end; start[Y] += j->tile[Y])
            for (start[X] = side[X].start; start[X] < side[X].end; start[X] += j->tile[X]) {
                int64_t offset = 0;
                for (int d = 0; d < 3; d++) {
                    count[d] = FV_MIN(j->tile[d], side[d].end - start[d]);
                    offset += (start[d] - side[d].start) * side[d].out_stride;
                }
                memset(j->set.word, 0, (size_t)words * 8);
                memset(j->set.summary, 0, (size_t)(words / 64 + 1) * 8);
                j->place = j->before = 0;
                number_tile(j, in, start, constant);
                tile(j, out + offset * size, count);
            }
}

extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);

void fv__rank_ordinal_run(const fv_rank *f, const fv_run *r) {
    job      j;
    uint64_t constant = 0;
    lay_out(&j, f, &r->need, r->scratch);
    fv__box_strides(&f->box, r, 1, j.side);
    FV_PASTE(fv_kernels_, FV_ISA).convert(&constant, j.dtype, &f->box.cval, FV_FLOAT64, 1);
    constant = load_key(&constant, j.dtype);
    fv_channels c;
    for (fv__channels_begin(&c, &f->box, r); fv__channels_next(&c);) channel(&j, c.in, c.out, constant);
}
