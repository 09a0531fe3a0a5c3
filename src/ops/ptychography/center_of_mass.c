/* center_of_mass: where the middle of the counts of each frame is, as a table. */
#include "op/table_rows.h"
#include "ops/ptychography/frame_center.h"

static const fv_table_type columns = {
    1 + NUMBERS,
    { { "frame", FV_COLUMN_INTEGER }, { "y", FV_COLUMN_REAL }, { "x", FV_COLUMN_REAL }, { "counts", FV_COLUMN_REAL } }
};
static const fv_column_doc column_docs[] = {
    { "frame", .doc = "number of the frame, from 0" },
    { "y", .unit = "px", .doc = "mean row, weighted by the counts; none of a frame without counts" },
    { "x", .unit = "px", .doc = "mean column, weighted by the counts" },
    { "counts", .doc = "sum of the counts" },
    FV_COLUMN_DOC_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    FV_TRY(fv__frame_center_check(i, error));
    if (i->in[FRAMES]->image.ndim != 3)
        return fv_fail(error, FV_ERROR_USAGE, "frames must have three axes (frame, y, x); frame_centers takes any number");
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = &columns };
    return FV_OK;
}

/* The chunk that has the corner of its frames does them whole. */
static bool is_corner(const fv_region *region) { return !region->start[1] && !region->start[2]; }

static void need(const fv_need *n, fv_region *in) {
    fv__frame_center_need(n, in);
    for (int d = 0; d < 3 && !is_corner(&n->region); d++) in[FRAMES].size[d] = 1;
}

static size_t bound(const fv_need *n) { return (size_t)n->region.size[0] * (1 + NUMBERS) * sizeof(fv_cell); }

static fv_status run(fv_run *r, fv_error *error) {
    const fv_region *region = &r->need.region;
    (void)error;
    for (int64_t f = region->start[0]; f < region->start[0] + region->size[0] && is_corner(region); f++) {
        int64_t at[3] = { f };
        double  value[NUMBERS];
        fv_cell row[1 + NUMBERS] = { { .integer = f } };
        fv__frame_center(r, at, value);
        for (int k = 0; k < NUMBERS; k++) row[1 + k].real = value[k];
        fv__bytes_append(r->partial, row, sizeof row);
    }
    return FV_OK;
}

static const fv_pass passes[] = {
    { .need = need, .scratch = fv__frame_center_scratch, .bound = bound, .run = run, .finish = fv__finish_rows }, FV_PASS_END
};

const fv_op FV_OP(center_of_mass) = {
    .name = "center_of_mass",
    .family = "ptychography",
    .stage = "prepare",
    .brief = "row, column and sum of the counts of each frame, as a table",
    .also = "centre_of_mass, ndimage.center_of_mass, centroid, COM",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_TABLE,
    .columns = column_docs,
    .infer = infer,
    .passes = passes,
    .doc = "Pixels that are not finite are left out. The mean over all frames tells where the direct beam is, for crop_frames; "
           "changes "
           "from frame to frame are what dpc looks at; counts that jump tell of a beam that was gone. frame_centers gives the "
           "same as "
           "an image.",
    .citation = "scipy.ndimage.center_of_mass",
    .example = "o = complex_image(ones([160, 160]), gaussian(phantom(\"cells\", [160, 160]) / 20, 2))\n"
               "frames = diffract(o, make_probe(32, radius = 8, counts = 1e5), scan_positions(\"raster\", 127, 16))\n"
               "center_of_mass(frames)",
    .see = "frame_centers dpc crop_frames measure",
};
