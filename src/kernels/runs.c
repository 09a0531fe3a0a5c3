/* Connected components by bits and runs; see runs.h. */
#include "kernels/runs.h"
#include "kernels/bits.h"
#include "op/scratch.h"

/* ---------------------------------------------------------------- layout */

static void set_geometry(fv__runs *r, const fv_image_type *image, const int64_t *size, int64_t connectivity) {
    int spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial), first = spatial[0];
    *r = (fv__runs){ .axis = { -1, -1, -1 }, .groups = 1, .connectivity = (int)connectivity };
    for (int i = 0; i < n; i++) r->axis[3 - n + i] = spatial[i];
    for (int d = 0; d < image->ndim; d++) {
        r->shape[d] = image->shape[d];
        if (d == r->axis[0] || d == r->axis[1] || d == r->axis[2]) continue;
        r->other[r->nothers++] = d;
        r->groups *= size[d];
        if (d > first && size[d] > 1) r->interleaved = true;
    }
    r->nz = r->axis[0] >= 0 ? size[r->axis[0]] : 1;
    r->ny = r->axis[1] >= 0 ? size[r->axis[1]] : 1;
    r->nx = size[r->axis[2]];
    r->words = (r->nx + 63) / 64;
    r->last_word = ~(uint64_t)0 >> ((64 - r->nx % 64) % 64);
    bool full = connectivity == n;
    r->join_z = full && n == 3 ? 2 : 1;
    r->join_y = full && n >= 2 ? 2 : 1;
    r->joined_nz = (r->nz + r->join_z - 1) / r->join_z;
    r->joined_ny = (r->ny + r->join_y - 1) / r->join_y;
}

static int64_t most_runs(const fv__runs *r) { return r->groups * r->joined_nz * r->joined_ny * ((r->nx + 1) / 2); }

static size_t lay_out(fv__runs *r, void *scratch) {
    bool       joins = r->join_z * r->join_y > 1;
    int64_t    words = r->groups * r->nz * r->ny * r->words, joined = r->groups * r->joined_nz * r->joined_ny * r->words;
    fv_scratch pieces = { scratch, 0 };
    r->bits = fv__scratch_take(&pieces, words * 8);
    r->joined = joins ? fv__scratch_take(&pieces, joined * 8) : r->bits;
    r->before = fv__scratch_take(&pieces, joined * 4);
    r->parent = fv__scratch_take(&pieces, most_runs(r) * 4);
    if (joins || r->interleaved) r->number = fv__scratch_take(&pieces, most_runs(r) * 4);
    if (r->interleaved) r->first = fv__scratch_take(&pieces, most_runs(r) * 8);
    if (r->interleaved) r->order = fv__scratch_take(&pieces, most_runs(r) * 4);
    return pieces.used;
}

size_t fv__runs_scratch(const fv_image_type *image, const int64_t *size, int64_t connectivity) {
    fv__runs r;
    set_geometry(&r, image, size, connectivity);
    return lay_out(&r, NULL);
}

int64_t fv__runs_most(const fv_image_type *image, const int64_t *size, int64_t connectivity) {
    fv__runs r;
    set_geometry(&r, image, size, connectivity);
    return most_runs(&r);
}

void fv__runs_init(fv__runs *runs, const fv_image_type *image, const fv_block *in, int64_t connectivity, void *scratch) {
    set_geometry(runs, image, in->region.size, connectivity);
    runs->in = in;
    lay_out(runs, scratch);
}

/* ---------------------------------------------------------------- rows to bits */

/* Bits of the rows of one joined row, the joined row itself, and its runs. */
static void open_row(fv__runs *r, int64_t group, int64_t z, int64_t y) {
    size_t    size = fv_dtype_size(r->in->dtype);
    int64_t   row = fv__runs_joined(r, group, z, y), stride = r->in->stride[r->axis[2]], first = r->nruns;
    uint64_t *joined = r->joined + row, before = 0;
    bool      joins = r->joined != r->bits;
    if (joins) memset(joined, 0, (size_t)r->words * 8);
    for (int64_t dz = 0; dz < r->join_z && z + dz < r->nz; dz++)
        for (int64_t dy = 0; dy < r->join_y && y + dy < r->ny; dy++) {
            uint64_t *bits = (uint64_t *)fv__runs_row(r, group, z + dz, y + dy);
            fv__bits_row(bits,
                         (const uint8_t *)r->in->data + fv__runs_offset(r, r->in->stride, group, z + dz, y + dy) * (int64_t)size,
                         size, stride, r->nx);
            for (int64_t w = 0; r->zeros && w < r->words; w++) bits[w] = ~bits[w];
            if (r->zeros) bits[r->words - 1] &= r->last_word;
            for (int64_t w = 0; joins && w < r->words; w++) joined[w] |= bits[w];
        }
    for (int64_t w = 0; w < r->words; w++) {
        r->before[row + w] = (int32_t)r->nruns;
        r->nruns += __builtin_popcountll(joined[w] & ~(joined[w] << 1 | before));
        before = joined[w] >> 63;
    }
    for (int64_t i = first; i < r->nruns; i++) r->parent[i] = (int32_t)i;
}

/* ---------------------------------------------------------------- joining */

static int32_t find(int32_t *parent, int32_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static void join(int32_t *parent, int32_t a, int32_t b) {
    if (parent[a] == parent[b]) return;
    a = find(parent, a);
    b = find(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

/* Up to two rows whose bits are or-ed: the side of a joined row that faces another. */
typedef struct {
    const uint64_t *row[2];
    int64_t         joined;
} side;

static side side_of(const fv__runs *r, int64_t group, int64_t z, int64_t y, int64_t other_z, int64_t other_y) {
    side s = { { fv__runs_row(r, group, z, y), NULL }, fv__runs_joined(r, group, z, y) };
    bool twice = (other_z != z && other_z < r->nz) || (other_y != y && other_y < r->ny);
    s.row[1] = twice ? fv__runs_row(r, group, other_z, other_y) : s.row[0];
    return s;
}

static inline uint64_t side_word(const side *s, int64_t w) { return s->row[0][w] | s->row[1][w]; }

/* Joins the runs of two rows that share a position. Of a contact only its first position counts. */
static void touch_straight(fv__runs *r, const side *a, const side *b) {
    uint64_t before = 0;
    for (int64_t w = 0; w < r->words; w++) {
        uint64_t both = side_word(a, w) & side_word(b, w), starts = both & ~(both << 1 | before);
        before = both >> 63;
        for (; starts; starts &= starts - 1) {
            int bit = __builtin_ctzll(starts);
            join(r->parent, fv__runs_at(r, a->joined, w, bit), fv__runs_at(r, b->joined, w, bit));
        }
    }
}

/* Joins runs at positions that differ by one, where no straight contact joins the same two. */
static void touch_diagonal(fv__runs *r, const side *a, const side *b) {
    uint64_t a_before = 0, b_before = 0, a_now = side_word(a, 0), b_now = side_word(b, 0);
    for (int64_t w = 0; w < r->words; w++) {
        bool     more = w + 1 < r->words;
        uint64_t a_next = more ? side_word(a, w + 1) : 0, b_next = more ? side_word(b, w + 1) : 0, alone = a_now & ~b_now;
        uint64_t left = alone & (b_now << 1 | b_before >> 63) & ~(a_now << 1 | a_before >> 63);
        uint64_t right = alone & (b_now >> 1 | b_next << 63) & ~(a_now >> 1 | a_next << 63);
        for (; left; left &= left - 1) {
            int bit = __builtin_ctzll(left);
            join(r->parent, fv__runs_at(r, a->joined, w, bit), fv__runs_at(r, b->joined, bit ? w : w - 1, (bit + 63) & 63));
        }
        for (; right; right &= right - 1) {
            int bit = __builtin_ctzll(right);
            join(r->parent, fv__runs_at(r, a->joined, w, bit), fv__runs_at(r, b->joined, bit == 63 ? w + 1 : w, (bit + 1) & 63));
        }
        a_before = a_now, b_before = b_now;
        a_now = a_next, b_now = b_next;
    }
}

static void touch(fv__runs *r, const side *a, const side *b, bool diagonal) {
    touch_straight(r, a, b);
    if (diagonal) touch_diagonal(r, a, b);
}

/* Joins a joined row, whose first row is (z, y), with those before it. */
static void join_row(fv__runs *r, int64_t group, int64_t z, int64_t y) {
    int64_t last_z = z + r->join_z - 1, last_y = y + r->join_y - 1; /* may lie outside */
    bool    diagonal = r->connectivity >= 2;
    if (y) {
        side a = side_of(r, group, z, y, last_z, y), b = side_of(r, group, z, y - 1, last_z, y - 1);
        touch(r, &a, &b, diagonal);
    }
    if (!z) return;
    side a = side_of(r, group, z, y, z, last_y), b = side_of(r, group, z - 1, y, z - 1, last_y);
    touch(r, &a, &b, diagonal);
    if (r->connectivity < 2) return;
    diagonal = r->connectivity >= 3;
    if (y) {
        a = side_of(r, group, z, y, z, y), b = side_of(r, group, z - 1, y - 1, z - 1, y - 1);
        touch(r, &a, &b, diagonal);
    }
    if (last_y + 1 < r->ny) {
        a = side_of(r, group, z, last_y, z, last_y), b = side_of(r, group, z - 1, last_y + 1, z - 1, last_y + 1);
        touch(r, &a, &b, diagonal);
    }
}

void fv__runs_find(fv__runs *r) {
    r->nruns = 0;
    for (int64_t group = 0; group < r->groups; group++)
        for (int64_t z = 0; z < r->nz; z += r->join_z)
            for (int64_t y = 0; y < r->ny; y += r->join_y) {
                open_row(r, group, z, y);
                join_row(r, group, z, y);
            }
}

/* ---------------------------------------------------------------- numbering */

/* Gives numbers to components whose first row this is. */
static void number_row(fv__runs *r, int64_t group, int64_t z, int64_t y, int64_t *next, const int64_t *stride, fv_bytes *firsts) {
    const uint64_t *bits = fv__runs_row(r, group, z, y);
    int64_t         row = fv__runs_joined(r, group, z, y);
    uint64_t        before = 0;
    for (int64_t w = 0; w < r->words; w++) {
        uint64_t starts = bits[w] & ~(bits[w] << 1 | before);
        for (; starts; starts &= starts - 1) {
            int     bit = __builtin_ctzll(starts);
            int32_t component = r->parent[fv__runs_at(r, row, w, bit)];
            if (r->number ? r->number[component] >= 0 : component < *next) continue;
            int64_t index = fv__runs_offset(r, stride, group, z, y) + (w * 64 + bit) * stride[r->axis[2]];
            for (int d = 0; d < r->in->region.ndim; d++) index += r->in->region.start[d] * stride[d];
            if (r->number) r->number[component] = (int32_t)*next;
            if (r->first)
                r->first[component] = index;
            else if (firsts)
                fv__bytes_append(firsts, &index, sizeof index);
            ++*next;
        }
        before = bits[w] >> 63;
    }
}

static bool later(const fv__runs *r, int32_t a, int32_t b) { return r->first[a] > r->first[b]; }

static void sift(fv__runs *r, int64_t root, int64_t count) {
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && later(r, r->order[child + 1], r->order[child])) child++;
        if (!later(r, r->order[child], r->order[root])) return;
        int32_t swap = r->order[root];
        r->order[root] = r->order[child];
        r->order[child] = swap;
    }
}

/* Rows of different groups interleave in raster order: sort the components by their first voxel (in place: kernels do not
 * allocate). */
static void sort_components(fv__runs *r, fv_bytes *firsts) {
    int64_t n = r->ncomponents;
    for (int64_t i = 0; i < n; i++) r->order[i] = (int32_t)i;
    for (int64_t i = n / 2 - 1; i >= 0; i--) sift(r, i, n);
    for (int64_t i = n - 1; i > 0; i--) {
        int32_t swap = r->order[0];
        r->order[0] = r->order[i];
        r->order[i] = swap;
        sift(r, 0, i);
    }
    for (int64_t i = 0; i < n; i++) {
        r->number[r->order[i]] = (int32_t)i;
        if (firsts) fv__bytes_append(firsts, &r->first[r->order[i]], sizeof *r->first);
    }
}

void fv__runs_number(fv__runs *r, fv_bytes *firsts) {
    int64_t next = 0, run = 0, components = 0, stride[FV_MAX_DIMS], voxels = 1;
    int64_t layers = r->groups * r->joined_nz;
    bool    numbered = r->number || firsts; /* otherwise components have the numbers of their order */
    for (int d = r->in->region.ndim - 1; d >= 0; voxels *= r->shape[d--]) stride[d] = voxels;
    for (int64_t layer = 0; layer < layers; layer++) {
        int64_t end = layer + 1 < layers ? r->before[(layer + 1) * r->joined_ny * r->words] : r->nruns;
        int64_t group = layer / r->joined_nz, z0 = layer % r->joined_nz * r->join_z;
        for (; run < end; run++) { /* a parent comes first, so it has its component already */
            int32_t parent = r->parent[run];
            if (parent == run && r->number) r->number[components] = -1;
            r->parent[run] = parent == run ? (int32_t)components++ : r->parent[parent];
        }
        for (int64_t z = z0; z < FV_MIN(z0 + r->join_z, r->nz); z++)
            for (int64_t y = 0; numbered && y < r->ny && next < components; y++)
                number_row(r, group, z, y, &next, stride, firsts);
    }
    r->ncomponents = components;
    if (r->interleaved) sort_components(r, firsts);
}
