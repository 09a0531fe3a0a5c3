/* ITK's transforms as text: .tfm. What they mean is in itk_transform.h.
 *
 * A transform is an image with the axes row and column (op/physical.h) or control and those of control points
 * (op/control_grid.h), in ITK's own physical space: its numbers stay. */
#include "base/take.h"
#include "formats/itk_transform.h"
#include "formats/text_header.h"
#include "op/single_piece.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

extern const fv_format fv_format_tfm;
enum { MOST_BYTES = 256 << 20 };

typedef struct {
    fv_reader        base;
    fv_itk_transform transform;
} reader;

/* ---------------------------------------------------------------- reading */

static void close_reader(fv_reader *base) {
    fv__itk_release(&((reader *)base)->transform);
    fv__reader_free(base);
}

static fv_status take_fixed(const char *path, const char *value, fv_itk_entry *e, fv_error *error) {
    e->nfixed = fv__text_numbers(value, e->fixed, FV_ITK_FIXED);
    if (e->nfixed < 0) return fv_fail(error, FV_ERROR_INPUT, "%s: FixedParameters holds something else than numbers", path);
    return FV_OK;
}

static fv_status take_parameters(const char *path, const char *value, fv_itk_entry *e, fv_error *error) {
    int64_t most = (int64_t)strlen(value) / 2 + 1;
    fv__itk_end(e);
    FV_TRY(FV_TAKE(e->parameter, (size_t)most * sizeof *e->parameter, error));
    e->nparameters = fv__text_numbers(value, e->parameter, (int)most);
    if (e->nparameters < 0) return fv_fail(error, FV_ERROR_INPUT, "%s: Parameters holds something else than numbers", path);
    return FV_OK;
}

static fv_status take_line(reader *r, const char *name, const char *value, fv_itk_entry *e, fv_error *error) {
    const char *path = r->base.path;
    if (!strcmp(name, "Transform")) {
        FV_TRY(fv__itk_add(path, e, &r->transform, error));
        fv__itk_end(e);
        return fv__itk_begin(path, value, e, error);
    }
    if (!strcmp(name, "Parameters")) return take_parameters(path, value, e, error);
    return strcmp(name, "FixedParameters") ? FV_OK : take_fixed(path, value, e, error);
}

static fv_status parse(reader *r, char *text, fv_itk_entry *e, fv_error *error) {
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        char *value = strchr(line, ':');
        if (*line == '#' || !value) continue;
        *value++ = 0;
        value += strspn(value, " \t");
        for (size_t k = strlen(value); k && isspace((unsigned char)value[k - 1]);) value[--k] = 0;
        FV_TRY(take_line(r, line, value, e, error));
    }
    FV_TRY(fv__itk_add(r->base.path, e, &r->transform, error));
    if (!r->transform.n)
        return fv_fail(error, FV_ERROR_INPUT, "%s: not a transform of ITK, or damaged: it has no line \"Transform: ...\"",
                       r->base.path);
    return FV_OK;
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    reader      *r = fv__reader_new(sizeof *r, &fv_format_tfm, path);
    fv_bytes     text = { 0 };
    fv_itk_entry entry = { .n = 0 };
    fv__itk_init(&r->transform);
    fv_status status = fv__file_read_all(path, MOST_BYTES, &text, error);
    if (status == FV_OK) r->base.header = fv__hash_bytes(text.data, text.size);
    if (status == FV_OK) status = parse(r, (char *)text.data, &entry, error);
    if (status == FV_OK) status = fv__itk_type(path, &r->transform, &r->base.type, &r->base.facts, error);
    fv__itk_end(&entry);
    fv__bytes_release(&text);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    memcpy(r->base.chunk, r->base.type.shape, sizeof r->base.chunk);
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    (void)error;
    fv__itk_store(&((reader *)base)->transform, &base->type, block);
    return FV_OK;
}

/* ---------------------------------------------------------------- writing */

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **writer,
                        fv_error *error) {
    (void)error;
    *writer = fv__writer_new(sizeof **writer, &fv_format_tfm, file, layout, temporary);
    return FV_OK;
}

static fv_status encode(fv_writer *writer, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    fv_itk_entry e;
    (void)piece;
    FV_TRY(fv__itk_entry_of(&writer->type, writer->path, block, &e, error));
    fv__bytes_printf(out, "#Insight Transform File V1.0\n#Transform 0\nTransform: %s_double_%d_%d\nParameters:", e.kind, e.n,
                     e.n);
    for (int64_t k = 0; k < e.nparameters; k++) fv__bytes_printf(out, " %.17g", e.parameter[k]);
    fv__bytes_printf(out, "\nFixedParameters:");
    for (int k = 0; k < e.nfixed; k++) fv__bytes_printf(out, " %.17g", e.fixed[k]);
    fv__bytes_printf(out, "\n");
    fv__itk_end(&e);
    return FV_OK;
}

const fv_format fv_format_tfm = {
    .name = "tfm",
    .extensions = "tfm",
    .magic = { { 0, 24, "#Insight Transform File " } },
    .brief = "transform of ITK, as text",
    .reads = "linear transforms, also several one after another, and B-splines",
    .writes = "what register gives, as an AffineTransform or a BSplineTransform",
    .keeps = "where control points lie",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .layout = fv__itk_layout,
    .create = create,
    .encode = encode,
    .assemble = fv__assemble_single,
    .free_writer = fv__writer_free,
};
