/* Tilt angles as text: .tlt and .rawtlt of IMOD (a number a line), .mdoc of SerialEM. Read as a line of numbers, in degrees. */
#include "formats/tilts.h"
#include "op/format.h"
#include <stdio.h>

extern const fv_format fv_format_tilt_text;

static void close_reader(fv_reader *reader) { fv__reader_free(reader); }

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    fv_tilts tilts = { 0 };
    FV_TRY(fv__tilts_read(path, &tilts, error));
    fv_reader *r = fv__reader_new(sizeof *r, &fv_format_tilt_text, path);
    int64_t    count = tilts.count;
    fv_image_type_init(&r->type, FV_FLOAT64, 1, &count);
    snprintf(r->type.axis[0], sizeof r->type.axis[0], "angle");
    r->chunk[0] = r->nangles = count;
    r->angles = tilts.angle;
    tilts.angle = NULL;
    r->header = fv__hash_bytes(r->angles, (size_t)count * sizeof *r->angles);
    fv__bytes_printf(&r->facts, "angles: %.6g to %.6g degrees\n", r->angles[0], r->angles[count - 1]);
    fv__tilts_release(&tilts);
    *out = r;
    return FV_OK;
}

static fv_status read_block(fv_reader *reader, const fv_block *block, fv_error *error) {
    (void)error;
    fv_region whole = fv__region_whole(&reader->type);
    fv_block  from;
    fv__block_init(&from, block->dtype, &whole, reader->angles);
    fv__block_copy(block, &from);
    return FV_OK;
}

const fv_format fv_format_tilt_text = {
    .name = "tilt_text",
    .extensions = "tlt rawtlt mdoc",
    .brief = "tilt angles as text, as IMOD and SerialEM write them",
    .reads = "whole",
    .keeps = "nothing",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
};
