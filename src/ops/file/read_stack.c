/* read_stack: files that are slices of one image. What read is with stack.
 *
 * The list of files is made when the graph is built and kept for the process: tasks ask for it by its pattern. A list that has
 * changed gets a new entry, and the old one stays for those who still use it. */
#include "base/file_pattern.h"
#include "base/session.h"
#include "base/take.h"
#include "op/axes.h"
#include "op/place.h"
#include "op/read_options.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char     *file;
    const char     *stack;
    const char     *path;
    const char     *axes;
    fv_numbers      shape;
    fv_dtype_choice dtype;
    int64_t         offset;
    bool            match;
} read_stack;

static const fv_param params[] = {
    FV_PARAM(read_stack, file, .file = true, .doc = "pattern that the slices match, such as \"slices/*.tif\""),
    FV_PARAM(read_stack, stack, .def = "z", .joins = true, .doc = "name of the axis along which they lie"),
    FV_PARAM(read_stack, path, .def = "", .doc = "dataset inside the files, for formats that hold several"),
    FV_PARAM(read_stack, axes, .def = "", .doc = "names of all axes of the whole, slowest first, where the files say others"),
    FV_PARAM(read_stack, shape, .def = "", .min = 1, .max = 1e15, .unit = "px",
             .doc = "size of each axis of a slice, of files without a header (.raw)"),
    FV_PARAM(read_stack, dtype, .def = "", .doc = "element type of files without a header, as \"uint16\""),
    FV_PARAM(read_stack, offset, .def = "0", .min = 0, .max = 1e15,
             .doc = "bytes before the first voxel of files without a header"),
    FV_PARAM(read_stack, match, .def = "true",
             .doc = "all files must lie in the same place (spacing, units, orientation); false: what they do not share is left "
                    "out"),
    FV_PARAM_END,
};

/* ---------------------------------------------------------------- lists of files */

typedef struct list {
    struct list *next;
    char        *pattern;
    char       **paths;
    int64_t      count;
} list;

typedef struct {           /* of a session: an image's slices are those of the moment when its pipeline looked */
    list           *first; /* the newest */
    pthread_mutex_t mutex;
} lists;

static void begin_lists(void *part) { pthread_mutex_init(&((lists *)part)->mutex, NULL); }

static void free_list(list *l) {
    for (int64_t i = 0; i < l->count; i++) free(l->paths[i]);
    free(l->paths);
    free(l->pattern);
    free(l);
}

static void end_lists(void *part) {
    lists *all = part;
    for (list *l = all->first, *next; l; l = next) {
        next = l->next;
        free_list(l);
    }
    pthread_mutex_destroy(&all->mutex);
}

static lists *lists_here(void) {
    static const fv_session_type type = { sizeof(lists), begin_lists, end_lists };
    return fv__session_part(FV_PART_FILE_LISTS, &type);
}

static const list *find(const char *pattern) {
    lists *all = lists_here();
    pthread_mutex_lock(&all->mutex);
    list *found = all->first;
    while (found && strcmp(found->pattern, pattern)) found = found->next;
    pthread_mutex_unlock(&all->mutex);
    return found;
}

static bool same_paths(const list *l, const fv_matches *found) {
    bool same = l && l->count == found->count;
    for (int64_t i = 0; same && i < l->count; i++) same = !strcmp(l->paths[i], found->match[i].path);
    return same;
}

static fv_status add_list(const char *pattern, const fv_matches *found, const list **out, fv_error *error) {
    list *l = fv__alloc(sizeof *l);
    *l = (list){ .pattern = fv__strdup(pattern) };
    fv_status status = FV_TAKE(l->paths, (size_t)found->count * sizeof *l->paths, error);
    for (; l->count < found->count && status == FV_OK; status = fv__memory_check(error)) {
        l->paths[l->count] = fv__strdup(found->match[l->count].path);
        l->count++;
    }
    if (status != FV_OK) {
        free_list(l);
        return status;
    }
    lists *all = lists_here();
    pthread_mutex_lock(&all->mutex);
    l->next = all->first;
    all->first = l;
    pthread_mutex_unlock(&all->mutex);
    *out = l;
    return FV_OK;
}

static fv_status look(const char *pattern, const list **out, fv_error *error) {
    fv_matches found;
    fv_status  status = fv__pattern_find(pattern, fv__format_is_folder, &found, error);
    *out = find(pattern);
    if (status == FV_OK && found.count && !same_paths(*out, &found)) status = add_list(pattern, &found, out, error);
    bool none = !found.count;
    fv__matches_release(&found);
    if (status != FV_OK) return status;
    return none ? fv_fail(error, FV_ERROR_INPUT, "no file matches \"%s\"", pattern) : FV_OK;
}

/* ---------------------------------------------------------------- the image */

static fv_status acquire(const read_stack *p, const char *file, fv_reader **reader, fv_error *error) {
    fv_read_options options;
    FV_TRY(fv__read_options_make(p->path, &p->shape, p->dtype.dtype, p->offset, &options, error));
    return fv__reader_acquire(file, &options, reader, error);
}

static fv_status type_of(const read_stack *p, const char *file, fv_image_type *type, fv_error *error) {
    fv_reader *reader;
    FV_TRY(acquire(p, file, &reader, error));
    *type = reader->type;
    fv__reader_release(reader);
    return FV_OK;
}

/* ---------------------------------------------------------------- where it lies */

static fv_status check(const char *file, const fv_image_type *slice, const char *first, const fv_image_type *type,
                       fv_error *error) {
    bool same = slice->ndim == type->ndim && slice->dtype == type->dtype;
    for (int d = 0; same && d < slice->ndim; d++) same = slice->shape[d] == type->shape[d];
    if (same) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s has another shape or type than %s, so they are no slices of one image", file,
                   first);
}

/* What the matrices of two slices say of the way from one to the other. */
typedef struct {
    double way[3];
} step;

static step step_between(const fv_image_type *from, const fv_image_type *to) {
    step s;
    for (int row = 0; row < 3; row++) s.way[row] = to->affine[4 * row + 3] - from->affine[4 * row + 3];
    return s;
}

static double length_of(const step *s) { return sqrt(s->way[0] * s->way[0] + s->way[1] * s->way[1] + s->way[2] * s->way[2]); }

/* Slices along an axis of space lie one behind the other: each is moved back to the first by its number of steps. */
static void move_back(fv_image_type *slice, const step *s, int64_t index) {
    for (int row = 0; row < 3; row++) slice->affine[4 * row + 3] -= (double)index * s->way[row];
}

/* The first file that lies elsewhere than the first of all; the list's end: there is none. */
static fv_status find_other(const read_stack *p, const list *l, const fv_image_type *first, const step *s, int64_t *at,
                            fv_error *error) {
    for (*at = 1; *at < l->count; ++*at) {
        fv_image_type type;
        FV_TRY(type_of(p, l->paths[*at], &type, error));
        FV_TRY(check(l->paths[*at], &type, l->paths[0], first, error));
        move_back(&type, s, *at);
        if (!fv__place_same(first, &type)) return FV_OK;
    }
    return FV_OK;
}

static fv_status say_difference(const read_stack *p, const list *l, int64_t other, const fv_image_type *first, fv_error *error) {
    fv_image_type type;
    fv_bytes      here = { 0 }, there = { 0 };
    FV_TRY(type_of(p, l->paths[other], &type, error));
    fv__place_say(first, &here);
    fv__place_say(&type, &there);
    fv_fail(error, FV_ERROR_INPUT,
            "%s does not lie where %s does: %s, not %s. Bring them to one place first, or say match = false to stack them "
            "without a place",
            l->paths[other], l->paths[0], (char *)there.data, (char *)here.data);
    fv__bytes_release(&here);
    fv__bytes_release(&there);
    return FV_ERROR_INPUT;
}

/* Slices along an axis of space that go on in equal steps tell the spacing of that axis. */
static fv_status find_step(const read_stack *p, const list *l, const fv_image_type *first, step *s, fv_error *error) {
    *s = (step){ 0 };
    bool space = strlen(p->stack) == 1 && strchr("xyz", *p->stack);
    if (!space || !first->has_affine || l->count < 2) return FV_OK;
    fv_image_type second;
    FV_TRY(type_of(p, l->paths[1], &second, error));
    if (second.has_affine) *s = step_between(first, &second);
    return FV_OK;
}

static void set_step(const step *s, const char *axis, fv_image_type *type) {
    int    column = *axis - 'x';
    double length = length_of(s);
    if (!(length > 0)) return;
    for (int row = 0; row < 3; row++) type->affine[4 * row + column] = s->way[row];
    type->spacing[0] = length;
}

/* The place of the whole: that of the slices, which must agree on it. Where the first says nothing, nobody is asked. */
static fv_status place(const read_stack *p, const list *l, const fv_image_type *slice, fv_image_type *type, fv_error *error) {
    int64_t other;
    step    s;
    if (!fv__place_known(slice)) return FV_OK;
    FV_TRY(find_step(p, l, slice, &s, error));
    FV_TRY(find_other(p, l, slice, &s, &other, error));
    if (other < l->count) return p->match ? say_difference(p, l, other, slice, error) : FV_OK;
    fv__place_take_behind(type, slice);
    if (slice->has_affine) set_step(&s, p->stack, type);
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const read_stack *p = i->params;
    const list       *l;
    fv_image_type     slice, *type = &i->out->image;
    FV_TRY(look(p->file, &l, error));
    FV_TRY(type_of(p, l->paths[0], &slice, error));
    if (!*p->stack || strlen(p->stack) >= sizeof slice.axis[0])
        return fv_fail(error, FV_ERROR_USAGE, "stack = \"%s\": a name of 1 to 7 letters belongs here, such as z or t", p->stack);
    if (fv__axis_find(&slice, p->stack) >= 0)
        return fv_fail(error, FV_ERROR_USAGE, "stack = \"%s\": the slices have such an axis already; give another name",
                       p->stack);
    if (slice.ndim == FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "the slices have %d axes; there is no room for another one", slice.ndim);
    int64_t shape[FV_MAX_DIMS] = { l->count };
    memcpy(shape + 1, slice.shape, (size_t)slice.ndim * sizeof *shape);
    i->out->kind = FV_KIND_IMAGE;
    fv_image_type_init(type, slice.dtype, slice.ndim + 1, shape);
    snprintf(type->axis[0], sizeof type->axis[0], "%s", p->stack);
    for (int d = 0; d < slice.ndim; d++) memcpy(type->axis[d + 1], slice.axis[d], sizeof slice.axis[d]);
    FV_TRY(place(p, l, &slice, type, error));
    return p->axes && *p->axes ? fv__axes_name(type, p->axes, error) : FV_OK;
}

static fv_status identity(const void *params_, fv_hasher *hasher, fv_error *error) {
    const read_stack *p = params_;
    const list       *l;
    FV_TRY(look(p->file, &l, error));
    for (int64_t i = 0; i < l->count; i++) {
        fv_file_id id;
        FV_TRY(fv__file_identify(l->paths[i], &id, error));
        fv__hasher_text(hasher, l->paths[i]);
        fv__hasher_int(hasher, id.size);
        fv__hasher_int(hasher, id.mtime_ns);
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
    out->whole_pieces = reader->sequential || reader->whole_pieces;
    out->read_memory = reader->read_memory;
    fv__reader_release(reader);
    return FV_OK;
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
    fv_image_type expected = r->need.out->image;
    fv__axis_drop(&expected, 0);
    fv_status status = check(reader->path, &reader->type, l->paths[0], &expected, error);
    if (status == FV_OK) status = fv__reader_read(reader, &slice, error);
    fv__reader_release(reader);
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
    .also = "imread_collection",
    .version = 2,
    .params = params,
    .params_size = sizeof(read_stack),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .identity = identity,
    .layout = layout,
    .doc = "read(\"slices/*.tif\", stack = \"z\") does the same. All files must have the same shape and type and lie in the "
           "same place; the stack keeps their spacing, units and orientation. Slices along z, y or x may also lie behind one "
           "another in equal steps. Files are sorted by name, with numbers by their value: slice2 comes before slice10. Only "
           "the slices that are needed are read.",
    .example = "phantom(\"cells\", [200, 200]) |> write(\"slice1.tif\")",
    .see = "read write",
};
