/* Fused point-wise operators.
 *
 * The tree is flattened into a program in post-order whose values live on a small stack of strips. A program that reads a
 * single image of one-byte elements is computed once for its 256 values and becomes a table, and so is one of two-byte elements
 * if the program takes long. Images that are repeated along some axes, or have them in another order, are read where they lie as
 * far as their voxels are next to each other as those of the result; else each strip of them is laid out in room of its own.
 */
#include "exec/fused_points.h"
#include "exec/spread.h"
#include "op/kernels.h"

enum { STRIP = 1024, STRIP_BYTES = STRIP * 8, TABLE_FROM = 4096, TABLE_BYTES = 4 << 16, RUN_FROM = 256 };

typedef struct operand {
    enum { FROM_STACK, FROM_IMAGE, FROM_SCALAR, FROM_NOTHING } from;
    int      index;
    fv_dtype dtype; /* as it lies there */
} operand;

typedef struct instruction {
    const fv_node *node;
    fv_point_fn    run;
    operand        in[FV_MAX_INPUTS];
    int            result; /* place on the stack */
} instruction;

typedef struct image {
    const fv_block *block;
    fv_matching     matching;
    fv_spread       spread; /* over the region that is computed */
    bool            apart;  /* strips are laid out in room of their own */
} image;

typedef struct program {
    instruction       code[FV_POINTS_MOST];
    int               ncode;
    image             images[FV_POINTS_IMAGES];
    int               nimages;
    int               nscalars, depth, deepest;
    uint8_t          *stack, *scalars, *converted, *raw, *spread, *table;
    const fv_kernels *kernels;
    bool (*inside)(void *context, const fv_node *node);
    fv_points_resolve resolve;
    void             *context;
} program;

size_t fv__points_scratch(void) {
    return (size_t)STRIP_BYTES * (FV_POINTS_MOST + FV_POINTS_SCALARS + FV_MAX_INPUTS + 1 + FV_POINTS_IMAGES) + TABLE_BYTES;
}

/* ---------------------------------------------------------------- making the program */

static fv_status add_scalar(program *p, const fv_scalar *scalar, fv_dtype compute, operand *place, fv_error *error) {
    if (p->nscalars == FV_POINTS_SCALARS)
        return fv_fail(error, FV_ERROR_USAGE,
                       "an expression with more than %d numbers; give parts of it names and write one of them",
                       FV_POINTS_SCALARS);
    uint8_t *strip = p->scalars + (size_t)p->nscalars * STRIP_BYTES;
    uint8_t  flag = scalar->integer != 0;
    size_t   size = fv_dtype_size(compute);
    if (scalar->dtype == FV_BOOL)
        p->kernels->convert(strip, compute, &flag, FV_BOOL, 1);
    else
        p->kernels->convert(strip, compute, &scalar->integer, scalar->dtype, 1);
    for (size_t i = 1; i < STRIP; i++) memcpy(strip + i * size, strip, size);
    *place = (operand){ FROM_SCALAR, p->nscalars++, compute };
    return FV_OK;
}

static fv_status add_image(program *p, const fv_block *block, const fv_matching *matching, operand *place, fv_error *error) {
    for (int i = 0; i < p->nimages; i++)
        if (p->images[i].block == block && !memcmp(&p->images[i].matching, matching, sizeof *matching)) {
            *place = (operand){ FROM_IMAGE, i, block->dtype };
            return FV_OK;
        }
    if (p->nimages == FV_POINTS_IMAGES)
        return fv_fail(error, FV_ERROR_USAGE, "an expression of more than %d images", FV_POINTS_IMAGES);
    p->images[p->nimages] = (image){ .block = block, .matching = *matching };
    *place = (operand){ FROM_IMAGE, p->nimages++, block->dtype };
    return FV_OK;
}

static fv_status add_node(program *p, const fv_node *node, fv_error *error) {
    operand in[FV_MAX_INPUTS];
    int     base = p->depth;
    for (int i = 0; i < node->ninputs; i++) {
        in[i].from = FROM_NOTHING;
        if (!node->in[i]) continue;
        if (p->inside(p->context, node->in[i])) {
            FV_TRY(add_node(p, node->in[i], error));
            in[i] = (operand){ FROM_STACK, p->depth++, node->in[i]->type.image.dtype };
            p->deepest = FV_MAX(p->deepest, p->depth);
            continue;
        }
        fv_points_input input = { 0 };
        FV_TRY(p->resolve(p->context, node->in[i], &input, error));
        if (input.block) {
            fv_matching matching = fv__point_matching(node, i);
            FV_TRY(add_image(p, input.block, &matching, &in[i], error));
        } else
            FV_TRY(add_scalar(p, input.scalar, node->compute, &in[i], error));
    }
    if (p->ncode == FV_POINTS_MOST || p->deepest >= FV_POINTS_MOST)
        return fv_fail(error, FV_ERROR_USAGE,
                       "an expression of more than %d operators; give parts of it names and use them twice, or write one",
                       FV_POINTS_MOST);
    if (!node->op->point[node->compute])
        return fv_fail(error, FV_ERROR_INTERNAL, "%s has no kernel for %s", node->op->name, fv_dtype_name(node->compute));
    instruction *code = &p->code[p->ncode++];
    *code = (instruction){ .node = node, .run = node->op->point[node->compute], .result = base };
    memcpy(code->in, in, sizeof in);
    p->depth = base;
    p->deepest = FV_MAX(p->deepest, base + 1);
    return FV_OK;
}

/* ---------------------------------------------------------------- running it */

static const void *fetch(program *p, const operand *o, int slot, fv_dtype compute, const uint8_t *const *images, int64_t n) {
    if (o->from == FROM_NOTHING) return NULL;
    if (o->from == FROM_SCALAR) return p->scalars + (size_t)o->index * STRIP_BYTES;
    const void *bytes = o->from == FROM_IMAGE ? images[o->index] : p->stack + (size_t)o->index * STRIP_BYTES;
    if (o->dtype == compute) return bytes;
    uint8_t *place = p->converted + (size_t)slot * STRIP_BYTES;
    p->kernels->convert(place, compute, bytes, o->dtype, n);
    return place;
}

/* n elements, at most STRIP; the last instruction writes to out. */
static void run_strip(program *p, const uint8_t *const *images, int64_t n, void *out) {
    for (int c = 0; c < p->ncode; c++) {
        const instruction *code = &p->code[c];
        fv_dtype           compute = code->node->compute, dtype = code->node->type.image.dtype;
        const void        *in[FV_MAX_INPUTS] = { NULL };
        for (int i = 0; i < code->node->ninputs; i++) in[i] = fetch(p, &code->in[i], i, compute, images, n);
        void    *place = c == p->ncode - 1 ? out : p->stack + (size_t)code->result * STRIP_BYTES;
        fv_dtype made = dtype == FV_BOOL ? FV_BOOL : compute;
        /* A kernel's output must not overlap its inputs, and the result takes the place of the first operand. */
        bool direct = made == dtype;
        for (int i = 0; i < code->node->ninputs; i++) direct = direct && in[i] != place;
        code->run(code->node->params, n, direct ? place : p->raw, in);
        if (!direct) p->kernels->convert(place, dtype, p->raw, made, n);
    }
}

static void run_row(program *p, const uint8_t **images, int64_t n, uint8_t *out, size_t size) {
    const uint8_t *strip[FV_POINTS_IMAGES];
    for (int64_t done = 0; done < n; done += STRIP) {
        int64_t part = FV_MIN(STRIP, n - done);
        for (int i = 0; i < p->nimages; i++) {
            const image *from = &p->images[i];
            strip[i] = images[i] + (size_t)done * fv_dtype_size(from->block->dtype);
            if (!from->apart) continue;
            strip[i] = p->spread + (size_t)i * STRIP_BYTES;
            fv__spread_strip(&from->spread, images[i], done, part, p->spread + (size_t)i * STRIP_BYTES);
        }
        run_strip(p, strip, part, out + (size_t)done * size);
    }
}

/* From this axis on the voxels of the result are next to each other, and so are those of the images that are read in place.
 * Images of the result's own shape always are; a repeated one if that leaves runs of some length. */
static int choose_runs(program *p, const fv_block *out) {
    int first = fv__spread_run(out->stride, &out->region, 0);
    for (int i = 0; i < p->nimages; i++) {
        image *from = &p->images[i];
        from->spread = fv__spread_of(from->block, &from->matching, &out->region);
        if (from->matching.same) first = fv__spread_run(from->spread.stride, &out->region, first);
    }
    for (int i = 0; i < p->nimages; i++) {
        image *from = &p->images[i];
        int    run = fv__spread_run(from->spread.stride, &out->region, first);
        from->apart = run > first && fv__spread_length(&out->region, run) < RUN_FROM;
        if (!from->apart) first = run;
    }
    for (int i = 0; i < p->nimages; i++) p->images[i].spread.first = first;
    return first;
}

/* Calls for each run of the region: the whole of it if everything is dense, else parts of its last axes. */
static void each_run(program *p, const fv_block *out,
                     void (*run)(program *p, const uint8_t **images, int64_t n, uint8_t *out, size_t size)) {
    const uint8_t *images[FV_POINTS_IMAGES];
    size_t         size = fv_dtype_size(out->dtype);
    int            first = choose_runs(p, out);
    int64_t        length = fv__spread_length(&out->region, first);
    fv_region      starts = out->region;
    fv_rows        rows;
    for (int d = first; d < starts.ndim; d++) starts.size[d] = 1;
    for (fv__rows_begin(&rows, &starts); fv__rows_next(&rows);) {
        for (int i = 0; i < p->nimages; i++) images[i] = fv__spread_at(&p->images[i].spread, rows.position);
        run(p, images, length, fv__block_at(out, rows.position), size);
    }
}

static void look_up(program *p, const uint8_t **images, int64_t n, uint8_t *out, size_t size) {
    p->kernels->lookup(out, images[0], fv_dtype_size(p->images[0].block->dtype), n, p->table, size);
}

/* One image of one or two bytes: compute what each of its values becomes once. */
static void run_table(program *p, const fv_block *out) {
    uint16_t       wide[STRIP];
    uint8_t        narrow[STRIP];
    fv_dtype       dtype = p->images[0].block->dtype;
    size_t         size = fv_dtype_size(out->dtype);
    int64_t        values = (int64_t)1 << 8 * fv_dtype_size(dtype);
    const uint8_t *images[1] = { fv_dtype_size(dtype) == 1 ? narrow : (const uint8_t *)wide };
    for (int64_t first = 0; first < values; first += STRIP) {
        int64_t n = FV_MIN(STRIP, values - first);
        for (int64_t i = 0; i < n; i++) {
            wide[i] = (uint16_t)(first + i);
            narrow[i] = dtype == FV_BOOL ? first + i > 0 : (uint8_t)(first + i);
        }
        run_strip(p, images, n, p->table + (size_t)first * size);
    }
    each_run(p, out, look_up);
}

/* Nanoseconds a voxel, as the operators say. */
static double cost_of(const program *p) {
    double all = 0;
    for (int c = 0; c < p->ncode; c++) {
        const fv_node *node = p->code[c].node;
        fv_need        need = { .params = node->params, .ninputs = node->ninputs, .out = &node->type };
        need.region = fv__region_whole(&node->type.image);
        for (int i = 0; i < node->ninputs; i++) need.in[i] = node->in_type[i];
        all += node->op->cost ? node->op->cost(&need) : 0.5;
    }
    return all;
}

/* Whether a table saves time. It gives the same bits as the program does. */
static bool table_pays(const program *p, const fv_block *out) {
    /* A single image has the result's own shape: what it is repeated along would be an axis of another one. */
    if (p->nimages != 1) return false;
    size_t size = fv_dtype_size(p->images[0].block->dtype), made = fv_dtype_size(out->dtype);
    double voxels = (double)fv__region_voxels(&out->region), look = 1.5;
    if (size == 1 && made <= 8) return voxels >= TABLE_FROM;
    if (size != 2 || made > TABLE_BYTES >> 16) return false;
    double cost = cost_of(p);
    return voxels * (cost - look) > 0x1p16 * cost;
}

fv_status fv__points_run(const fv_node *root, bool (*inside)(void *context, const fv_node *node), fv_points_resolve resolve,
                         void *context, const fv_block *out, void *scratch, fv_error *error) {
    program p = { .kernels = fv__kernels_current(), .inside = inside, .resolve = resolve, .context = context };
    p.stack = scratch;
    p.scalars = p.stack + (size_t)STRIP_BYTES * FV_POINTS_MOST;
    p.converted = p.scalars + (size_t)STRIP_BYTES * FV_POINTS_SCALARS;
    p.raw = p.converted + (size_t)STRIP_BYTES * FV_MAX_INPUTS;
    p.spread = p.raw + STRIP_BYTES;
    p.table = p.spread + (size_t)STRIP_BYTES * FV_POINTS_IMAGES;
    FV_TRY(add_node(&p, root, error));
    if (table_pays(&p, out))
        run_table(&p, out);
    else
        each_run(&p, out, run_row);
    return FV_OK;
}
