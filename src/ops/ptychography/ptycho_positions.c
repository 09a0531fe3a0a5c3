/* ptycho_positions: where ptycho_pie has found the frames, as a table. */
#include "op/table_rows.h"
#include "ops/ptychography/pie_rows.h"
#include <stdlib.h>

typedef struct {
    fv_wave_scan at;
    fv_numbers   origin;
} ptycho_positions;
enum { CHANGES, PROBE };

static const fv_param params[] = {
    FV_WAVE_SCAN_PARAMS,
    FV_PARAM(ptycho_positions, origin, .def = "[0, 0]", .doc = "position of the object's corner, which is added: row and column"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "changes", FV_KIND_IMAGE, .doc = "what ptycho_pie gives" },
    { "probe", FV_KIND_IMAGE, .doc = "the probe: mode, row, part, column" },
    FV_INPUT_END,
};
static const fv_table_type columns = { 3, { { "frame", FV_COLUMN_INTEGER }, { "y", FV_COLUMN_REAL }, { "x", FV_COLUMN_REAL } } };

static fv_status find(const fv_wave_scan *at, const fv_type *changes, const fv_type *probe, fv_waves *w, fv_error *error) {
    const fv_image_type *c = &changes->image, *p = &probe->image;
    if (c->ndim != 3 || c->dtype != FV_FLOAT32 || p->ndim != 4 || p->shape[2] != 2)
        return fv_fail(error, FV_ERROR_USAGE, "changes and probe are not what ptycho_pie gives and takes");
    FV_TRY(fv__waves_find(at, p->shape[1], p->shape[3], p->shape[0], w, error));
    if (c->shape[0] == w->blocks && c->shape[1] == fv__pie_probe_rows(w) + fv__pie_place_rows(w) + w->sum_rows) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "changes and scan have not the same frames");
}

static fv_status infer(fv_infer *i, fv_error *error) {
    ptycho_positions *p = i->params;
    fv_waves          w;
    FV_TRY(find(&p->at, i->in[CHANGES], i->in[PROBE], &w, error));
    FV_TRY(fv__numbers_spread(&p->origin, 2, "origin", error));
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = &columns };
    return FV_OK;
}

/* The chunk with the corner does it all. */
static bool is_first(const fv_region *region) { return !region->start[0] && !region->start[1] && !region->start[2]; }

static void need(const fv_need *n, fv_region *in) {
    fv_waves w;
    find(n->params, n->in[CHANGES], n->in[PROBE], &w, NULL);
    in[CHANGES] = fv__region_whole(&n->in[CHANGES]->image);
    in[CHANGES].start[1] = fv__pie_probe_rows(&w);
    in[CHANGES].size[1] = fv__pie_place_rows(&w);
    if (!is_first(&n->region)) in[CHANGES].size[0] = 1;
    in[PROBE] = (fv_region){ .ndim = 4, .size = { 1, 1, 1, 1 } }; /* its type alone matters */
}

static size_t bound(const fv_need *n) { return (size_t)((const ptycho_positions *)n->params)->at.scan.count * sizeof(double); }

static int by_frame(const void *a, const void *b) {
    const double *p = a, *q = b;
    return (*p > *q) - (*p < *q);
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *places = r->in[CHANGES];
    fv_waves        w;
    FV_TRY(find(r->need.params, r->need.in[CHANGES], r->need.in[PROBE], &w, error));
    for (int64_t f = 0; f < w.frames && is_first(&r->need.region); f++) {
        const double *at = fv__wave_frame(&w, f);
        double        found[3] = { at[FV_SCAN_FRAME] };
        for (int a = 0; a < 2; a++) {
            int64_t number = 2 * (f % w.block) + a,
                    place[3] = { f / w.block, places->region.start[1] + number / w.row, number % w.row };
            found[1 + a] = at[FV_SCAN_Y + a] + (double)*(float *)fv__block_at(places, place);
        }
        fv__bytes_append(r->partial, found, sizeof found);
    }
    if (r->partial->size) qsort(r->partial->data, (size_t)w.frames, 3 * sizeof(double), by_frame);
    return FV_OK;
}

static fv_status write_rows(fv_finish *f, const double (*found)[3], int64_t count, fv_row_writer *writer, fv_error *error) {
    const ptycho_positions *p = f->params;
    for (int64_t i = 0; i < count; i++) {
        fv_cell *row;
        FV_TRY(fv__row_writer_next(writer, &row, error));
        row[0].integer = (int64_t)found[i][0];
        for (int a = 0; a < 2; a++) row[1 + a].real = found[i][1 + a] + p->origin.value[a];
    }
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    fv_row_writer writer;
    const void   *data;
    fv_status     status = f->partial(f, 0, &data, error);
    fv__row_writer_init(&writer, f);
    if (status == FV_OK) status = write_rows(f, data, (int64_t)(f->size(f, 0) / (3 * sizeof(double))), &writer, error);
    if (status == FV_OK) status = fv__row_writer_flush(&writer, error);
    fv__row_writer_release(&writer);
    return status;
}

static const fv_pass passes[] = { { .name = "places", .need = need, .bound = bound, .run = run, .finish = finish }, FV_PASS_END };

static const fv_column_doc column_docs[] = {
    { "frame", .doc = "number of the frame, from 0" },
    { "y", .unit = "px", .doc = "row of its corner in the object" },
    { "x", .unit = "px", .doc = "column of its corner" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(ptycho_positions) = {
    .name = "ptycho_positions",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "where frames were found, as a table: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_positions),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .columns = column_docs,
    .example = "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
               "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
               "p = ones([1, 16, 2, 16], \"float32\")\n"
               "t = ptycho_pie(a, ones([24, 2, 24], \"float32\"), p, scan, [0, 0], between = [0, 0, 0, 0, 0, 0], reach = 1)\n"
               "ptycho_positions(t, p, scan, [0, 0])",
    .see = "ptycho ptycho_pie read_positions",
};
