/* Rank filters of small boxes by comparator networks.
 *
 *     rows --sort along z--> lists of rows --merge along y--> columns --merge neighbours along x, doubling--> select
 *
 * Everything works on rows of a tile: row r of a list holds, for each x, the element of rank r of that x's list. A column
 * list is used by all boxes that hold the column, a merged pair of columns by all boxes that hold both. Rows lie PITCH
 * elements apart. Networks of common boxes are compiled to straight code, the others are interpreted row by row.
 */
#include "base/sorting_network.h"
#include "kernels/rank.h"
#include "kernels/vectors.h"
#include "op/kernels.h"

enum { Z = FV_SIDE_Z, Y = FV_SIDE_Y, X = FV_SIDE_X };
enum { PITCH_BYTES = 17 * 64 }; /* an odd number of cache lines, so that rows spread over the cache's sets */
enum { CACHE = 24 << 10 };      /* bytes of rows in use: most of the first-level cache */
enum { MAX_BOX = 256, MAX_WIDE = 64 };
enum { MAX_LEVELS = 6, STEPS = MAX_LEVELS + 3, MAX_PARTS = MAX_BOX };

/* One network and where its lists come from. */
typedef struct step {
    int lists, length[MAX_PARTS], rank;
    void (*compiled)(void); /* cast to the key's type by the caller; NULL: interpret */
    /* Interpreted: comparators whose operands are places: lists' rows first, then temporary rows, then rows of the result. */
    int            count, temporaries, copies;
    fv_comparator *comparator;
    uint16_t      *copy; /* results that are an element of a list: places, two for each */
} step;

typedef struct job {
    const fv_rank *f;
    fv_side        side[3];
    fv_dtype       dtype;
    int64_t        width, length; /* results along x of a tile; elements of a column */
    int64_t        ring;          /* slots of rows sorted along z */
    bool           ring_by_position;
    int            levels; /* columns are merged to lists of 1 << levels columns, all kept */
    int            parts;  /* lists that make up a box */
    int            part_level[MAX_LEVELS + 4];
    int64_t        part_shift[MAX_LEVELS + 4];
    step           sort_z, merge_y, merge_x[MAX_LEVELS], select;
    /* scratch */
    char        *source, *edge, *rings, *list[MAX_LEVELS + 1], *result, *temporary;
    const void **pointer_z, **pointer_y, **place;
    int64_t     *held, *map;
    fv_network  *network;
} job;

bool fv__rank_network_fits(const fv_rank *f) {
    int64_t voxels = 1;
    for (int k = 0; k < f->box.naxes; k++) {
        if (f->box.size[k] > MAX_BOX) return false;
        voxels *= f->box.size[k];
    }
    return voxels <= MAX_BOX && f->box.size[f->box.naxes - 1] <= MAX_WIDE;
}

/* ---------------------------------------------------------------- layout */

static void *carve(char **cursor, int64_t bytes) {
    void *place = *cursor;
    *cursor += (bytes + 63) / 64 * 64;
    return place;
}

/* Cuts the box's columns into lists of powers of two, largest first. Lists of 2^levels columns are made while a box holds at
 * least two of them: a list that is used once is better merged as part of the selection, where most of it is dropped. */
static void set_parts(job *j) {
    int64_t columns = j->side[X].size, shift = 0;
    while (j->levels < MAX_LEVELS && (int64_t)4 << j->levels <= columns) j->levels++;
    for (int level = j->levels; level >= 0; level--)
        for (; columns - shift >= (int64_t)1 << level; shift += (int64_t)1 << level) {
            j->part_level[j->parts] = level;
            j->part_shift[j->parts++] = shift;
        }
}

static void set_step(step *s, int lists, int64_t length, int rank) {
    s->lists = lists;
    for (int i = 0; i < lists; i++) s->length[i] = (int)length;
    s->rank = rank;
}

static size_t lay_out(job *j, const fv_rank *f, const fv_need *need, void *memory) {
    *j = (job){ .f = f, .dtype = need->in[0]->image.dtype };
    fv__box_sides(&f->box, need, j->side);
    const fv_side *x = &j->side[X], *y = &j->side[Y];
    int64_t        planes = j->side[Z].size, size = (int64_t)fv_dtype_size(j->dtype);
    j->length = planes * y->size;
    j->ring = FV_MIN(y->size, y->in_end - y->in_start);
    j->ring_by_position = f->box.border == FV_BORDER_WRAP && j->ring < y->in_end - y->in_start;
    set_parts(j);
    int64_t rows = j->length * (1 + ((int64_t)2 << j->levels)) + planes + 2, most = PITCH_BYTES / size - 64 / size - x->size + 1;
    int64_t width = FV_MIN(FV_MAX(CACHE / rows, 256) / size, most);
    int64_t tiles = (x->end - x->start + width - 1) / width;
    j->width = (x->end - x->start + tiles - 1) / tiles;
    char *cursor = memory;
    j->source = carve(&cursor, planes * PITCH_BYTES);
    j->edge = carve(&cursor, planes * PITCH_BYTES);
    j->rings = carve(&cursor, j->ring * planes * PITCH_BYTES);
    for (int level = 0; level <= j->levels; level++) j->list[level] = carve(&cursor, (j->length << level) * PITCH_BYTES);
    j->result = carve(&cursor, PITCH_BYTES);
    j->temporary = carve(&cursor, 2 * MAX_BOX * PITCH_BYTES);
    j->pointer_z = carve(&cursor, planes * 8);
    j->pointer_y = carve(&cursor, y->size * 8);
    j->place = carve(&cursor, 4 * (MAX_BOX + 8) * 8);
    j->held = carve(&cursor, j->ring * 8);
    j->map = carve(&cursor, PITCH_BYTES * 8);
    step *steps[STEPS] = { &j->sort_z, &j->merge_y, &j->select };
    for (int level = 0; level < j->levels; level++) steps[3 + level] = &j->merge_x[level];
    for (int i = 0; i < 3 + j->levels; i++) {
        steps[i]->comparator = carve(&cursor, FV_NETWORK_COMPARATORS * (int64_t)sizeof(fv_comparator));
        steps[i]->copy = carve(&cursor, 2 * MAX_BOX * 2);
    }
    j->network = carve(&cursor, sizeof *j->network);
    return (size_t)(cursor - (char *)memory);
}

size_t fv__rank_network_scratch(const fv_rank *f, const fv_need *need) {
    job j;
    return lay_out(&j, f, need, NULL);
}

/* ---------------------------------------------------------------- interpreted networks */

/* Gives every value of the network a place, reusing rows of values that are no longer needed. */
static void assign_places(step *s, const fv_network *n) {
    static const uint16_t none = FV_NETWORK_NONE;
    uint16_t place[2 * FV_NETWORK_COMPARATORS + FV_NETWORK_INPUTS], last_use[2 * FV_NETWORK_COMPARATORS + FV_NETWORK_INPUTS];
    uint16_t unused[2 * MAX_BOX];
    int      free_rows = 0, result = n->inputs + 2 * MAX_BOX;
    memset(last_use, 0, sizeof last_use);
    for (int i = 0; i < n->values; i++) place[i] = i < n->inputs ? (uint16_t)i : none;
    for (int i = 0; i < n->count; i++) last_use[n->comparator[i].a] = last_use[n->comparator[i].b] = (uint16_t)i;
    for (int o = 0; o < n->outputs; o++)
        if (n->output[o] < n->inputs) {
            s->copy[2 * s->copies] = n->output[o];
            s->copy[2 * s->copies++ + 1] = (uint16_t)(result + o);
        } else
            place[n->output[o]] = (uint16_t)(result + o);
    for (int i = 0; i < n->count; i++) {
        fv_comparator c = n->comparator[i];
        uint16_t      from[2] = { c.a, c.b }, to[2] = { c.low, c.high }, where[4] = { place[c.a], place[c.b], none, none };
        for (int k = 0; k < 2; k++)
            if (last_use[from[k]] == i && where[k] >= n->inputs && where[k] < result) unused[free_rows++] = where[k];
        for (int k = 0; k < 2; k++) {
            if (to[k] == none) continue;
            if (place[to[k]] == none) place[to[k]] = free_rows ? unused[--free_rows] : (uint16_t)(n->inputs + s->temporaries++);
            where[2 + k] = place[to[k]];
        }
        s->comparator[i] = (fv_comparator){ where[0], where[1], where[2], where[3] };
    }
    s->count = n->count;
}

static void prepare_step(job *j, step *s) {
    if (s->compiled || !s->lists) return;
    bool fits = fv__network_build(j->network, s->length, s->lists, s->rank);
    if (fits) assign_places(s, j->network); /* MAX_BOX is chosen so that all fit */
}

/* ---------------------------------------------------------------- all key types */

/* Pieces of rows are too short for the processor to foresee the next one: it is told some rows ahead. */
enum { AHEAD = 3 };

static void prefetch_to_read(const void *data, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch((const char *)data + i, 0);
}

static void prefetch_to_write(void *data, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch((char *)data + i, 1);
}

extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);

#define KEY uint8_t
#define BITS uint8_t
#define VECTOR fv_u8v
#define SIGNED_KEY false
#define K(name) FV_PASTE(name, _u8)
#include "kernels/rank_network_key.h"

#define KEY uint16_t
#define BITS uint16_t
#define VECTOR fv_u16v
#define SIGNED_KEY false
#define K(name) FV_PASTE(name, _u16)
#include "kernels/rank_network_key.h"

#define KEY int32_t
#define BITS uint32_t
#define VECTOR fv_i32v
#define SIGNED_KEY true
#define K(name) FV_PASTE(name, _i32)
#include "kernels/rank_network_key.h"

#define KEY int64_t
#define BITS uint64_t
#define VECTOR fv_i64v
#define SIGNED_KEY true
#define K(name) FV_PASTE(name, _i64)
#include "kernels/rank_network_key.h"

void fv__rank_network_run(const fv_rank *f, const fv_run *r) {
    job j;
    lay_out(&j, f, &r->need, r->scratch);
    fv__box_strides(&f->box, r, 1, j.side);
    int planes = (int)j.side[Z].size, rows = (int)j.side[Y].size;
    set_step(&j.sort_z, planes > 1 ? planes : 0, 1, -1);
    set_step(&j.merge_y, rows > 1 ? rows : 0, planes, -1);
    for (int level = 0; level < j.levels; level++) set_step(&j.merge_x[level], 2, j.length << level, -1);
    set_step(&j.select, j.parts, 0, (int)f->rank);
    for (int i = 0; i < j.parts; i++) j.select.length[i] = (int)(j.length << j.part_level[i]);
    switch (fv_dtype_size(j.dtype)) {
    case 1: region_u8(&j, r); break;
    case 2: region_u16(&j, r); break;
    case 4: region_i32(&j, r); break;
    default: region_i64(&j, r);
    }
}
