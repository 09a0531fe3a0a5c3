/* The ends of stages: merging partials into results, putting files together. */
#include "base/take.h"
#include "exec/earlier_results.h"
#include "exec/late_values.h"
#include "exec/sampled.h"
#include "op/table_rows.h"
#include <stdlib.h>

#define LARGE_MERGE ((int64_t)4 << 20) /* bytes of partials */

typedef struct finishing {
    fv_finish       base;
    fv_instance    *instance;
    const fv_stage *stage;
    const fv_node  *node;
    int             pass;
    fv_bytes        combined; /* of a pass with combine */
    fv_blob         held;     /* partial lent out */
    fv_bytes        result;   /* being put */
    fv_bytes        there;    /* a bit for each result */
    int64_t         result_index, count;
    double          seconds;
} finishing;

static fv_hash partial_key(const finishing *f, int64_t i) { return fv__key_partial(f->node, f->pass, &f->stage->lattice, i); }

/* ---------------------------------------------------------------- tables that are inputs */

typedef struct rows {
    fv_results     base;
    fv_instance   *instance;
    const fv_node *node;
    fv_blob        held;
} rows;

static void release_rows(rows *r) {
    if (r->held.entry) fv__store_unpin(r->instance->context->store, &r->held);
    r->held.entry = NULL;
}

static fv_status get_rows(fv_results *base, int64_t index, const void **data, size_t *size, fv_error *error) {
    rows   *r = (rows *)base;
    fv_hash key = fv__instance_table_piece(r->instance, r->node, index);
    *data = NULL;
    *size = 0;
    release_rows(r);
    if (!fv__store_has(r->instance->context->store, key)) return FV_OK;
    FV_TRY(fv__store_get(r->instance->context->store, key, &r->held, error));
    *data = r->held.data;
    *size = r->held.size;
    return FV_OK;
}

static fv_status open_rows(rows *r, fv_instance *instance, const fv_node *node, fv_error *error) {
    *r = (rows){ .base.get = get_rows, .instance = instance, .node = node };
    return fv__instance_table(instance, node, &r->base.count, error);
}

/* ---------------------------------------------------------------- partials */

static size_t partial_size(fv_finish *base, int64_t i) {
    finishing *f = (finishing *)base;
    return f->node->op->passes[f->pass].combine ? f->combined.size
                                                : fv__store_size(f->instance->context->store, partial_key(f, i));
}

static fv_status partial_get(fv_finish *base, int64_t i, const void **data, fv_error *error) {
    finishing *f = (finishing *)base;
    if (f->node->op->passes[f->pass].combine) {
        *data = f->combined.data;
        return FV_OK;
    }
    if (f->held.entry) fv__store_unpin(f->instance->context->store, &f->held);
    f->held.entry = NULL;
    FV_TRY(fv__store_get(f->instance->context->store, partial_key(f, i), &f->held, error));
    *data = f->held.data;
    return FV_OK;
}

static fv_status partial_read(fv_finish *base, int64_t i, size_t offset, void *data, size_t size, fv_error *error) {
    finishing *f = (finishing *)base;
    if (f->node->op->passes[f->pass].combine) {
        memcpy(data, f->combined.data + offset, size);
        return FV_OK;
    }
    return fv__store_read(f->instance->context->store, partial_key(f, i), offset, data, size, error);
}

static fv_status combine_all(finishing *f, int64_t count, fv_error *error) {
    const fv_pass *pass = &f->node->op->passes[f->pass];
    fv_store      *store = f->instance->context->store;
    for (int64_t i = 0; i < count; i++) {
        fv_blob blob;
        FV_TRY(fv__store_get(store, partial_key(f, i), &blob, error));
        if (i == 0)
            fv__bytes_append(&f->combined, blob.data, blob.size);
        else
            pass->combine(f->node->params, &f->combined, blob.data, blob.size);
        fv__store_unpin(store, &blob);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- results */

static fv_status end_result(finishing *f, fv_error *error) {
    if (!f->result.size) return FV_OK;
    while ((int64_t)f->there.size <= f->result_index / 8) fv__bytes_append(&f->there, "", 1);
    f->there.data[f->result_index / 8] |= (uint8_t)(1 << f->result_index % 8);
    void *buffer;
    FV_TRY(FV_TAKE_BUFFER(buffer, f->result.size, error));
    memcpy(buffer, f->result.data, f->result.size);
    size_t size = f->result.size;
    fv__bytes_clear(&f->result);
    return fv__store_put(f->instance->context->store, fv__key_result(f->node, f->pass, &f->stage->lattice, f->result_index),
                         buffer, size, f->seconds, true, error);
}

static fv_status result_put(fv_finish *base, int64_t index, const void *data, size_t size, fv_error *error) {
    finishing *f = (finishing *)base;
    if (index < f->result_index) return fv_fail(error, FV_ERROR_INTERNAL, "%s puts its results out of order", f->node->op->name);
    if (index != f->result_index) FV_TRY(end_result(f, error));
    f->result_index = index;
    f->count = index + 1;
    FV_TRY(fv__bytes_need(&f->result, size, error));
    fv__bytes_append(&f->result, data, size);
    return FV_OK;
}

/* The list comes last: with it the pass is finished. */
static fv_status end_results(finishing *f, fv_error *error) {
    FV_TRY(end_result(f, error));
    size_t           size = fv__results_list_size(f->count);
    fv_results_list *list;
    FV_TRY(FV_TAKE_BUFFER(list, size, error));
    memset(list, 0, size);
    list->count = f->count;
    if (f->there.size) memcpy(list->there, f->there.data, f->there.size);
    return fv__store_put(f->instance->context->store, fv__key_result(f->node, f->pass, &f->stage->lattice, -1), list, size,
                         f->seconds, true, error);
}

static fv_status finish_pass(fv_instance *instance, const fv_stage *stage, const fv_target *target, fv_error *error) {
    const fv_node     *node = target->node;
    const fv_pass     *pass = &node->op->passes[target->pass];
    double             start = fv__now();
    int64_t            count = stage->ntasks;
    fv_scalar          scalars[FV_MAX_INPUTS];
    rows               tables[FV_MAX_INPUTS] = { 0 };
    finishing          f = { .instance = instance, .stage = stage, .node = node, .pass = target->pass };
    fv_pins            pins = { 0 };
    fv_earlier_results earlier;
    f.base = (fv_finish){ .params = node->params,
                          .ninputs = node->ninputs,
                          .out = &node->type,
                          .lattice = &stage->lattice,
                          .npartials = pass->combine ? FV_MIN(count, 1) : count,
                          .size = partial_size,
                          .partial = partial_get,
                          .read = partial_read,
                          .put = result_put };
    if (fv__earlier_results_init(&earlier, instance, node, target->pass, &pins)) f.base.results = &earlier.base;
    for (int i = 0; i < node->ninputs; i++) {
        f.base.in[i] = node->in_type[i];
        if (node->in[i] && node->in[i]->type.kind == FV_KIND_TABLE) {
            FV_TRY(open_rows(&tables[i], instance, node->in[i], error));
            f.base.table[i] = &tables[i].base;
        }
        if (!node->in[i] || node->in[i]->type.kind != FV_KIND_SCALAR) continue;
        FV_TRY(fv__instance_scalar(instance, node->in[i], &scalars[i], error));
        f.base.scalar[i] = &scalars[i];
    }
    void *late;
    FV_TRY(fv__late_params(node, f.base.scalar, &f.base.params, &late, error));
    fv_status status = pass->combine ? combine_all(&f, count, error) : FV_OK;
    if (status == FV_OK) status = pass->finish(&f.base, error);
    f.seconds = fv__now() - start;
    if (status == FV_OK) status = end_results(&f, error);
    free(late);
    if (f.held.entry) fv__store_unpin(instance->context->store, &f.held);
    for (int i = 0; i < node->ninputs; i++)
        if (f.base.table[i]) release_rows(&tables[i]);
    fv__pins_release(&pins, instance->context->store);
    free(pins.blobs);
    fv__bytes_release(&f.combined);
    fv__bytes_release(&f.result);
    fv__bytes_release(&f.there);
    if (status != FV_OK && error && !error->op[0]) strncpy(error->op, node->op->name, sizeof error->op - 1);
    return status;
}

static fv_status check_holds(const fv_node *node, double value, fv_error *error) {
    double most = node->type.dtype == FV_UINT64 ? 0x1p64 : node->type.dtype == FV_INT64 ? 0x1p63 : INFINITY;
    if (!(fabs(value) >= most)) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT,
                   "it is about %.3g, more than %s holds: %s(convert(image, \"float64\")) can be estimated", value,
                   fv_dtype_name(node->type.dtype), node->op->name);
}

/* The value as the operator would give it. */
static fv_scalar scalar_of(const fv_node *node, double value) {
    fv_scalar scalar;
    memset(&scalar, 0, sizeof scalar); /* also between the fields: equal results are equal bytes */
    scalar.dtype = node->type.dtype;
    if (scalar.dtype == FV_FLOAT64)
        scalar.real = value;
    else if (scalar.dtype == FV_UINT64)
        scalar.natural = (uint64_t)FV_MIN(FV_MAX(round(value), 0), 0x1.fffffffffffffp63);
    else
        scalar.integer = (int64_t)FV_MIN(FV_MAX(round(value), -0x1p63), 0x1.fffffffffffffp62);
    return scalar;
}

static fv_status put_estimated_rows(finishing *f, const fv_estimates *e, fv_error *error) {
    fv_row_writer writer;
    fv_status     status = FV_OK;
    f->base.out = &f->node->type;
    f->base.put = result_put;
    fv__row_writer_init(&writer, &f->base);
    for (int64_t r = 0; r < e->nrows && status == FV_OK; r++) {
        const fv_interval *of = e->interval + r * e->nvalues;
        fv_cell           *cell;
        if ((status = fv__row_writer_next(&writer, &cell, error)) != FV_OK) break;
        for (int c = 0; c < e->nplain; c++)
            fv__row_writer_copy(&writer, f->node->type.table->column[c].kind, cell++, e->plain[r * e->nplain + c]);
        for (int v = 0; v < e->nvalues; v++) {
            (cell++)->real = of[v].value;
            (cell++)->real = of[v].low;
            (cell++)->real = of[v].high;
        }
        (cell++)->real = of->confidence;
        (cell++)->integer = of->seen;
        (cell++)->integer = of->population;
        fv__row_writer_text(&writer, cell, of->method);
    }
    if (status == FV_OK) status = fv__row_writer_flush(&writer, error);
    fv__row_writer_release(&writer);
    return status;
}

static fv_status put_estimated_value(finishing *f, const fv_interval *estimate, fv_error *error) {
    FV_TRY(check_holds(f->node, estimate->value, error));
    fv_scalar scalar = scalar_of(f->node, estimate->value);
    FV_TRY(result_put(&f->base, 0, &scalar, sizeof scalar, error));
    return result_put(&f->base, 1, estimate, sizeof *estimate, error);
}

/* Of a number, result 0 is the value and result 1 how well it is known; of a table they are its rows. A sample that is not large
 * enough yet has none. */
static fv_status finish_sample(fv_instance *instance, const fv_stage *stage, const fv_target *target, fv_error *error) {
    finishing     f = { .instance = instance, .stage = stage, .node = target->node, .pass = target->pass };
    double        start = fv__now();
    bool          table = target->node->type.kind == FV_KIND_TABLE;
    fv_sample_end end;
    fv_interval   estimate;
    fv_estimates  found = { 0 };
    memset(&estimate, 0, sizeof estimate);
    fv_status status = fv__sample_look(instance, stage, target->node, &estimate, &found, &end, error);
    f.seconds = fv__now() - start;
    if (status == FV_OK && end == FV_SAMPLE_ALL && !table) return finish_pass(instance, stage, target, error);
    if (status == FV_OK && end != FV_SAMPLE_MORE) {
        status = table ? put_estimated_rows(&f, &found, error) : put_estimated_value(&f, &estimate, error);
        if (status == FV_OK) status = end_results(&f, error);
    }
    fv__estimates_release(&found);
    fv__bytes_release(&f.result);
    fv__bytes_release(&f.there);
    return status;
}

static fv_status finish_passes(fv_instance *instance, const fv_stage *stage, fv_error *error) {
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_target *target = &stage->targets[t];
        if (target->kind != FV_TARGET_PASS) continue;
        if (fv__store_has(instance->context->store, fv__key_result(target->node, target->pass, &stage->lattice, -1))) continue;
        FV_TRY((target->node->sampling && !target->pass ? finish_sample : finish_pass)(instance, stage, target, error));
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- files */

typedef struct pieces {
    fv_pieces      base;
    fv_store      *store;
    const fv_sink *sink;
    fv_blob        held;
} pieces;

static fv_status get_piece(fv_pieces *base, int64_t index, const void **data, size_t *size, fv_error *error) {
    pieces *p = (pieces *)base;
    if (p->held.entry) fv__store_unpin(p->store, &p->held);
    p->held.entry = NULL;
    FV_TRY(fv__store_get(p->store, fv__key_piece(p->sink, index), &p->held, error));
    *data = p->held.data;
    *size = p->held.size;
    return FV_OK;
}

/* Tells the writer what the image's operator has found of its place. */
static fv_status place(fv_instance *instance, const fv_node *node, fv_writer *writer, fv_error *error) {
    fv_pins            pins = { 0 };
    fv_earlier_results found;
    const void        *affine = NULL;
    size_t             size = 0;
    fv__earlier_results_init(&found, instance, node, 1, &pins);
    fv_status status = found.base.get(&found.base, 0, &affine, &size, error);
    if (status == FV_OK && size != 12 * sizeof(double))
        status = fv_fail(error, FV_ERROR_INTERNAL, "%s found no place of the image", node->op->name);
    if (status == FV_OK) status = writer->format->place(writer, affine, error);
    fv__pins_release(&pins, instance->context->store);
    free(pins.blobs);
    return status;
}

static fv_status assemble(fv_instance *instance, const fv_target *target, fv_error *error) {
    fv_writer     *writer = fv__instance_output(instance, target)->writer;
    const fv_node *node = target->file->sink->value;
    fv_lattice     lattice;
    if (fv__placed_later(node)) FV_TRY(place(instance, node, writer, error));
    if (writer->layout.parallel) return writer->format->finish(writer, error);
    fv__lattice_init(&lattice, writer->type.ndim, writer->type.shape, writer->layout.piece);
    pieces    p = { .base = { .get = get_piece, .count = fv__lattice_count(&lattice) },
                    .store = instance->context->store,
                    .sink = target->file->sink };
    fv_status status = writer->format->assemble(writer, &p.base, error);
    if (p.held.entry) fv__store_unpin(p.store, &p.held);
    return status;
}

/* A merge holds what it merges, roughly: the bytes of all partials, or of two where they are added to one another. */
int64_t fv__stage_end_memory(const fv_instance *instance, const fv_stage *stage) {
    int64_t most = 0;
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_target *target = &stage->targets[t];
        if (target->kind != FV_TARGET_PASS) continue;
        bool    added = target->node->op->passes[target->pass].combine;
        int64_t bytes = 0, count = added ? FV_MIN(stage->ntasks, 2) : stage->ntasks;
        for (int64_t i = 0; i < count; i++) {
            fv_hash key = fv__key_partial(target->node, target->pass, &stage->lattice, i);
            bytes += (int64_t)fv__store_size(instance->context->store, key);
        }
        most = FV_MAX(most, bytes);
    }
    return most;
}

fv_status fv__stage_end(fv_instance *instance, const fv_stage *stage, fv_error *error) {
    bool closed;
    FV_TRY(fv__fault_point("end", error));
    FV_TRY(fv__stage_closed(instance, stage, &closed, error));
    if (closed) return FV_OK;
    if (fv__stage_end_memory(instance, stage) > LARGE_MERGE) fv__buffer_trim(); /* of tasks: the merge takes their place */
    FV_TRY(finish_passes(instance, stage, error));
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_target *target = &stage->targets[t];
        if (target->kind != FV_TARGET_SINK || fv__output_current(fv__instance_output(instance, target))) continue;
        FV_TRY(assemble(instance, target, error));
    }
    return FV_OK;
}
