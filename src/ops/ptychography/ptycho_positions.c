/* ptycho_positions: where frames were found, and how bright they are, as a table. */
#include "op/table_rows.h"
#include "ops/ptychography/frame_states.h"
#include <stdlib.h>

typedef struct {
    fv_wave_scan at;
    fv_numbers   origin;
} ptycho_positions;
enum { STATES, PROBE };
enum { FOUND = 4 }; /* frame, row, column, light */

static const fv_param params[] = {
    FV_WAVE_SCAN_PARAMS,
    FV_PARAM(ptycho_positions, origin, .def = "[0, 0]", .doc = "position of the object's corner, which is added: row and column"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "states", FV_KIND_IMAGE, .doc = "what ptycho_refine or ptycho_pie gives" },
    { "probe", FV_KIND_IMAGE, .doc = "the probe: mode, row, part, column" },
    FV_INPUT_END,
};
static const fv_table_type columns = {
    FOUND, { { "frame", FV_COLUMN_INTEGER }, { "y", FV_COLUMN_REAL }, { "x", FV_COLUMN_REAL }, { "light", FV_COLUMN_REAL } }
};

static fv_status infer(fv_infer *i, fv_error *error) {
    ptycho_positions *p = i->params;
    fv_waves          w;
    FV_TRY(fv__states_scan(&p->at, i->in[PROBE], &w, error));
    FV_TRY(fv__states_fit(&w, i->in[STATES], NULL, error));
    FV_TRY(fv__numbers_spread(&p->origin, 2, "origin", error));
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = &columns };
    return FV_OK;
}

/* The chunk with the corner does it all. */
static bool is_first(const fv_region *region) { return !region->start[0] && !region->start[1] && !region->start[2]; }

static void need(const fv_need *n, fv_region *in) {
    fv_waves w;
    fv__states_scan(n->params, n->in[PROBE], &w, NULL);
    in[STATES] = fv__states_region(&w, n->in[STATES], 0, is_first(&n->region) ? w.blocks : 1);
    in[PROBE] = (fv_region){ .ndim = 4, .size = { 1, 1, 1, 1 } }; /* its type alone matters */
}

static size_t bound(const fv_need *n) {
    return (size_t)(((const ptycho_positions *)n->params)->at.scan.count / FV_SCAN_NUMBERS * FOUND) * sizeof(double);
}

static int by_frame(const void *a, const void *b) {
    const double *p = a, *q = b;
    return (*p > *q) - (*p < *q);
}

static fv_status run(fv_run *r, fv_error *error) {
    fv_waves w;
    FV_TRY(fv__states_scan(r->need.params, r->need.in[PROBE], &w, error));
    for (int64_t f = 0; f < w.frames && is_first(&r->need.region); f++) {
        const double *at = fv__wave_frame(&w, f);
        double        found[FOUND] = { at[FV_SCAN_FRAME] }, light = (double)fv__state(&w, r->in[STATES], f, FV_STATE_LIGHT);
        for (int a = 0; a < 2; a++) found[1 + a] = at[FV_SCAN_Y + a] + (double)fv__state(&w, r->in[STATES], f, FV_STATE_Y + a);
        found[3] = light * light;
        fv__bytes_append(r->partial, found, sizeof found);
    }
    if (r->partial->size) qsort(r->partial->data, (size_t)w.frames, FOUND * sizeof(double), by_frame);
    return FV_OK;
}

static fv_status write_rows(fv_finish *f, const double (*found)[FOUND], int64_t count, fv_row_writer *writer, fv_error *error) {
    const ptycho_positions *p = f->params;
    for (int64_t i = 0; i < count; i++) {
        fv_cell *row;
        FV_TRY(fv__row_writer_next(writer, &row, error));
        row[0].integer = (int64_t)found[i][0];
        for (int a = 0; a < 2; a++) row[1 + a].real = found[i][1 + a] + p->origin.value[a];
        row[3].real = found[i][3];
    }
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    fv_row_writer writer;
    const void   *data;
    fv_status     status = f->partial(f, 0, &data, error);
    fv__row_writer_init(&writer, f);
    if (status == FV_OK) status = write_rows(f, data, (int64_t)(f->size(f, 0) / (FOUND * sizeof(double))), &writer, error);
    if (status == FV_OK) status = fv__row_writer_flush(&writer, error);
    fv__row_writer_release(&writer);
    return status;
}

static const fv_pass passes[] = { { .name = "places", .need = need, .bound = bound, .run = run, .finish = finish }, FV_PASS_END };

static const fv_column_doc column_docs[] = {
    { "frame", .doc = "number of the frame, from 0" },
    { "y", .unit = "px", .doc = "row of its corner in the object" },
    { "x", .unit = "px", .doc = "column of its corner" },
    { "light", .doc = "how bright the frame is beside the mean, as an intensity" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(ptycho_positions) = {
    .name = "ptycho_positions",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "where frames were found and how bright they are, as a table: a step of ptycho",
    .version = 2,
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
    .see = "ptycho ptycho_pie ptycho_refine read_positions",
};
