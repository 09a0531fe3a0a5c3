/* Chunks: their size and shape, the regions they need, the memory and work of a task. */
#include "plan/lattice.h"
#include "op/axes.h"
#include "op/device_kernel.h"
#include <stdlib.h>

/* Voxels of a chunk: large enough that halos and tasks cost little, small enough for caches and many workers. */
#define CHUNK_VOXELS ((int64_t)1 << 21)
/* Items of a collection up to this size are computed whole: workers take one item each. */
#define ITEM_VOXELS ((int64_t)1 << 24)
/* Where a chunk's inputs grow beyond this, it is cut further (project, montage). */
#define NEED_VOXELS ((int64_t)1 << 25)
/* So much of what a reducing pass holds counts like a voxel of its inputs. */
#define PARTIAL_BYTES 4
/* Chunks made of whole pieces of a file may be so large. */
#define PIECES_VOXELS ((int64_t)1 << 23)
/* No chunk holds more, even if pieces of the file that is read are decoded several times then. */
#define CHUNK_BYTES ((int64_t)1 << 26)
/* Chunks of sums and of files where all workers wait for one image. */
#define DIVIDED_VOXELS ((int64_t)1 << 20)
/* Rows that are written one by one should be so long. */
#define ROW_BYTES ((int64_t)1024)
/* What is repeated along an axis is small and near: reading it again for another part of that axis counts so much. */
#define REPEATED (1. / 16)

/* ---------------------------------------------------------------- regions of a task */

fv_region fv__stage_chunk(const fv_stage *stage, int64_t task, int64_t *index) {
    int64_t position[FV_MAX_DIMS];
    for (int d = stage->lattice.ndim - 1; d >= 0; d--) {
        position[d] = (stage->first[d] + task % stage->count[d]) * stage->lattice.chunk[d];
        task /= stage->count[d];
    }
    *index = fv__lattice_index(&stage->lattice, position);
    return fv__lattice_chunk(&stage->lattice, *index);
}

fv_matching fv__point_matching(const fv_node *node, int input) {
    fv_matching matching;
    fv__match(&node->type.image, &node->in[input]->type.image, &matching);
    return matching;
}

void fv__point_regions(const fv_node *node, const fv_region *region, fv_region *in) {
    for (int i = 0; i < node->ninputs; i++) {
        if (!node->in[i] || node->in[i]->type.kind != FV_KIND_IMAGE) continue;
        fv_matching matching = fv__point_matching(node, i);
        fv_region   nothing = { .ndim = node->in[i]->type.image.ndim };
        in[i] = fv__region_empty(region) ? nothing : fv__matched_region(&matching, region);
    }
}

static void ask(const fv_plan *plan, const fv_stage *stage, const fv_node *node, int pass, const fv_region *region,
                fv_chosen chosen, fv_region *regions) {
    fv_region in[FV_MAX_INPUTS];
    int       only = node->op->lazy && chosen.input ? chosen.input(chosen.context, node) : -1;
    for (int i = 0; i < FV_MAX_INPUTS; i++) in[i] = *region;
    if (pass < 0)
        fv__point_regions(node, region, in);
    else {
        fv_need need = fv__node_need(plan, node, pass, region);
        fv__pass_need(&node->op->passes[pass], &need, in);
    }
    if (chosen.narrow) chosen.narrow(chosen.context, node, in);
    for (int i = 0; i < node->ninputs; i++) {
        if (!node->in[i] || node->in[i]->type.kind != FV_KIND_IMAGE || (only >= 0 && i != only)) continue;
        fv_region *of_input = &regions[fv__stage_step(stage, node->in[i])];
        *of_input = fv__region_bound(of_input, &in[i]);
    }
}

void fv__stage_regions(const fv_plan *plan, const fv_stage *stage, const fv_region *chunk, fv_region *regions) {
    fv__stage_regions_chosen(plan, stage, chunk, (fv_chosen){ 0 }, regions);
}

/* From step `last` back to the first. */
static void ask_back(const fv_plan *plan, const fv_stage *stage, int last, fv_chosen chosen, fv_region *regions) {
    for (int s = last; s >= 0; s--) {
        const fv_step *step = &stage->steps[s];
        if (!regions[s].ndim || step->kind == FV_STEP_STORED) continue;
        ask(plan, stage, step->node, step->kind == FV_STEP_RUN ? fv__op_image_pass(step->node->op) : -1, &regions[s], chosen,
            regions);
    }
}

void fv__stage_regions_of_step(const fv_plan *plan, const fv_stage *stage, int step, const fv_region *region, fv_chosen chosen,
                               fv_region *regions) {
    for (int s = 0; s < stage->nsteps; s++) regions[s].ndim = 0;
    regions[step] = *region;
    ask_back(plan, stage, step, chosen, regions);
}

void fv__stage_regions_chosen(const fv_plan *plan, const fv_stage *stage, const fv_region *chunk, fv_chosen chosen,
                              fv_region *regions) {
    for (int s = 0; s < stage->nsteps; s++) regions[s].ndim = 0;
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_target *target = &stage->targets[t];
        if (target->kind == FV_TARGET_PASS) {
            ask(plan, stage, target->node, target->pass, chunk, chosen, regions);
            continue;
        }
        fv_region *region = &regions[fv__stage_step(stage, target->node)];
        *region = fv__region_bound(region, chunk);
    }
    ask_back(plan, stage, stage->nsteps - 1, chosen, regions);
}

/* ---------------------------------------------------------------- memory and work of a task */

typedef struct estimate {
    int64_t memory;
    int64_t largest; /* voxels of the largest block */
    double  work;
    double  plain;  /* work if no region were larger than the chunk */
    double  judged; /* work as it counts in the choice of a chunk */
} estimate;

static double step_cost(const fv_plan *plan, const fv_node *node, const fv_region *region) {
    if (!node->op->cost) return fv__op_is_point(node->op) ? 0.5 : 1.0;
    fv_need need = fv__node_need(plan, node, FV_MAX(fv__op_image_pass(node->op), 0), region);
    return node->op->cost(&need);
}

static int64_t pass_memory(const fv_plan *plan, const fv_node *node, int pass, const fv_region *region) {
    const fv_pass *p = &node->op->passes[pass];
    fv_need        need = fv__node_need(plan, node, pass, region);
    int64_t        bytes = p->scratch ? (int64_t)p->scratch(&need) : 0;
    if (node->op->program) bytes += node->op->program(node->params).memory;
    if (node->on_device) bytes += node->op->device->wanted(&need); /* the device may be the host itself */
    if (p->finish) bytes += p->bound ? (int64_t)p->bound(&need) : 4096;
    return bytes;
}

/* Marks the steps that make something which is read voxel by voxel, and not only repeated along an axis. */
static void mark_direct(const fv_stage *stage, bool *direct) {
    memset(direct, 0, (size_t)stage->nsteps * sizeof *direct);
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_node *node = stage->targets[t].node;
        bool           pass = stage->targets[t].kind == FV_TARGET_PASS;
        for (int i = 0; pass && i < node->ninputs; i++)
            if (node->in[i] && node->in[i]->type.kind == FV_KIND_IMAGE) direct[fv__stage_step(stage, node->in[i])] = true;
        if (!pass) direct[fv__stage_step(stage, node)] = true;
    }
    for (int s = stage->nsteps - 1; s >= 0; s--) {
        const fv_node *node = stage->steps[s].node;
        if (!direct[s] || stage->steps[s].kind == FV_STEP_STORED) continue;
        for (int i = 0; i < node->ninputs; i++) {
            if (!node->in[i] || node->in[i]->type.kind != FV_KIND_IMAGE) continue;
            fv_matching matching = { .same = true };
            if (fv__op_is_point(node->op)) matching = fv__point_matching(node, i);
            if (matching.same || fv__matched_repeats(&matching, node->type.image.shape, node->type.image.ndim) == 1)
                direct[fv__stage_step(stage, node->in[i])] = true;
        }
    }
}

static estimate measure(const fv_plan *plan, const fv_stage *stage, const fv_region *chunk, const fv_layout *layouts) {
    fv_region *regions = fv__alloc((size_t)(stage->nsteps + 1) * sizeof *regions);
    bool      *direct = fv__alloc((size_t)(stage->nsteps + 1) * sizeof *direct);
    estimate   e = { 0 };
    int64_t    live = 0, chunk_voxels = FV_MAX(fv__region_voxels(chunk), 1);
    fv__stage_regions(plan, stage, chunk, regions);
    mark_direct(stage, direct);
    for (int s = 0; s < stage->nsteps; s++) {
        const fv_step *step = &stage->steps[s];
        if (!regions[s].ndim || fv__region_empty(&regions[s])) continue;
        int64_t voxels = fv__region_voxels(&regions[s]), scratch = 0;
        double  cost = step->kind == FV_STEP_STORED ? 1 : step_cost(plan, step->node, &regions[s]);
        e.work += cost * (double)voxels;
        e.judged += cost * (double)voxels * (direct[s] ? 1 : REPEATED);
        e.plain += cost * (double)FV_MIN(voxels, chunk_voxels);
        e.largest = FV_MAX(e.largest, voxels);
        if (step->kind != FV_STEP_INNER) live += voxels * (int64_t)fv_dtype_size(step->node->type.image.dtype);
        if (step->kind == FV_STEP_RUN) scratch = pass_memory(plan, step->node, fv__op_image_pass(step->node->op), &regions[s]);
        if (step->kind == FV_STEP_RUN && !step->node->ninputs) scratch += layouts[step->node->id].read_memory;
        e.memory = FV_MAX(e.memory, live + scratch);
        for (int k = 0; k < s; k++) /* blocks read for the last time here */
            if (stage->steps[k].last_use == s && regions[k].ndim && stage->steps[k].kind != FV_STEP_INNER)
                live -= fv__region_voxels(&regions[k]) * (int64_t)fv_dtype_size(stage->steps[k].node->type.image.dtype);
    }
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_target *target = &stage->targets[t];
        int64_t          extra = 0;
        if (target->kind == FV_TARGET_PASS) extra = pass_memory(plan, target->node, target->pass, chunk);
        e.largest = FV_MAX(e.largest, extra / PARTIAL_BYTES);
        if (target->kind == FV_TARGET_STORE) extra = chunk_voxels * (int64_t)fv_dtype_size(target->node->type.image.dtype);
        if (target->kind == FV_TARGET_SINK) extra = target->file->layout.piece_memory;
        if (target->kind == FV_TARGET_SINK && !target->file->layout.parallel)
            extra += chunk_voxels * (int64_t)fv_dtype_size(target->node->type.image.dtype); /* encoded pieces */
        e.memory = FV_MAX(e.memory, live + extra);
        if (target->kind == FV_TARGET_PASS) {
            e.work += 1.0 * (double)chunk_voxels;
            e.judged += 1.0 * (double)chunk_voxels;
            e.plain += 1.0 * (double)chunk_voxels;
        }
    }
    free(regions);
    free(direct);
    return e;
}

/* ---------------------------------------------------------------- choosing a chunk */

static fv_region middle(const fv_image_type *space, const int64_t *chunk) {
    fv_region r = { .ndim = space->ndim };
    for (int d = 0; d < space->ndim; d++) {
        r.size[d] = FV_MIN(chunk[d], space->shape[d]);
        r.start[d] = (space->shape[d] - r.size[d]) / 2;
    }
    return r;
}

static int64_t voxels_of(const int64_t *chunk, int ndim) {
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= chunk[d];
    return n;
}

bool fv__chunk_is_whole(const fv_image_type *type, const fv_plan_options *options) {
    int64_t voxels = fv_image_type_voxels(type);
    return !options->chunk_ndim && voxels <= (options->collection ? ITEM_VOXELS : CHUNK_VOXELS);
}

double fv__chunks_typical(const fv_image_type *type) {
    return FV_MAX((double)fv_image_type_voxels(type) / (double)CHUNK_VOXELS, 1);
}

static void override_chunk(const fv_plan_options *options, const fv_image_type *space, int64_t *chunk) {
    for (int d = 0; d < space->ndim; d++) {
        int from = options->chunk_ndim - space->ndim + d;
        chunk[d] = options->chunk_ndim == 1 ? options->chunk[0] : from >= 0 ? options->chunk[from] : space->shape[d];
        chunk[d] = FV_MIN(chunk[d], space->shape[d]);
    }
}

/* Judges a chunk shape; smaller is better. */
typedef struct judge {
    double (*cost)(const struct judge *judge, const fv_region *chunk, int64_t *largest);
    const void *context[4];
} judge;

/* Halves the axis that costs least until the chunk is small enough. Ties go to the slowest axis, so that rows stay long. */
static void split(const judge *j, const fv_image_type *space, int64_t *chunk) {
    for (;;) {
        fv_region whole = middle(space, chunk);
        int64_t   largest = 0, voxels = voxels_of(chunk, space->ndim);
        j->cost(j, &whole, &largest);
        if (voxels <= CHUNK_VOXELS && (largest <= NEED_VOXELS || voxels <= 4096)) return;
        int    best = -1;
        double least = 0;
        for (int d = 0; d < space->ndim; d++) {
            if (chunk[d] < 2) continue;
            int64_t old = chunk[d];
            chunk[d] = (old + 1) / 2;
            fv_region part = middle(space, chunk);
            double    cost = j->cost(j, &part, &largest) / (double)FV_MAX(fv__region_voxels(&part), 1);
            cost += 40.0 / (double)chunk[space->ndim - 1]; /* starting a row costs too */
            chunk[d] = old;
            if (best < 0 || cost < least * 0.999) {
                best = d;
                least = cost;
            }
        }
        if (best < 0) return;
        chunk[best] = (chunk[best] + 1) / 2;
    }
}

static double need_cost(const judge *j, const fv_region *chunk, int64_t *largest) {
    fv_need        need = *(const fv_need *)j->context[0];
    const fv_pass *pass = j->context[1];
    fv_region      in[FV_MAX_INPUTS];
    double         voxels = 0;
    need.region = *chunk;
    *largest = 0;
    fv__pass_need(pass, &need, in);
    for (int i = 0; i < need.ninputs; i++)
        if (need.in[i]->kind == FV_KIND_IMAGE) {
            voxels += (double)fv__region_voxels(&in[i]);
            *largest = FV_MAX(*largest, fv__region_voxels(&in[i]));
        }
    return voxels;
}

double fv__chunk_expansion(const fv_need *need, const fv_pass *pass, int input, const fv_plan_options *options) {
    const fv_image_type *space = &need->out->image;
    int64_t              chunk[FV_MAX_DIMS];
    memcpy(chunk, space->shape, sizeof chunk);
    if (fv__chunk_is_whole(space, options)) return 1;
    judge j = { .cost = need_cost, .context = { need, pass } };
    if (options->chunk_ndim)
        override_chunk(options, space, chunk);
    else
        split(&j, space, chunk);
    fv_need   asked = *need;
    fv_region in[FV_MAX_INPUTS];
    asked.region = middle(space, chunk);
    fv__pass_need(pass, &asked, in);
    /* Only halos count: an operator that turns many voxels into one (project, montage) does not compute them twice. */
    fv_region halo = in[input];
    if (halo.ndim != asked.region.ndim) return 1;
    double ratio = 1;
    for (int d = 0; d < halo.ndim; d++)
        if (need->in[input]->image.shape[d] == space->shape[d])
            ratio *= (double)halo.size[d] / (double)FV_MAX(asked.region.size[d], 1);
    return ratio;
}

static double stage_cost(const judge *j, const fv_region *chunk, int64_t *largest) {
    estimate e = measure(j->context[0], j->context[1], chunk, j->context[2]);
    *largest = e.largest;
    return e.judged;
}

/* ---------------------------------------------------------------- pieces of files */

static int64_t common_multiple(int64_t a, int64_t b) {
    int64_t x = a, y = b;
    while (y) {
        int64_t t = x % y;
        x = y;
        y = t;
    }
    return a / x * b;
}

bool fv__pieces_fit(const fv_planned_file *a, const fv_planned_file *b) {
    if (!a || !b || a->layout.any_region || b->layout.any_region) return true;
    const fv_image_type *type = &a->sink->value->type.image;
    int64_t              voxels = 1;
    for (int d = 0; d < type->ndim; d++)
        voxels *= FV_MIN(common_multiple(a->layout.piece[d], b->layout.piece[d]), type->shape[d]);
    return voxels <= 4 * CHUNK_VOXELS;
}

/* Along axis d: what holds whole pieces of every file the stage writes. */
static int64_t piece_step(const fv_stage *stage, const fv_image_type *space, int d) {
    int64_t step = 1;
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_planned_file *file = stage->targets[t].file;
        if (file && !file->layout.any_region) step = common_multiple(step, FV_MIN(file->layout.piece[d], space->shape[d]));
    }
    return step;
}

/* Makes the chunk of whole pieces of every file the stage writes. */
static void fit_pieces(const fv_stage *stage, const fv_image_type *space, int64_t *chunk) {
    for (int d = 0; d < space->ndim; d++) {
        int64_t step = piece_step(stage, space, d);
        if (step == 1) continue;
        int64_t down = chunk[d] / step * step;
        chunk[d] = FV_MIN(down ? down : step, space->shape[d]);
    }
}

/* The same where chunks were chosen: slabs that became as thick as a piece are cut along the other axes, the slowest first. */
static void fit_small_pieces(const fv_stage *stage, const fv_image_type *space, int64_t *chunk) {
    fit_pieces(stage, space, chunk);
    for (int d = 0; d < space->ndim; d++) {
        int64_t step = piece_step(stage, space, d);
        while (voxels_of(chunk, space->ndim) > PIECES_VOXELS && chunk[d] > step && step > 1)
            chunk[d] = FV_MAX(chunk[d] / 2 / step * step, step);
    }
    for (int d = 0; d < space->ndim; d++) {
        int64_t step = piece_step(stage, space, d), most = CHUNK_BYTES / (int64_t)fv_dtype_size(space->dtype);
        while (voxels_of(chunk, space->ndim) > most && chunk[d] > step) chunk[d] = FV_MAX(chunk[d] / 2 / step * step, step);
    }
}

static bool same_shape(const fv_image_type *space, int ndim, const int64_t *shape) {
    return space->ndim == ndim && !memcmp(space->shape, shape, sizeof(int64_t) * (size_t)ndim);
}

/* An operator whose result is an image needs whole chunks of its first passes again in the last, so a stage with such an
 * operator takes over their lattice, and their lattice suits the file that the result will go to. */
static bool take_over(const fv_plan *plan, const fv_stage *stage, const fv_image_type *space, int64_t *chunk) {
    for (int s = 0; s < stage->nsteps; s++) {
        const fv_node *node = stage->steps[s].node;
        int            finish = stage->steps[s].kind == FV_STEP_RUN ? fv__op_last_finish(node->op) : -1;
        if (finish < 0) continue;
        const fv_lattice *lattice = &plan->stages[plan->pass_stage[node->id][finish]].lattice;
        if (!same_shape(space, lattice->ndim, lattice->shape)) continue;
        memcpy(chunk, lattice->chunk, sizeof(int64_t) * (size_t)lattice->ndim);
        return true;
    }
    return false;
}

static void suit_files(const fv_plan *plan, const fv_stage *stage, const fv_image_type *space, int64_t *chunk) {
    for (int t = 0; t < stage->ntargets; t++) {
        if (stage->targets[t].kind != FV_TARGET_PASS || fv__op_image_pass(stage->targets[t].node->op) < 0) continue;
        for (int s = 0; s < plan->nstages; s++) {
            const fv_target     *first = &plan->stages[s].targets[0];
            const fv_image_type *type = &first->node->type.image;
            if (first->kind == FV_TARGET_SINK && same_shape(space, type->ndim, type->shape))
                fit_small_pieces(&plan->stages[s], space, chunk);
        }
    }
}

/* Chunks that cut across the file's own pieces would decode them twice. */
static void fit_layout(const fv_stage *stage, const fv_image_type *space, const fv_layout *layouts, int64_t *chunk) {
    for (int s = 0; s < stage->nsteps; s++) {
        const fv_node *node = stage->steps[s].node;
        if (stage->steps[s].kind != FV_STEP_RUN || node->ninputs || !node->op->layout) continue;
        if (node->type.image.ndim != space->ndim) continue;
        for (int d = 0; d < space->ndim; d++) {
            int64_t piece = layouts[node->id].chunk[d];
            if (node->type.image.shape[d] != space->shape[d] || piece < 2 || piece >= space->shape[d]) continue;
            if (chunk[d] >= piece)
                chunk[d] = chunk[d] / piece * piece;
            else if (chunk[d] * 2 >= piece)
                chunk[d] = piece;
        }
        return;
    }
}

/* A file without pieces of its own is written row by row, which takes a call each: short rows are made longer. */
static void lengthen_rows(const fv_stage *stage, const fv_image_type *space, fv_region *piece) {
    int last = space->ndim - 1;
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_target *target = &stage->targets[t];
        if (!target->file || !target->file->layout.any_region) continue;
        int64_t row = ROW_BYTES / (int64_t)fv_dtype_size(target->node->type.image.dtype);
        while (piece->size[last] < FV_MIN(row, space->shape[last]) && fv__region_voxels(piece) * 2 <= 4 * CHUNK_VOXELS)
            piece->size[last] = FV_MIN(piece->size[last] * 2, space->shape[last]);
    }
}

/* Where slabs would decode every piece of a file many times, the chunks are its pieces, unless these or what is needed around
 * them are large. The pieces of a part of an image count as well: whether they are cut at its borders matters less. */
static bool take_pieces(fv_plan *plan, const fv_stage *stage, const fv_image_type *space, const fv_layout *layouts,
                        int64_t *chunk) {
    fv_region piece = { .ndim = space->ndim };
    for (int s = 0; s < stage->nsteps && !piece.size[0]; s++) {
        const fv_node *node = stage->steps[s].node;
        if (stage->steps[s].kind != FV_STEP_RUN || node->ninputs || !node->op->layout) continue;
        if (node->type.image.ndim != space->ndim) continue;
        for (int d = 0; d < space->ndim; d++) piece.size[d] = FV_MIN(FV_MAX(layouts[node->id].chunk[d], 1), space->shape[d]);
    }
    bool    cut = false;
    int64_t voxels = fv__region_voxels(&piece);
    for (int d = 0; d < space->ndim; d++) cut = cut || chunk[d] * 2 < piece.size[d];
    if (!cut || !voxels || voxels > 2 * CHUNK_VOXELS) return false;
    if (measure(plan, stage, &piece, layouts).largest > FV_MAX(NEED_VOXELS, voxels)) return false;
    for (int d = space->ndim - 1; d >= 0; d--)
        for (; voxels * 2 <= CHUNK_VOXELS && piece.size[d] < space->shape[d]; voxels = fv__region_voxels(&piece))
            piece.size[d] = FV_MIN(piece.size[d] * 2, space->shape[d]);
    lengthen_rows(stage, space, &piece);
    memcpy(chunk, piece.size, sizeof(int64_t) * (size_t)space->ndim);
    return true;
}

/* Same number of chunks, evenly sized, so that the last one is not a sliver. */
static void even_out(const fv_image_type *space, int64_t *chunk) {
    for (int d = 0; d < space->ndim; d++) {
        int64_t count = (space->shape[d] + chunk[d] - 1) / FV_MAX(chunk[d], 1);
        chunk[d] = FV_MAX((space->shape[d] + count - 1) / FV_MAX(count, 1), 1);
    }
}

/* The chunks that an operator of whole slices asks for. */
static bool take_slab(const fv_plan *plan, const fv_stage *stage, const fv_image_type *space, int64_t *chunk) {
    fv_region whole = fv__region_whole(space);
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_node *node = stage->targets[t].node;
        if (stage->targets[t].kind != FV_TARGET_STORE || !node->op || !node->op->slab) continue;
        fv_need need = fv__node_need(plan, node, fv__op_image_pass(node->op), &whole);
        node->op->slab(&need, chunk);
        for (int d = 0; d < space->ndim; d++) chunk[d] = FV_MAX(FV_MIN(chunk[d], space->shape[d]), 1);
        return true;
    }
    return false;
}

/* Chunks that were asked for are meant for the axes of images that one reads and writes. An axis that an operator has added, as
 * that of grey values, it makes whole if it likes to. */
static void keep_added_axes(const fv_plan *plan, const fv_stage *stage, const fv_image_type *space, int64_t *chunk) {
    int64_t        slab[FV_MAX_DIMS];
    const fv_node *node = stage->targets[0].node;
    memcpy(slab, space->shape, sizeof slab); /* an operator need not speak of every axis */
    if (!node->ninputs || !node->in[0] || node->in[0]->type.kind != FV_KIND_IMAGE || !take_slab(plan, stage, space, slab)) return;
    for (int d = 0; d < space->ndim; d++)
        if (slab[d] == space->shape[d] && fv__axis_find(&node->in[0]->type.image, space->axis[d]) < 0) chunk[d] = slab[d];
}

/* What is decoded whole is stored in whole pieces, several together where they are small. */
static bool take_whole_pieces(const fv_stage *stage, const fv_image_type *space, const fv_layout *layouts, int64_t *chunk) {
    const fv_target *target = &stage->targets[0];
    if (!fv__target_in_pieces(target, layouts)) return false;
    for (int d = 0; d < space->ndim; d++) chunk[d] = FV_MIN(FV_MAX(layouts[target->node->id].chunk[d], 1), space->shape[d]);
    for (int d = space->ndim - 1; d >= 0; d--)
        while (chunk[d] < space->shape[d] && voxels_of(chunk, space->ndim) * 2 <= CHUNK_VOXELS / 4)
            chunk[d] = FV_MIN(chunk[d] * 2, space->shape[d]);
    return true;
}

/* Processors that programs take which tasks of the stage run; 0: they run none. */
static int64_t program_cpus(const fv_stage *stage) {
    int64_t cpus = 0;
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_node *node = stage->targets[t].node;
        if (stage->targets[t].kind == FV_TARGET_PASS && node->op->program)
            cpus = FV_MAX(cpus, node->op->program(node->params).cpus);
    }
    for (int s = 0; s < stage->nsteps; s++) {
        const fv_node *node = stage->steps[s].node;
        if (stage->steps[s].kind == FV_STEP_RUN && node->op->program) cpus = FV_MAX(cpus, node->op->program(node->params).cpus);
    }
    return cpus;
}

static void choose_chunk(fv_plan *plan, fv_stage *stage, const fv_image_type *space, const fv_layout *layouts,
                         const fv_plan_options *options, int64_t *chunk) {
    memcpy(chunk, space->shape, sizeof(int64_t) * FV_MAX_DIMS);
    if (stage->serial) { /* slabs of the first axis that has any length */
        int first = 0;
        while (first < space->ndim - 1 && space->shape[first] == 1) first++;
        int64_t slab = fv_image_type_voxels(space) / FV_MAX(space->shape[first], 1);
        chunk[first] = FV_MAX(FV_MIN(CHUNK_VOXELS / FV_MAX(slab, 1), space->shape[first]), 1);
        return;
    }
    if (take_whole_pieces(stage, space, layouts, chunk)) return;
    if (options->chunk_ndim && !program_cpus(stage)) {
        override_chunk(options, space, chunk);
        keep_added_axes(plan, stage, space, chunk);
        fit_pieces(stage, space, chunk);
        return;
    }
    if (take_slab(plan, stage, space, chunk)) return;
    if (fv__chunk_is_whole(space, options)) {
        fv_region whole = fv__region_whole(space);
        if (measure(plan, stage, &whole, layouts).largest <= FV_MAX(NEED_VOXELS, fv__region_voxels(&whole))) return;
    }
    judge j = { .cost = stage_cost, .context = { plan, stage, layouts } };
    if (!take_over(plan, stage, space, chunk)) {
        split(&j, space, chunk);
        even_out(space, chunk);
        if (!take_pieces(plan, stage, space, layouts, chunk)) fit_layout(stage, space, layouts, chunk);
        suit_files(plan, stage, space, chunk);
    }
    fit_small_pieces(stage, space, chunk);
}

/* Whether tasks of the stage only add to sums, voxel by voxel; *slab: along the first axis they are as the operator wants them.
 */
static bool adds_to_sums(const fv_stage *stage, bool *slab) {
    const fv_target *target = &stage->targets[0];
    int              pass = target->node->op ? fv__op_image_pass(target->node->op) : -1;
    if (stage->ntargets != 1 || target->kind != FV_TARGET_STORE || pass < 0 || !target->node->op->passes[pass].sum) return false;
    *slab = target->node->op->slab != NULL;
    return true;
}

/* Whether they only pack and write what is stored. */
static bool only_writes(const fv_stage *stage) {
    for (int s = 0; s < stage->nsteps; s++)
        if (stage->steps[s].kind != FV_STEP_STORED) return false;
    return stage->ntargets == 1 && stage->targets[0].kind == FV_TARGET_SINK;
}

static void divide(const fv_stage *stage, const fv_image_type *space, int64_t *chunk) {
    bool slab = false;
    if (stage->serial || (!adds_to_sums(stage, &slab) && !only_writes(stage))) return;
    for (int d = slab; d < space->ndim - 1; d++) { /* rows stay whole */
        int64_t step = piece_step(stage, space, d);
        while (voxels_of(chunk, space->ndim) > DIVIDED_VOXELS && chunk[d] >= 2 * step) chunk[d] = chunk[d] / 2 / step * step;
    }
}

bool fv__target_in_pieces(const fv_target *target, const fv_layout *layouts) {
    const fv_node *node = target->node;
    return target->kind == FV_TARGET_STORE && !node->ninputs && node->op && node->op->layout && layouts[node->id].whole_pieces;
}

double fv__stage_decodes(const fv_plan *plan, const fv_stage *stage, int step, const fv_layout *layout) {
    enum { SAMPLE = 64 }; /* tasks, the first and the last among them: together they reach as far as all do */
    const fv_image_type *type = &stage->steps[step].node->type.image;
    fv_region           *regions = fv__alloc((size_t)(stage->nsteps + 1) * sizeof *regions), all = { 0 };
    int64_t              sample = FV_MIN(stage->ntasks, SAMPLE), index;
    double               met = 0;
    fv_lattice           pieces;
    fv__lattice_init(&pieces, type->ndim, type->shape, layout->chunk);
    for (int64_t k = 0; k < sample; k++) {
        fv_region chunk = fv__stage_chunk(stage, k * (stage->ntasks / sample) + k * (stage->ntasks % sample) / sample, &index);
        if (k == sample - 1) chunk = fv__stage_chunk(stage, stage->ntasks - 1, &index);
        fv__stage_regions(plan, stage, &chunk, regions);
        if (!regions[step].ndim || fv__region_empty(&regions[step])) continue;
        fv_region aligned = fv__lattice_align(&pieces, &regions[step]);
        met += (double)fv__region_voxels(&aligned);
        all = fv__region_bound(&all, &aligned);
    }
    free(regions);
    return met ? met / (double)sample * (double)stage->ntasks / (double)fv__region_voxels(&all) : 0;
}

/* The most that any task needs: tasks differ only in which borders they touch. */
static void worst_case(fv_plan *plan, fv_stage *stage, const fv_layout *layouts) {
    int64_t kinds = 1, probes[FV_MAX_DIMS][3];
    int     nprobes[FV_MAX_DIMS];
    for (int d = 0; d < stage->lattice.ndim; d++) {
        int64_t n = stage->count[d];
        nprobes[d] = 0;
        for (int k = 0; k < 3; k++) {
            int64_t at = k == 0 ? 0 : k == 1 ? n / 2 : n - 1;
            if (!nprobes[d] || probes[d][nprobes[d] - 1] != at) probes[d][nprobes[d]++] = at;
        }
        kinds *= nprobes[d];
    }
    double work = 0, plain = 0;
    for (int64_t kind = 0; kind < kinds; kind++) {
        int64_t task = 0, rest = kind, index;
        for (int d = 0; d < stage->lattice.ndim; d++) {
            task = task * stage->count[d] + probes[d][rest % nprobes[d]];
            rest /= nprobes[d];
        }
        fv_region chunk = fv__stage_chunk(stage, task, &index);
        estimate  e = measure(plan, stage, &chunk, layouts);
        stage->memory = FV_MAX(stage->memory, e.memory);
        work = FV_MAX(work, e.work);
        plain = FV_MAX(plain, e.plain);
    }
    stage->work = work * (double)stage->ntasks;
    stage->expansion = plain > 0 ? work / plain : 1;
}

/* Decoded bytes of the pieces of files that a task meets, where chunks cut across them: its neighbours want them too. */
static int64_t cut_pieces(const fv_stage *stage, const fv_image_type *space, const fv_layout *layouts) {
    int64_t total = 0;
    for (int s = 0; s < stage->nsteps; s++) {
        const fv_node *node = stage->steps[s].node;
        if (stage->steps[s].kind != FV_STEP_RUN || node->ninputs || !node->op->layout || layouts[node->id].sequential) continue;
        if (!same_shape(space, node->type.image.ndim, node->type.image.shape)) continue;
        int64_t bytes = (int64_t)fv_dtype_size(node->type.image.dtype);
        bool    cut = false, pieces = false;
        for (int d = 0; d < space->ndim; d++) {
            int64_t chunk = stage->lattice.chunk[d], piece = FV_MAX(FV_MIN(layouts[node->id].chunk[d], space->shape[d]), 1);
            bool    across = chunk % piece != 0;
            cut = cut || across;
            pieces = pieces || piece < space->shape[d];
            bytes *= FV_MIN(((chunk + piece - 1) / piece + across) * piece, space->shape[d]);
        }
        if (cut && pieces) total += bytes;
    }
    return total;
}

void fv__stage_lattice(fv_plan *plan, fv_stage *stage, const fv_image_type *space, const fv_layout *layouts,
                       const fv_plan_options *options, const fv_region *wanted) {
    int64_t chunk[FV_MAX_DIMS];
    choose_chunk(plan, stage, space, layouts, options, chunk);
    if (options->divided && !options->chunk_ndim) divide(stage, space, chunk);
    fv__lattice_init(&stage->lattice, space->ndim, space->shape, chunk);
    stage->ntasks = 1;
    for (int d = 0; d < space->ndim; d++) {
        int64_t c = stage->lattice.chunk[d], end = wanted->ndim ? wanted->start[d] + wanted->size[d] : space->shape[d];
        stage->first[d] = wanted->ndim && !stage->serial ? wanted->start[d] / c : 0;
        stage->count[d] = FV_MAX((end + c - 1) / c - stage->first[d], 0);
        if (stage->ntasks >= 0 && !fv__mul(stage->ntasks, stage->count[d], &stage->ntasks)) stage->ntasks = -1;
    }
    if (stage->ntasks > 0) worst_case(plan, stage, layouts);
    stage->cpus = FV_MAX(program_cpus(stage), 1);
    stage->shared = cut_pieces(stage, space, layouts);
}

int64_t fv__plan_bytes_read(const fv_plan *plan) {
    int64_t total = 0;
    for (int s = 0; s < plan->nstages; s++) {
        const fv_stage *stage = &plan->stages[s];
        fv_region      *regions = fv__alloc((size_t)(stage->nsteps + 1) * sizeof *regions);
        int64_t         tasks = FV_MIN(stage->ntasks, 64), bytes = 0, index; /* a sample is enough for an estimate */
        for (int64_t k = 0; k < tasks; k++) {
            fv_region chunk = fv__stage_chunk(stage, k * stage->ntasks / tasks, &index);
            fv__stage_regions(plan, stage, &chunk, regions);
            for (int i = 0; i < stage->nsteps; i++) {
                const fv_node *node = stage->steps[i].node;
                if (regions[i].ndim && stage->steps[i].kind == FV_STEP_RUN) bytes += fv__node_reads(plan, node, &regions[i]);
            }
        }
        if (tasks > 0) total += (int64_t)((double)bytes * (double)stage->ntasks / (double)tasks);
        free(regions);
    }
    return total;
}
