/* read_stack: files that are slices of one image. What read is with stack.
 *
 * The list of files is made when the graph is built and kept for the process: tasks ask for it by its pattern. A list that has
 * changed gets a new entry, and the old one stays for those who still use it. */
#include "op/axes.h"
#include "op/format.h"
#include "op/op.h"
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *file;
    const char *stack;
    const char *path;
} read_stack;

static const fv_param params[] = {
    FV_PARAM(read_stack, file, .doc = "pattern that the slices match, such as \"slices/*.tif\""),
    FV_PARAM(read_stack, stack, .def = "z", .doc = "name of the axis along which they lie"),
    FV_PARAM(read_stack, path, .def = "", .doc = "dataset inside the files, for formats that hold several"),
    FV_PARAM_END,
};

/* ---------------------------------------------------------------- lists of files */

typedef struct list {
    struct list *next;
    char        *pattern;
    char       **paths;
    int64_t      count;
} list;

static list           *lists; /* newest first */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* slice2 comes before slice10. */
static int by_number(const void *a, const void *b) { return strverscmp(*(char *const *)a, *(char *const *)b); }

static const list *find(const char *pattern) {
    pthread_mutex_lock(&mutex);
    list *found = lists;
    while (found && strcmp(found->pattern, pattern)) found = found->next;
    pthread_mutex_unlock(&mutex);
    return found;
}

static bool same_paths(const list *l, const glob_t *found) {
    bool same = l && l->count == (int64_t)found->gl_pathc;
    for (int64_t i = 0; same && i < l->count; i++) same = !strcmp(l->paths[i], found->gl_pathv[i]);
    return same;
}

static fv_status look(const char *pattern, const list **out, fv_error *error) {
    glob_t found = { 0 };
    int    result = glob(pattern, GLOB_NOSORT | GLOB_BRACE | GLOB_TILDE, NULL, &found);
    *out = find(pattern);
    if (result || !found.gl_pathc) {
        globfree(&found);
        return fv_fail(error, FV_ERROR_INPUT, "no file matches \"%s\"", pattern);
    }
    qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_number);
    if (!same_paths(*out, &found)) {
        list *l = fv_alloc(sizeof *l);
        *l = (list){ .pattern = fv_strdup(pattern), .count = (int64_t)found.gl_pathc };
        l->paths = fv_alloc((size_t)l->count * sizeof *l->paths);
        for (int64_t i = 0; i < l->count; i++) l->paths[i] = fv_strdup(found.gl_pathv[i]);
        pthread_mutex_lock(&mutex);
        l->next = lists;
        lists = l;
        pthread_mutex_unlock(&mutex);
        *out = l;
    }
    globfree(&found);
    return FV_OK;
}

/* ---------------------------------------------------------------- the image */

static fv_status acquire(const read_stack *p, const char *file, fv_reader **reader, fv_error *error) {
    return fv_reader_acquire(file, &(fv_read_options){ .path_inside = p->path && *p->path ? p->path : NULL }, reader, error);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const read_stack *p = i->params;
    const list       *l;
    fv_reader        *reader;
    fv_image_type    *type = &i->out->image;
    FV_TRY(look(p->file, &l, error));
    FV_TRY(acquire(p, l->paths[0], &reader, error));
    fv_image_type slice = reader->type;
    fv_reader_release(reader);
    if (!*p->stack || strlen(p->stack) >= sizeof slice.axis[0])
        return fv_fail(error, FV_ERROR_USAGE, "stack = \"%s\": a name of 1 to 7 letters belongs here, such as z or t", p->stack);
    if (fv_axis_find(&slice, p->stack) >= 0)
        return fv_fail(error, FV_ERROR_USAGE, "stack = \"%s\": the slices have such an axis already; give another name",
                       p->stack);
    if (slice.ndim == FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "the slices have %d axes; there is no room for another one", slice.ndim);
    int64_t shape[FV_MAX_DIMS] = { l->count };
    memcpy(shape + 1, slice.shape, (size_t)slice.ndim * sizeof *shape);
    i->out->kind = FV_KIND_IMAGE;
    fv_image_type_init(type, slice.dtype, slice.ndim + 1, shape);
    snprintf(type->axis[0], sizeof type->axis[0], "%s", p->stack);
    for (int d = 0; d < slice.ndim; d++) {
        memcpy(type->axis[d + 1], slice.axis[d], sizeof slice.axis[d]);
        memcpy(type->unit[d + 1], slice.unit[d], sizeof slice.unit[d]);
        type->spacing[d + 1] = slice.spacing[d];
        type->origin[d + 1] = slice.origin[d];
    }
    return FV_OK;
}

static fv_status identity(const void *params_, fv_hasher *hasher, fv_error *error) {
    const read_stack *p = params_;
    const list       *l;
    FV_TRY(look(p->file, &l, error));
    for (int64_t i = 0; i < l->count; i++) {
        fv_file_id id;
        FV_TRY(fv_file_identify(l->paths[i], &id, error));
        fv_hasher_text(hasher, l->paths[i]);
        fv_hasher_int(hasher, id.size);
        fv_hasher_int(hasher, id.mtime_ns);
    }
    return FV_OK;
}

/* Slices that can only be read in order are read whole. */
static fv_status layout(const void *params_, fv_layout *out, fv_error *error) {
    const read_stack *p = params_;
    const list       *l;
    fv_reader        *reader;
    FV_TRY(look(p->file, &l, error));
    FV_TRY(acquire(p, l->paths[0], &reader, error));
    out->chunk[0] = 1;
    for (int d = 0; d < reader->type.ndim; d++) out->chunk[d + 1] = reader->sequential ? reader->type.shape[d] : reader->chunk[d];
    out->read_memory = reader->read_memory;
    fv_reader_release(reader);
    return FV_OK;
}

static fv_status check(const fv_reader *reader, const fv_image_type *type, const char *first, fv_error *error) {
    bool same = reader->type.ndim == type->ndim - 1 && reader->type.dtype == type->dtype;
    for (int d = 0; same && d < reader->type.ndim; d++) same = reader->type.shape[d] == type->shape[d + 1];
    if (same) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s has another shape or type than %s, so they are no slices of one image",
                   reader->path, first);
}

static fv_status read_slice(const fv_run *r, const list *l, int64_t index, fv_error *error) {
    const fv_block *out = r->out;
    int             ndim = out->region.ndim - 1;
    fv_reader      *reader;
    FV_TRY(acquire(r->need.params, l->paths[index], &reader, error));
    fv_block slice = { .dtype = out->dtype, .region.ndim = ndim };
    memcpy(slice.region.start, out->region.start + 1, (size_t)ndim * sizeof *slice.region.start);
    memcpy(slice.region.size, out->region.size + 1, (size_t)ndim * sizeof *slice.region.size);
    memcpy(slice.stride, out->stride + 1, (size_t)ndim * sizeof *slice.stride);
    slice.data = (char *)out->data + (index - out->region.start[0]) * out->stride[0] * (int64_t)fv_dtype_size(out->dtype);
    fv_status status = check(reader, &r->need.out->image, l->paths[0], error);
    if (status == FV_OK) status = reader->format->read(reader, &slice, error);
    fv_reader_release(reader);
    return status;
}

static fv_status run(fv_run *r, fv_error *error) {
    const read_stack *p = r->need.params;
    const list       *l = find(p->file);
    if (!l || l->count != r->need.out->image.shape[0])
        return fv_fail(error, FV_ERROR_INPUT, "the files that match \"%s\" have changed while they were read", p->file);
    for (int64_t i = 0; i < r->out->region.size[0]; i++) FV_TRY(read_slice(r, l, r->out->region.start[0] + i, error));
    return FV_OK;
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(read_stack) = {
    .name = "read_stack",
    .family = "file",
    .brief = "read files that are slices of one image",
    .version = 1,
    .params = params,
    .params_size = sizeof(read_stack),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .identity = identity,
    .layout = layout,
    .doc = "read(\"slices/*.tif\", stack = \"z\") is the same. All files must have the same shape and type. They are in order of "
           "name, "
           "numbers by their value: slice2 comes before slice10. Only the slices that are needed are read.",
    .example = "phantom(\"cells\", [64, 64]) |> write(\"slice1.tif\")",
};
