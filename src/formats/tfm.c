/* ITK's transforms as text: .tfm. The linear ones are read whatever ITK calls them, several of them as the one that they are
 * together; they are written as AffineTransform.
 *
 * A transform is an image with the axes row and column (op/physical.h), in ITK's own physical space: its numbers stay. */
#include "base/math.h"
#include "formats/text_header.h"
#include "op/physical.h"
#include "op/single_piece.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

extern const fv_format fv_format_tfm;
enum { MOST_BYTES = 16 << 20, MOST_NUMBERS = 16 };

typedef struct {
    fv_reader base;
    double    matrix[12];
} reader;

/* ---------------------------------------------------------------- the kinds of ITK */

typedef struct {
    char   kind[64];
    int    n; /* dimensions; 0: no transform was begun */
    int    nparameters, nfixed;
    double parameter[MOST_NUMBERS], fixed[MOST_NUMBERS];
} entry;

static void identity(double m[12]) {
    for (int k = 0; k < 12; k++) m[k] = k % 5 == 0;
}

/* Turns about x, y or z (0, 1, 2), one after another: m becomes m times the turn. */
static void turn(double m[12], int about, double angle) {
    double by[12], c = fv__cos(angle), s = fv__sin(angle);
    int    a = (about + 1) % 3, b = (about + 2) % 3;
    identity(by);
    by[a * 4 + a] = by[b * 4 + b] = c;
    by[a * 4 + b] = -s;
    by[b * 4 + a] = s;
    fv__matrix_chain(m, by, m);
}

static void versor(double m[12], const double *v) {
    double x = v[0], y = v[1], z = v[2], w = sqrt(FV_MAX(1 - (x * x + y * y + z * z), 0));
    double turned[9] = { 1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),
                         2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
                         2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y) };
    for (int k = 0; k < 9; k++) m[k / 3 * 4 + k % 3] = turned[k];
}

static void scale(double m[12], int n, double by) {
    for (int k = 0; k < 12; k++)
        if (k % 4 < n && k / 4 < n) m[k] *= by;
}

typedef void build(const entry *e, double m[12]); /* all but the shift */

static void build_none(const entry *e, double m[12]) {
    (void)e;
    (void)m;
}
static void build_affine(const entry *e, double m[12]) {
    for (int k = 0; k < e->n * e->n; k++) m[k / e->n * 4 + k % e->n] = e->parameter[k];
}
static void build_turned_plane(const entry *e, double m[12]) { turn(m, 2, e->parameter[0]); }
static void build_similar_plane(const entry *e, double m[12]) {
    turn(m, 2, e->parameter[1]);
    scale(m, 2, e->parameter[0]);
}
static void build_euler(const entry *e, double m[12]) {
    bool zyx = e->nfixed > 3 && e->fixed[3] != 0;
    turn(m, 2, e->parameter[2]);
    turn(m, zyx ? 1 : 0, e->parameter[zyx ? 1 : 0]);
    turn(m, zyx ? 0 : 1, e->parameter[zyx ? 0 : 1]);
}
static void build_versor(const entry *e, double m[12]) { versor(m, e->parameter); }
static void build_similar(const entry *e, double m[12]) {
    versor(m, e->parameter);
    scale(m, 3, e->parameter[6]);
}

static const struct {
    const char *name;
    int         n, count, shift; /* dimensions (0: any), parameters (of any dimensions: see count_of), where the shift begins */
    build      *build;
} kinds[] = {
    { "AffineTransform", 0, 0, 0, build_affine },
    { "MatrixOffsetTransformBase", 0, 0, 0, build_affine },
    { "IdentityTransform", 0, 0, -1, build_none },
    { "TranslationTransform", 0, 0, 0, build_none },
    { "Euler2DTransform", 2, 3, 1, build_turned_plane },
    { "Rigid2DTransform", 2, 3, 1, build_turned_plane },
    { "Similarity2DTransform", 2, 4, 2, build_similar_plane },
    { "Euler3DTransform", 3, 6, 3, build_euler },
    { "VersorTransform", 3, 3, -1, build_versor },
    { "VersorRigid3DTransform", 3, 6, 3, build_versor },
    { "Similarity3DTransform", 3, 7, 3, build_similar },
};

/* The matrix of an entry, about its centre. */
static fv_status matrix_of(const char *path, const entry *e, double m[12], fv_error *error) {
    for (int i = 0; i < FV_COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, e->kind)) continue;
        int count = kinds[i].n                                    ? kinds[i].count
                    : kinds[i].build == build_affine              ? e->n * e->n + e->n
                    : !strcmp(kinds[i].name, "IdentityTransform") ? 0
                                                                  : e->n;
        int shift = kinds[i].build == build_affine ? e->n * e->n : kinds[i].shift;
        if ((kinds[i].n && kinds[i].n != e->n) || (count && e->nparameters != count))
            return fv_fail(error, FV_ERROR_INPUT, "%s: a %s of %d dimensions has %d parameters there; it takes %d", path, e->kind,
                           e->n, e->nparameters, count);
        identity(m);
        kinds[i].build(e, m);
        for (int r = 0; r < e->n; r++) {
            double centre = r < e->nfixed ? e->fixed[r] : 0, moved = centre + (shift < 0 || !count ? 0 : e->parameter[shift + r]);
            for (int c = 0; c < e->n && c < e->nfixed; c++) moved -= m[r * 4 + c] * e->fixed[c];
            m[r * 4 + 3] = moved;
        }
        for (int k = 0; k < 12; k++)
            if (!isfinite(m[k])) return fv_fail(error, FV_ERROR_INPUT, "%s: a number of the %s is not finite", path, e->kind);
        return FV_OK;
    }
    fv_bytes names = { 0 };
    for (int i = 0; i < FV_COUNT(kinds); i++) fv__bytes_printf(&names, "%s%s", i ? ", " : "", kinds[i].name);
    fv_status status = fv_fail(error, FV_ERROR_INPUT, "%s holds a %s, which cannot be read; these can: %s", path, e->kind,
                               (const char *)names.data);
    fv__bytes_release(&names);
    return status;
}

/* ---------------------------------------------------------------- reading */

static void close_reader(fv_reader *base) { fv__reader_free(base); }

/* "AffineTransform_double_3_3": the kind and its dimensions. */
static fv_status begin_entry(const char *path, const char *value, entry *e, fv_error *error) {
    int length = (int)strcspn(value, "_"), in = 0, out = 0;
    *e = (entry){ .n = 0 };
    snprintf(e->kind, sizeof e->kind, "%.*s", FV_MIN(length, 63), value);
    if (sscanf(value + length, "_%*[a-z]_%d_%d", &in, &out) != 2 || in != out || (in != 2 && in != 3))
        return fv_fail(error, FV_ERROR_INPUT, "%s: \"Transform: %.60s\" is no transform of 2 or 3 dimensions", path, value);
    e->n = in;
    return FV_OK;
}

/* Puts a whole entry behind what was read before: of several, the last is applied first. */
static fv_status add_entry(reader *r, const entry *e, int *n, fv_error *error) {
    double m[12];
    if (!e->n || !strcmp(e->kind, "CompositeTransform")) return FV_OK;
    if (*n && *n != e->n)
        return fv_fail(error, FV_ERROR_INPUT, "%s holds transforms of %d and of %d dimensions", r->base.path, *n, e->n);
    FV_TRY(matrix_of(r->base.path, e, m, error));
    fv__matrix_chain(r->matrix, m, r->matrix);
    *n = e->n;
    return FV_OK;
}

static fv_status take_numbers(const char *path, const char *field, const char *value, double *numbers, int *count,
                              fv_error *error) {
    *count = fv__text_numbers(value, numbers, MOST_NUMBERS);
    if (*count < 0) return fv_fail(error, FV_ERROR_INPUT, "%s: %s holds something else than numbers", path, field);
    return FV_OK;
}

static fv_status parse(reader *r, char *text, int *n, fv_error *error) {
    const char *path = r->base.path;
    entry       e = { .n = 0 };
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        char *value = strchr(line, ':');
        if (*line == '#' || !value) continue;
        *value++ = 0;
        value += strspn(value, " \t");
        for (size_t k = strlen(value); k && isspace((unsigned char)value[k - 1]);) value[--k] = 0;
        if (!strcmp(line, "Transform")) {
            FV_TRY(add_entry(r, &e, n, error));
            FV_TRY(begin_entry(path, value, &e, error));
        } else if (!strcmp(line, "Parameters"))
            FV_TRY(take_numbers(path, line, value, e.parameter, &e.nparameters, error));
        else if (!strcmp(line, "FixedParameters"))
            FV_TRY(take_numbers(path, line, value, e.fixed, &e.nfixed, error));
    }
    FV_TRY(add_entry(r, &e, n, error));
    if (!*n)
        return fv_fail(error, FV_ERROR_INPUT, "%s: not a transform of ITK, or damaged: it has no line \"Transform: ...\"", path);
    return FV_OK;
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    reader  *r = fv__reader_new(sizeof *r, &fv_format_tfm, path);
    fv_bytes text = { 0 };
    int      n = 0;
    identity(r->matrix);
    fv_status status = fv__file_read_all(path, MOST_BYTES, &text, error);
    if (status == FV_OK) r->base.header = fv__hash_bytes(text.data, text.size);
    if (status == FV_OK) status = parse(r, (char *)text.data, &n, error);
    fv__bytes_release(&text);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    fv_image_type none = { .ndim = 0 };
    fv__transform_linear(&none, n, &r->base.type);
    memcpy(r->base.chunk, r->base.type.shape, sizeof r->base.chunk);
    fv__bytes_printf(&r->base.facts, "transform: linear, %d dimensions\n", n);
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    fv_transform t;
    FV_TRY(fv__transform_find(&base->type, base->path, &t, error));
    fv__transform_store(block, &t, NULL, ((reader *)base)->matrix);
    return FV_OK;
}

/* ---------------------------------------------------------------- writing */

static fv_status lay_out(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    fv_transform t;
    FV_TRY(fv__transform_find(file->type, file->path, &t, error));
    if (t.before)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s: a file holds one transform, and there is one for each place along %s: take one, as t[0]", file->path,
                       file->type->axis[0]);
    memcpy(layout->piece, file->type->shape, sizeof layout->piece);
    layout->piece_memory = 4096;
    return FV_OK;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **writer,
                        fv_error *error) {
    (void)error;
    *writer = fv__writer_new(sizeof **writer, &fv_format_tfm, file, layout, temporary);
    return FV_OK;
}

static fv_status encode(fv_writer *writer, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    fv_transform t;
    double       m[12];
    (void)piece;
    FV_TRY(fv__transform_find(&writer->type, writer->path, &t, error));
    fv__transform_load(block, &t, NULL, m);
    fv__bytes_printf(out, "#Insight Transform File V1.0\n#Transform 0\nTransform: AffineTransform_double_%d_%d\nParameters:", t.n,
                     t.n);
    for (int r = 0; r < t.n; r++)
        for (int c = 0; c < t.n; c++) fv__bytes_printf(out, " %.17g", m[r * 4 + c]);
    for (int r = 0; r < t.n; r++) fv__bytes_printf(out, " %.17g", m[r * 4 + 3]);
    fv__bytes_printf(out, "\nFixedParameters:");
    for (int r = 0; r < t.n; r++) fv__bytes_printf(out, " 0");
    fv__bytes_printf(out, "\n");
    return FV_OK;
}

const fv_format fv_format_tfm = {
    .name = "tfm",
    .extensions = "tfm",
    .magic = { { 0, 24, "#Insight Transform File " } },
    .brief = "transform of ITK, as text",
    .reads = "linear transforms, also several one after another",
    .writes = "what register gives, as an AffineTransform",
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
