/* FSL's matrices as text: .mat, four lines of four numbers.
 *
 * They are in FSL's own coordinates, which follow from the two images: an image with the axes fsl_row and fsl_col, which is no
 * transform yet. fsl_transform makes one of it, and fsl_matrix the other way. */
#include "formats/text_header.h"
#include "op/single_piece.h"
#include <math.h>
#include <stdio.h>

extern const fv_format fv_format_fsl;
enum { MOST_BYTES = 4096, SIDE = 4 };

typedef struct {
    fv_reader base;
    double    number[SIDE * SIDE];
} reader;

static void close_reader(fv_reader *base) { fv__reader_free(base); }

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    reader   *r = fv__reader_new(sizeof *r, &fv_format_fsl, path);
    fv_bytes  text = { 0 };
    int64_t   shape[2] = { SIDE, SIDE };
    int       count = 0;
    fv_status status = fv__file_read_all(path, MOST_BYTES, &text, error);
    if (status == FV_OK) {
        for (size_t k = 0; k < text.size; k++)
            if (text.data[k] == '\n') text.data[k] = ' ';
        count = fv__text_numbers((const char *)text.data, r->number, SIDE * SIDE);
        r->base.header = fv__hash_bytes(text.data, text.size);
        for (int k = 0; k < count; k++)
            if (!isfinite(r->number[k])) count = 0;
        if (count != SIDE * SIDE)
            status = fv_fail(error, FV_ERROR_INPUT, "%s: not a matrix of FSL, which is four lines of four numbers as text", path);
    }
    fv__bytes_release(&text);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    fv_image_type_init(&r->base.type, FV_FLOAT64, 2, shape);
    snprintf(r->base.type.axis[0], sizeof r->base.type.axis[0], "fsl_row");
    snprintf(r->base.type.axis[1], sizeof r->base.type.axis[1], "fsl_col");
    memcpy(r->base.chunk, shape, sizeof shape);
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    (void)error;
    fv_region whole = fv__region_whole(&base->type);
    fv_block  from;
    fv__block_init(&from, FV_FLOAT64, &whole, ((reader *)base)->number);
    fv__block_copy(block, &from);
    return FV_OK;
}

/* ---------------------------------------------------------------- writing */

static fv_status lay_out(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    const fv_image_type *t = file->type;
    if (t->dtype != FV_FLOAT64 || t->ndim != 2 || strcmp(t->axis[0], "fsl_row") || strcmp(t->axis[1], "fsl_col") ||
        t->shape[0] != SIDE || t->shape[1] != SIDE)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s holds a matrix of FSL, which depends on both images: write(fsl_matrix(t, moving, fixed), ...)",
                       file->path);
    memcpy(layout->piece, t->shape, sizeof layout->piece);
    layout->piece_memory = 4096;
    return FV_OK;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **writer,
                        fv_error *error) {
    (void)error;
    *writer = fv__writer_new(sizeof **writer, &fv_format_fsl, file, layout, temporary);
    return FV_OK;
}

static fv_status encode(fv_writer *writer, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    (void)writer;
    (void)piece;
    (void)error;
    for (int64_t r = 0; r < SIDE; r++)
        for (int64_t c = 0; c < SIDE; c++) {
            int64_t at[2] = { r, c };
            fv__bytes_printf(out, "%.17g%s", *(const double *)fv__block_at(block, at), c < SIDE - 1 ? "  " : "\n");
        }
    return FV_OK;
}

const fv_format fv_format_fsl = {
    .name = "fsl",
    .extensions = "mat",
    .brief = "matrix of FSL's flirt, as text",
    .reads = "four lines of four numbers",
    .writes = "what fsl_matrix gives",
    .keeps = "nothing",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .layout = lay_out,
    .create = create,
    .encode = encode,
    .assemble = fv__assemble_single,
    .free_writer = fv__writer_free,
};
