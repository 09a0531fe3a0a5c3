/* Rank filters of small boxes on OpenCL devices.
 *
 * The kernel's text is made for a box and a type. A work-item makes a strip of a row: it sorts the columns of the box, merges
 * neighbouring columns in pairs while a box holds two pairs, and selects from what makes up a box, all on vectors of voxels. */
#include "kernels/rank_device.h"
#include "base/sorting_network.h"
#include "kernels/padded.h"
#include "op/kernels.h"
#include <stdlib.h>

enum { Z = FV_SIDE_Z, Y = FV_SIDE_Y, X = FV_SIDE_X };
enum { IN, OUT };
enum { MOST_VOXELS = 125, MOST_LEVELS = 4, MOST_PARTS = 16, STRIP_BYTES = 24 << 10 };

typedef struct job {
    const fv_rank    *f;
    fv_run           *run;
    fv_side           side[3];
    int64_t           lanes, width; /* voxels of a vector, results of a strip */
    int64_t           pitch, out_pitch, step;
    int               cut;
    fv_device_program program;
    const void       *in;
    void             *out;
} job;

/* ---------------------------------------------------------------- the text of a kernel */

typedef struct shape {
    int length, levels, parts, part_level[MOST_PARTS], part_shift[MOST_PARTS];
} shape;

static shape box_shape(const fv_side side[3]) {
    shape   s = { .length = (int)(side[Z].size * side[Y].size) };
    int64_t columns = side[X].size, shift = 0;
    while (s.levels < MOST_LEVELS && (int64_t)4 << s.levels <= columns) s.levels++;
    for (int level = s.levels; level >= 0; level--)
        for (; columns - shift >= (int64_t)1 << level; shift += (int64_t)1 << level) {
            s.part_level[s.parts] = level;
            s.part_shift[s.parts++] = (int)shift;
        }
    return s;
}

static const char *key_name(fv_dtype dtype) {
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8: return "uchar";
    case FV_INT8: return "char";
    case FV_UINT16: return "ushort";
    case FV_INT16: return "short";
    case FV_UINT32: return "uint";
    default: return "int"; /* a float as its bits, in the order of rank.h */
    }
}

/* A vector of any number of voxels, wherever it lies, on a processor; one of OpenCL's own on a card. */
static void put_types(fv_bytes *text, fv_dtype dtype, int64_t lanes, bool processor) {
    const char *key = key_name(dtype);
    fv__bytes_printf(text, "typedef %s KEY;\n", key);
    if (processor)
        fv__bytes_printf(text,
                         "typedef KEY V __attribute__((ext_vector_type(%lld)));\n"
                         "typedef KEY U __attribute__((ext_vector_type(%lld), aligned(%lld)));\n"
                         "#define LOAD(p) (*(const global U *)(p))\n#define STORE(p, v) (*(global U *)(p) = (v))\n"
                         "#define FETCH(p) (*(const private U *)(p))\n#define KEEP(p, v) (*(private U *)(p) = (v))\n",
                         (long long)lanes, (long long)lanes, (long long)fv_dtype_size(dtype));
    else
        fv__bytes_printf(text,
                         "typedef %s%lld V;\n#define LOAD(p) vload%lld(0, p)\n#define STORE(p, v) vstore%lld(v, 0, p)\n"
                         "#define FETCH LOAD\n#define KEEP STORE\n",
                         key, (long long)lanes, (long long)lanes, (long long)lanes);
    fv__bytes_printf(text, "#define MIN(a, b) ((a) < (b) ? (a) : (b))\n#define MAX(a, b) ((a) < (b) ? (b) : (a))\n");
    if (dtype == FV_FLOAT32)
        fv__bytes_printf(text, "#define TURN(v) ((v) ^ (((v) >> 31) & 0x7fffffff))\n");
    else
        fv__bytes_printf(text, "#define TURN(v) (v)\n");
}

/* One network as straight code. load and keep: how an input (list, row) is had and where an output (row) goes. */
static void put_network(fv_bytes *text, fv_network *n, const int *length, int lists, int rank,
                        void (*load)(fv_bytes *text, const void *context, int list, int row),
                        void (*keep)(fv_bytes *text, int row, int value), const void *context) {
    fv__network_build(n, length, lists, rank); /* MOST_VOXELS is chosen so that all fit */
    for (int list = 0, value = 0; list < lists; list++)
        for (int row = 0; row < length[list]; row++, value++) {
            fv__bytes_printf(text, "        V v%d = ", value);
            load(text, context, list, row);
        }
    for (int i = 0; i < n->count; i++) {
        const fv_comparator *c = &n->comparator[i];
        if (c->low != FV_NETWORK_NONE) fv__bytes_printf(text, "        V v%d = MIN(v%d, v%d);\n", c->low, c->a, c->b);
        if (c->high != FV_NETWORK_NONE) fv__bytes_printf(text, "        V v%d = MAX(v%d, v%d);\n", c->high, c->a, c->b);
    }
    for (int o = 0; o < n->outputs; o++) keep(text, o, n->output[o]);
}

static void load_voxel(fv_bytes *text, const void *context, int list, int row) {
    const fv_side *side = context;
    (void)row;
    fv__bytes_printf(text, "TURN(LOAD(in + %d * plane + %d * pitch + x));\n", list / (int)side[Y].size, list % (int)side[Y].size);
}
static void keep_column(fv_bytes *text, int row, int value) {
    fv__bytes_printf(text, "        KEEP(l0[%d] + x, v%d);\n", row, value);
}

static void load_pair(fv_bytes *text, const void *context, int list, int row) {
    int level = *(const int *)context;
    fv__bytes_printf(text, "FETCH(l%d[%d] + x + %d);\n", level, row, list << level);
}
static void keep_pair(fv_bytes *text, int row, int value) {
    fv__bytes_printf(text, "        KEEP(to[%d] + x, v%d);\n", row, value);
}

static void load_part(fv_bytes *text, const void *context, int list, int row) {
    const shape *s = context;
    fv__bytes_printf(text, "FETCH(l%d[%d] + x + %d);\n", s->part_level[list], row, s->part_shift[list]);
}
static void keep_result(fv_bytes *text, int row, int value) {
    (void)row;
    fv__bytes_printf(text, "        STORE(out + x, TURN(v%d));\n", value);
}

static char *kernel_text(const job *j, fv_dtype dtype, bool processor, int64_t most) {
    shape       s = box_shape(j->side);
    fv_network *n = fv__alloc(sizeof *n);
    fv_bytes    text = { 0 };
    int         ones[MOST_VOXELS], length[MOST_PARTS], columns = (int)j->side[X].size, lanes = (int)j->lanes;
    int64_t     span = most + columns + 2 * lanes;
    for (int i = 0; i < s.length; i++) ones[i] = 1;
    put_types(&text, dtype, lanes, processor);
    fv__bytes_printf(&text,
                     "kernel void rank(global const KEY *in, int pitch, int plane, int width, global KEY *out, int out_pitch, "
                     "int rows) {\n    int start = get_global_id(0) * width, n = min(width, out_pitch - start);\n"
                     "    in += get_global_id(2) * (long)plane + get_global_id(1) * (long)pitch + start;\n"
                     "    out += (get_global_id(2) * (long)rows + get_global_id(1)) * out_pitch + start;\n");
    for (int level = 0; level <= s.levels; level++)
        fv__bytes_printf(&text, "    KEY l%d[%d][%lld];\n", level, s.length << level, (long long)span);
    fv__bytes_printf(&text, "    for (int x = 0; x < n + %d; x += %d) {\n", columns - 1, lanes);
    put_network(&text, n, ones, s.length, -1, load_voxel, keep_column, j->side);
    fv__bytes_printf(&text, "    }\n");
    for (int level = 0; level < s.levels; level++) {
        int two[2] = { s.length << level, s.length << level };
        fv__bytes_printf(&text, "    for (int x = 0; x < n + %d; x += %d) {\n        KEY (*to)[%lld] = l%d;\n",
                         columns - (2 << level), lanes, (long long)span, level + 1);
        put_network(&text, n, two, 2, -1, load_pair, keep_pair, &level);
        fv__bytes_printf(&text, "    }\n");
    }
    for (int i = 0; i < s.parts; i++) length[i] = s.length << s.part_level[i];
    fv__bytes_printf(&text, "    for (int x = 0; x < n; x += %d) {\n", lanes);
    put_network(&text, n, length, s.parts, (int)j->f->rank, load_part, keep_result, &s);
    fv__bytes_printf(&text, "    }\n}\n");
    fv__bytes_append(&text, "", 1);
    free(n);
    return (char *)text.data;
}

/* ---------------------------------------------------------------- pieces */

static int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static int64_t results(const job *j, int side) { return j->side[side].end - j->side[side].start; }

/* Results of a strip: so many that its lists stay in the nearest cache. */
static int64_t strip(const job *j, fv_dtype dtype) {
    shape   s = box_shape(j->side);
    int64_t rows = (int64_t)s.length * ((2 << s.levels) - 1), size = (int64_t)fv_dtype_size(dtype);
    return up(FV_MAX(STRIP_BYTES / rows / size, 2 * j->lanes), j->lanes);
}

static void set_up(job *j, const fv_rank *f, const fv_need *n) {
    fv_dtype dtype = n->in[0]->image.dtype;
    *j = (job){ .f = f, .lanes = 32 / (int64_t)fv_dtype_size(dtype) };
    fv__box_sides(&f->box, n, j->side);
    j->cut = f->box.naxes > 2 ? Z : Y;
    j->width = strip(j, dtype);
    j->out_pitch = up(results(j, X), j->lanes);
    j->pitch = up(j->out_pitch + j->side[X].size - 1, j->lanes) + j->lanes;
}

static int64_t piece_bytes(const job *j, int64_t count, size_t size) {
    int64_t nz = j->cut == Z ? count : results(j, Z), ny = j->cut == Y ? count : results(j, Y);
    int64_t in = (nz + j->side[Z].size - 1) * (ny + j->side[Y].size - 1) * j->pitch + j->lanes;
    return (in + nz * ny * j->out_pitch) * (int64_t)size;
}

bool fv__rank_device_able(const fv_rank *f, const fv_need *n) {
    int64_t voxels = 1;
    for (int k = 0; k < f->box.naxes; k++) voxels *= FV_MIN(f->box.size[k], MOST_VOXELS + 1);
    return voxels <= MOST_VOXELS && f->box.size[f->box.naxes - 1] <= 32 && fv_dtype_size(n->in[0]->image.dtype) <= 4;
}

int64_t fv__rank_device_least(const fv_rank *f, const fv_need *n) {
    job j;
    set_up(&j, f, n);
    return FV_LANES * piece_bytes(&j, 1, fv_dtype_size(n->in[0]->image.dtype));
}

int64_t fv__rank_device_wanted(const fv_rank *f, const fv_need *n) {
    job    j;
    size_t size = fv_dtype_size(n->in[0]->image.dtype);
    set_up(&j, f, n);
    return FV_MAX(piece_bytes(&j, results(&j, j.cut), size), FV_LANES * piece_bytes(&j, 1, size));
}

static void pack(const job *j, const fv_side side[3], char *to) {
    size_t   size = fv_dtype_size(j->run->in[0]->dtype);
    int64_t  count = side[X].end - side[X].start + side[X].size - 1, x = side[X].start - side[X].before;
    uint64_t constant = 0;
    fv__kernels_current()->convert(&constant, j->run->in[0]->dtype, &j->f->box.cval, FV_FLOAT64, 1);
    for (int64_t z = side[Z].start - side[Z].before; z < side[Z].end - side[Z].before + side[Z].size - 1; z++)
        for (int64_t y = side[Y].start - side[Y].before; y < side[Y].end - side[Y].before + side[Y].size - 1; y++) {
            fv__padded_row(side, j->f->box.border, j->in, z, y, x, count, size, &constant, to);
            memset(to + count * (int64_t)size, 0, (size_t)(j->pitch - count) * size);
            to += j->pitch * (int64_t)size;
        }
}

static fv_status send(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    (void)error;
    const job *j = context;
    fv_side    side[3];
    fv__sides_cut(j->side, j->cut, j->step, index, side);
    int64_t nz = side[Z].end - side[Z].start, ny = side[Y].end - side[Y].start;
    int64_t size = (int64_t)fv_dtype_size(j->run->in[0]->dtype), plane = (ny + side[Y].size - 1) * j->pitch;
    char   *in = fv__lane_fill(d, lane, IN, ((nz + side[Z].size - 1) * plane + j->lanes) * size);
    if (in) pack(j, side, in);
    fv__lane_send(d, lane, IN);
    fv__lane_room(d, lane, OUT, nz * ny * j->out_pitch * size);
    FV_LANE_RUN(d, lane, &j->program, "rank", (j->out_pitch + j->width - 1) / j->width, ny, nz, FV_BUFFER(IN),
                FV_VALUE(int32_t, (int32_t)j->pitch), FV_VALUE(int32_t, (int32_t)plane), FV_VALUE(int32_t, (int32_t)j->width),
                FV_BUFFER(OUT), FV_VALUE(int32_t, (int32_t)j->out_pitch), FV_VALUE(int32_t, (int32_t)ny));
    return FV_OK;
}

static fv_status receive(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    (void)error;
    const job *j = context;
    fv_side    side[3];
    fv__sides_cut(j->side, j->cut, j->step, index, side);
    int64_t     nz = side[Z].end - side[Z].start, ny = side[Y].end - side[Y].start;
    int64_t     size = (int64_t)fv_dtype_size(j->run->in[0]->dtype);
    const void *from = fv__lane_look(d, lane, OUT, nz * ny * j->out_pitch * size);
    if (from) fv__sides_put(j->side, side, j->out, from, j->out_pitch, size);
    fv__lane_done(d, lane, OUT);
    return FV_OK;
}

fv_status fv__rank_device_run(const fv_rank *f, fv_run *r, fv_device *d, fv_error *error) {
    job         j;
    fv_channels c;
    fv_status   status = FV_OK;
    size_t      size = fv_dtype_size(r->in[0]->dtype);
    set_up(&j, f, &r->need);
    j.run = r;
    fv__box_strides(&f->box, r, 1, j.side);
    int64_t all = results(&j, j.cut), most = j.width;
    if (!fv__device_processor(d)) j.lanes = j.width = most = 4; /* pitches stay: they are multiples of it */
    char *text = kernel_text(&j, r->in[0]->dtype, fv__device_processor(d), most);
    j.program = (fv_device_program){ text, NULL };
    j.step = all;
    while (j.step > 1 && piece_bytes(&j, j.step, size) * (j.step < all ? FV_LANES : 1) > fv__device_memory(d))
        j.step = (j.step + 1) / 2;
    for (fv__channels_begin(&c, &f->box, r); status == FV_OK && fv__channels_next(&c);) {
        j.in = c.in;
        j.out = c.out;
        status = fv__device_pieces(d, (all + j.step - 1) / j.step, send, receive, &j, error);
    }
    free(text);
    return status;
}
