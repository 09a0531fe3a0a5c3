/* The plug-in: Fovea's few wishes in terms of the HDF5 library. One mutex around every call: the library may have been built
 * without a lock of its own. */
#include "plugins/hdf5_driver.h"
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_VISITED = 10000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

typedef struct {
    hid_t id;
} file;

typedef struct {
    hid_t         id, memory; /* memory: type of the elements as we want them */
    fv_hdf5_about about;
} dataset;

/* The library prints its errors unless told not to, thread by thread. */
static void enter(void) {
    pthread_mutex_lock(&mutex);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}
static void leave(void) { pthread_mutex_unlock(&mutex); }

static pid_t fork_alone(void) {
    pthread_mutex_lock(&mutex);
    pid_t child = fork();
    pthread_mutex_unlock(&mutex);
    return child;
}

static herr_t take_first(unsigned n, const H5E_error2_t *error, void *message) {
    if (n == 0) snprintf(message, FV_HDF5_MESSAGE, "%s", error->desc ? error->desc : "the HDF5 library cannot read it");
    return 0;
}

/* What went wrong at the bottom of the library. */
static void explain(char *message, const char *otherwise) {
    snprintf(message, FV_HDF5_MESSAGE, "%s", otherwise);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, message);
    H5Eclear2(H5E_DEFAULT);
}

/* ---------------------------------------------------------------- files */

static void *open_with(hid_t access, const char *path, bool creating, char *message) {
    hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
    H5Pset_obj_track_times(creation, false); /* the same image gives the same bytes */
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking(access, false, true); /* whoever writes a file gives it its name when it is whole */
#endif
    hid_t id = creating ? H5Fcreate(path, H5F_ACC_TRUNC, creation, access) : H5Fopen(path, H5F_ACC_RDONLY, access);
    file *f = NULL;
    if (id < 0)
        explain(message, "the HDF5 library cannot open it");
    else {
        f = malloc(sizeof *f);
        f->id = id;
    }
    H5Pclose(creation);
    return f;
}

static void *open_local(const char *path, bool creating, char *message) {
    enter();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    void *f = open_with(access, path, creating, message);
    H5Pclose(access);
    leave();
    return f;
}

static void *open_file(const char *path, char *message) { return open_local(path, false, message); }
static void *create_file(const char *path, char *message) { return open_local(path, true, message); }

static void *open_source(const fv_hdf5_source *source, char *message) {
    enter();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    void *f = NULL;
    if (H5Pset_driver(access, fv_hdf5_driver(), source) < 0)
        explain(message, "the HDF5 library takes no driver");
    else
        f = open_with(access, source->name, false, message);
    H5Pclose(access);
    leave();
    return f;
}

static void close_file(void *f) {
    if (!f) return;
    enter();
    H5Fclose(((file *)f)->id);
    leave();
    free(f);
}

/* ---------------------------------------------------------------- types */

static bool little_or_big(hid_t type, bool *big) {
    H5T_order_t order = H5Tget_order(type);
    *big = order == H5T_ORDER_BE;
    return *big || order == H5T_ORDER_LE || order == H5T_ORDER_NONE;
}

/* IEEE's single or double precision, which is what bits say that the order of bytes does not. */
static bool is_ieee(hid_t type, size_t size) {
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
    if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0) return false;
    return size == 4 ? exponent_bits == 8 && mantissa_bits == 23 && sign == 31
                     : size == 8 && exponent_bits == 11 && mantissa_bits == 52 && sign == 63;
}

static bool full_precision(hid_t type, size_t size) { return H5Tget_precision(type) == 8 * size && H5Tget_offset(type) == 0; }

/* h5py's way to store booleans: an enumeration of FALSE and TRUE. */
static bool is_bool(hid_t type) {
    if (H5Tget_nmembers(type) != 2 || H5Tget_size(type) != 1) return false;
    char *first = H5Tget_member_name(type, 0);
    bool  found = first && (!strcmp(first, "FALSE") || !strcmp(first, "TRUE"));
    H5free_memory(first);
    return found;
}

static hid_t native_of(char kind, int size) {
    hid_t integers[2][4] = { { H5T_NATIVE_INT8, H5T_NATIVE_INT16, H5T_NATIVE_INT32, H5T_NATIVE_INT64 },
                             { H5T_NATIVE_UINT8, H5T_NATIVE_UINT16, H5T_NATIVE_UINT32, H5T_NATIVE_UINT64 } };
    int   power = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    if (kind == 'f') return H5Tcopy(size == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE);
    if (kind != 'c') return H5Tcopy(integers[kind != 'i'][power]);
    hid_t part = size == 8 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE, type = H5Tcreate(H5T_COMPOUND, (size_t)size);
    H5Tinsert(type, "r", 0, part);
    H5Tinsert(type, "i", (size_t)size / 2, part);
    return type;
}

/* h5py's way to store complex numbers: a pair of r and i. */
static bool is_complex(hid_t type, size_t size, bool *big) {
    if (H5Tget_nmembers(type) != 2 || (size != 8 && size != 16)) return false;
    char *first = H5Tget_member_name(type, 0), *second = H5Tget_member_name(type, 1);
    bool  good = first && second && !strcmp(first, "r") && !strcmp(second, "i") && H5Tget_member_offset(type, 1) == size / 2;
    H5free_memory(first);
    H5free_memory(second);
    for (unsigned i = 0; i < 2 && good; i++) {
        hid_t part = H5Tget_member_type(type, i);
        good = H5Tget_class(part) == H5T_FLOAT && is_ieee(part, size / 2) && little_or_big(part, big);
        H5Tclose(part);
    }
    return good;
}

static void describe_type(hid_t type, fv_hdf5_about *a) {
    size_t size = H5Tget_size(type);
    H5T_class_t class = H5Tget_class(type);
    bool usual = size == 1 || size == 2 || size == 4 || size == 8, ordered;
    a->kind = 0;
    a->size = (int)size;
    if (class == H5T_INTEGER && usual) {
        ordered = little_or_big(type, &a->big_endian);
        a->kind = H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i';
        a->exact = ordered && full_precision(type, size);
    } else if (class == H5T_FLOAT && (size == 2 || size == 4 || size == 8)) {
        ordered = little_or_big(type, &a->big_endian);
        a->kind = 'f';
        a->exact = ordered && is_ieee(type, size);
        if (!a->exact) a->size = size == 8 ? 8 : 4; /* the library turns them into what we know */
    } else if (class == H5T_ENUM && is_bool(type)) {
        a->kind = 'b';
        a->exact = true;
    } else if (class == H5T_COMPOUND && is_complex(type, size, &a->big_endian)) {
        a->kind = 'c';
        a->exact = true;
    }
}

static void describe_layout(hid_t id, hid_t plan, fv_hdf5_about *a) {
    hsize_t chunk[FV_HDF5_MOST_DIMS];
    int     count = H5Pget_nfilters(plan);
    a->offset = -1;
    a->chunked = H5Pget_layout(plan) == H5D_CHUNKED && H5Pget_chunk(plan, a->ndim, chunk) == a->ndim;
    for (int d = 0; d < a->ndim; d++) a->chunk[d] = a->chunked ? (int64_t)chunk[d] : a->shape[d];
    if (H5Pget_layout(plan) == H5D_CONTIGUOUS && H5Pget_external_count(plan) == 0) {
        haddr_t address = H5Dget_offset(id);
        if (address != HADDR_UNDEF) a->offset = (int64_t)address;
    }
    a->nfilters = count > FV_HDF5_MOST_FILTERS ? -1 : count;
    for (int i = 0; i < a->nfilters; i++) {
        fv_hdf5_filter *f = &a->filters[i];
        size_t          n = FV_HDF5_MOST_VALUES;
        unsigned        flags, configuration;
        f->id = (int)H5Pget_filter2(plan, (unsigned)i, &flags, &n, f->values, 0, NULL, &configuration);
        f->nvalues = n > FV_HDF5_MOST_VALUES ? FV_HDF5_MOST_VALUES : (int)n;
    }
}

/* False: no dataset with a shape. */
static bool describe(hid_t id, fv_hdf5_about *a) {
    hid_t   space = H5Dget_space(id), type = H5Dget_type(id), plan = H5Dget_create_plist(id);
    hsize_t shape[FV_HDF5_MOST_DIMS];
    memset(a, 0, sizeof *a);
    a->ndim =
        space >= 0 && H5Sget_simple_extent_ndims(space) <= FV_HDF5_MOST_DIMS ? H5Sget_simple_extent_dims(space, shape, NULL) : -1;
    bool good = a->ndim >= 0 && type >= 0 && plan >= 0;
    for (int d = 0; good && d < a->ndim; d++) a->shape[d] = shape[d] > INT64_MAX ? INT64_MAX : (int64_t)shape[d];
    if (good) {
        describe_type(type, a);
        describe_layout(id, plan, a);
    }
    if (good && a->kind) {
        hid_t memory = native_of(a->kind, a->size);
        if (a->kind != 'b') H5Pget_fill_value(plan, memory, a->fill);
        H5Tclose(memory);
    }
    H5Eclear2(H5E_DEFAULT);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (plan >= 0) H5Pclose(plan);
    return good;
}

/* ---------------------------------------------------------------- reading */

static dataset *keep(hid_t id, const fv_hdf5_about *about) {
    dataset *d = calloc(1, sizeof *d);
    d->id = id;
    d->about = *about;
    d->memory = about->kind == 'b' ? H5Dget_type(id) : about->kind ? native_of(about->kind, about->size) : -1;
    return d;
}

/* An offset means nothing in another file than ours. */
static void find_home(hid_t root, hid_t id, fv_hdf5_about *about) {
    H5O_info_t ours, its;
    bool       known = H5Oget_info2(root, &ours, H5O_INFO_BASIC) >= 0 && H5Oget_info2(id, &its, H5O_INFO_BASIC) >= 0;
    about->elsewhere = known && ours.fileno != its.fileno;
    if (about->elsewhere) about->offset = -1;
    H5Eclear2(H5E_DEFAULT);
}

static void *open_dataset(void *f, const char *name, fv_hdf5_about *about, char *message) {
    enter();
    hid_t    id = H5Dopen2(((file *)f)->id, name, H5P_DEFAULT);
    dataset *d = NULL;
    if (id < 0)
        explain(message, "it cannot be opened");
    else if (!describe(id, about)) {
        explain(message, "it has no shape");
        H5Dclose(id);
    } else {
        find_home(((file *)f)->id, id, about);
        d = keep(id, about);
    }
    leave();
    return d;
}

static void close_dataset(void *pointer) {
    dataset *d = pointer;
    if (!d) return;
    enter();
    if (d->memory >= 0) H5Tclose(d->memory);
    H5Dclose(d->id);
    leave();
    free(d);
}

/* Inside the lock. stored 0: the chunk was never written. */
static bool get_chunk(const dataset *d, const int64_t *start, void *to, size_t room, hsize_t *stored, uint32_t *mask,
                      char *message) {
    hsize_t offset[FV_HDF5_MOST_DIMS];
    for (int i = 0; i < d->about.ndim; i++) offset[i] = (hsize_t)start[i];
    *stored = 0;
    *mask = 0;
    bool good = H5Dget_chunk_storage_size(d->id, offset, stored) >= 0;
    if (good && *stored > room) {
        snprintf(message, FV_HDF5_MESSAGE, "a chunk of %llu bytes is too large", (unsigned long long)*stored);
        return false;
    }
    if (good && *stored) good = H5Dread_chunk(d->id, H5P_DEFAULT, offset, mask, to) >= 0;
    if (good) return true;
    explain(message, "a chunk cannot be read");
    *stored = 0;
    return strstr(message, "not allocated") != NULL; /* how this version says that it was never written */
}

static bool read_chunk(void *d, const int64_t *start, void *to, size_t room, size_t *size, unsigned *mask, char *message) {
    hsize_t  stored;
    uint32_t left_out;
    enter();
    bool good = get_chunk(d, start, to, room, &stored, &left_out, message);
    leave();
    *size = (size_t)stored;
    *mask = left_out;
    return good;
}

static bool find_chunk(void *d, const int64_t *start, int64_t *address, size_t *size, unsigned *mask, char *message) {
    hsize_t  stored;
    uint32_t left_out;
    char     nothing[16]; /* no byte comes */
    enter();
    fv_hdf5_driver_note(true);
    bool    good = get_chunk(d, start, nothing, SIZE_MAX, &stored, &left_out, message);
    haddr_t noted = fv_hdf5_driver_note(false);
    if (good && stored && noted == HADDR_UNDEF) {
        snprintf(message, FV_HDF5_MESSAGE, "the library does not say where a chunk lies");
        good = false;
    }
    *address = (int64_t)noted;
    leave();
    *size = (size_t)stored;
    *mask = left_out;
    return good;
}

static bool read_box(void *pointer, const int64_t *start, const int64_t *count, void *to, char *message) {
    dataset *d = pointer;
    hsize_t  from[FV_HDF5_MOST_DIMS], size[FV_HDF5_MOST_DIMS];
    for (int i = 0; i < d->about.ndim; i++) {
        from[i] = (hsize_t)start[i];
        size[i] = (hsize_t)count[i];
    }
    enter();
    hid_t space = H5Dget_space(d->id), box = H5Screate_simple(d->about.ndim, size, NULL);
    bool  single = d->about.ndim == 0; /* a number without axes has no boxes */
    bool  good = space >= 0 && box >= 0 && (single || H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, size, NULL) >= 0) &&
                H5Dread(d->id, d->memory, box, space, H5P_DEFAULT, to) >= 0;
    if (!good) explain(message, "a part of it cannot be read");
    if (space >= 0) H5Sclose(space);
    if (box >= 0) H5Sclose(box);
    leave();
    return good;
}

/* ---------------------------------------------------------------- what a file holds */

typedef struct {
    char **names;
    int    count;
} found;

static herr_t note(hid_t root, const char *name, const H5O_info_t *info, void *pointer) {
    found *f = pointer;
    (void)root;
    if (info->type != H5O_TYPE_DATASET) return 0;
    if (f->count == MOST_VISITED) return 1;
    f->names = realloc(f->names, (size_t)(f->count + 1) * sizeof *f->names);
    f->names[f->count] = malloc(strlen(name) + 2);
    sprintf(f->names[f->count++], "/%s", name);
    return 0;
}

static herr_t note_link(hid_t group, const char *name, const H5L_info_t *info, void *pointer) {
    found *f = pointer;
    (void)group, (void)info;
    if (f->count == MOST_VISITED) return 1;
    f->names = realloc(f->names, (size_t)(f->count + 1) * sizeof *f->names);
    f->names[f->count++] = strdup(name);
    return 0;
}

static void links(void *pointer, const char *group, bool (*each)(void *context, const char *name), void *context) {
    file *f = pointer;
    found all = { 0 };
    bool  going = true;
    enter();
    hid_t id = H5Gopen2(f->id, group, H5P_DEFAULT);
    if (id >= 0) {
        H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, NULL, note_link, &all);
        H5Gclose(id);
    }
    H5Eclear2(H5E_DEFAULT);
    leave();
    for (int i = 0; i < all.count; i++) {
        going = going && each(context, all.names[i]);
        free(all.names[i]);
    }
    free(all.names);
}

/* Names first and datasets after: whoever is called may call us. */
static void visit(void *pointer, bool (*each)(void *context, const char *name, const fv_hdf5_about *about), void *context) {
    file *f = pointer;
    found all = { 0 };
    bool  going = true;
    enter();
    H5Ovisit2(f->id, H5_INDEX_NAME, H5_ITER_INC, note, &all, H5O_INFO_BASIC);
    H5Eclear2(H5E_DEFAULT);
    leave();
    for (int i = 0; i < all.count; i++) {
        fv_hdf5_about about;
        enter();
        hid_t id = going ? H5Dopen2(f->id, all.names[i], H5P_DEFAULT) : -1;
        bool  good = id >= 0 && describe(id, &about);
        if (id >= 0) H5Dclose(id);
        H5Eclear2(H5E_DEFAULT);
        leave();
        if (good) going = each(context, all.names[i], &about);
        free(all.names[i]);
    }
    free(all.names);
}

/* ---------------------------------------------------------------- attributes */

static hid_t open_attribute(file *f, const char *object, const char *name) {
    if (H5Aexists_by_name(f->id, object, name, H5P_DEFAULT) <= 0) return -1;
    return H5Aopen_by_name(f->id, object, name, H5P_DEFAULT, H5P_DEFAULT);
}

static int64_t elements_of(hid_t attribute) {
    hid_t   space = H5Aget_space(attribute);
    int64_t n = space >= 0 ? (int64_t)H5Sget_simple_extent_npoints(space) : 0;
    if (space >= 0) H5Sclose(space);
    return n;
}

/* Text number index of a list of texts of one length. */
static bool fixed_text(hid_t attribute, hid_t type, int64_t count, int index, char *text, size_t room) {
    size_t size = H5Tget_size(type);
    if (!size || size > 1 << 20 || count > 1 << 16) return false;
    char *all = calloc((size_t)count, size + 1);
    bool  good = all && H5Aread(attribute, type, all) >= 0;
    if (good) snprintf(text, room, "%.*s", (int)size, all + size * (size_t)index);
    free(all);
    return good;
}

static bool long_text(hid_t attribute, hid_t type, int64_t count, int index, char *text, size_t room) {
    if (count > 1 << 16) return false;
    char **all = calloc((size_t)count, sizeof *all);
    hid_t  space = H5Aget_space(attribute);
    bool   good = all && H5Aread(attribute, type, all) >= 0;
    if (good) {
        snprintf(text, room, "%s", all[index] ? all[index] : "");
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, all);
    }
    H5Sclose(space);
    free(all);
    return good;
}

static bool get_text(void *f, const char *object, const char *name, int index, char *text, size_t room) {
    enter();
    hid_t   attribute = open_attribute(f, object, name), type = attribute >= 0 ? H5Aget_type(attribute) : -1;
    int64_t count = attribute >= 0 ? elements_of(attribute) : 0;
    bool    good = type >= 0 && H5Tget_class(type) == H5T_STRING && index < count;
    if (good) good = (H5Tis_variable_str(type) > 0 ? long_text : fixed_text)(attribute, type, count, index, text, room);
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    H5Eclear2(H5E_DEFAULT);
    leave();
    for (char *c = text; good && *c; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
    return good;
}

static int get_numbers(void *f, const char *object, const char *name, double *values, int most) {
    enter();
    hid_t   attribute = open_attribute(f, object, name), type = attribute >= 0 ? H5Aget_type(attribute) : -1;
    int64_t count = attribute >= 0 ? elements_of(attribute) : 0;
    bool    good = type >= 0 && (H5Tget_class(type) == H5T_FLOAT || H5Tget_class(type) == H5T_INTEGER) && count <= most;
    if (good) good = H5Aread(attribute, H5T_NATIVE_DOUBLE, values) >= 0;
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    H5Eclear2(H5E_DEFAULT);
    leave();
    return good ? (int)count : 0;
}

static bool get_scale(void *f, const char *object, int axis, char *name, size_t room) {
    enter();
    hid_t   attribute = open_attribute(f, object, "DIMENSION_LIST"), type = attribute >= 0 ? H5Aget_type(attribute) : -1;
    int64_t count = attribute >= 0 ? elements_of(attribute) : 0;
    bool    good = type >= 0 && H5Tget_class(type) == H5T_VLEN && axis < count && count <= FV_HDF5_MOST_DIMS;
    hvl_t   lists[FV_HDF5_MOST_DIMS];
    if (good && H5Aread(attribute, type, lists) >= 0) {
        hid_t space = H5Aget_space(attribute);
        hid_t scale = lists[axis].len ? H5Rdereference2(attribute, H5P_DEFAULT, H5R_OBJECT, lists[axis].p) : -1;
        good = scale >= 0 && H5Iget_name(scale, name, room) > 0;
        if (scale >= 0) H5Oclose(scale);
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, lists);
        H5Sclose(space);
    } else
        good = false;
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    H5Eclear2(H5E_DEFAULT);
    leave();
    return good;
}

/* ---------------------------------------------------------------- writing */

static hid_t stored_type(const fv_hdf5_about *a) {
    if (a->kind != 'b') return native_of(a->kind, a->size);
    hid_t       type = H5Tenum_create(H5T_NATIVE_INT8);
    signed char no = 0, yes = 1;
    H5Tenum_insert(type, "FALSE", &no);
    H5Tenum_insert(type, "TRUE", &yes);
    return type;
}

static hid_t make_plan(const fv_hdf5_about *a) {
    hsize_t chunk[FV_HDF5_MOST_DIMS];
    hid_t   plan = H5Pcreate(H5P_DATASET_CREATE);
    for (int d = 0; d < a->ndim; d++) chunk[d] = (hsize_t)a->chunk[d];
    H5Pset_chunk(plan, a->ndim, chunk);
    H5Pset_obj_track_times(plan, false);
    H5Pset_fill_time(plan, H5D_FILL_TIME_NEVER);
    for (int i = 0; i < a->nfilters; i++) {
        if (a->filters[i].id == FV_HDF5_SHUFFLE) H5Pset_shuffle(plan);
        if (a->filters[i].id == FV_HDF5_DEFLATE) H5Pset_deflate(plan, a->filters[i].values[0]);
    }
    return plan;
}

static void *create_dataset(void *f, const char *name, const fv_hdf5_about *a, char *message) {
    hsize_t shape[FV_HDF5_MOST_DIMS];
    for (int d = 0; d < a->ndim; d++) shape[d] = (hsize_t)a->shape[d];
    enter();
    hid_t plan = make_plan(a), type = stored_type(a), space = H5Screate_simple(a->ndim, shape, NULL);
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    hid_t    id = H5Dcreate2(((file *)f)->id, name, type, space, links, plan, H5P_DEFAULT);
    dataset *d = NULL;
    if (id < 0)
        explain(message, "the HDF5 library cannot make the dataset");
    else
        d = keep(id, a);
    H5Pclose(plan);
    H5Tclose(type);
    H5Sclose(space);
    H5Pclose(links);
    leave();
    return d;
}

static bool write_chunk(void *pointer, const int64_t *start, const void *data, size_t size, char *message) {
    dataset *d = pointer;
    hsize_t  offset[FV_HDF5_MOST_DIMS];
    for (int i = 0; i < d->about.ndim; i++) offset[i] = (hsize_t)start[i];
    enter();
    bool good = H5Dwrite_chunk(d->id, H5P_DEFAULT, 0, offset, size, data) >= 0;
    if (!good) explain(message, "a chunk cannot be written");
    leave();
    return good;
}

static bool set_attribute(hid_t object, const char *name, hid_t type, int count, const void *values, char *message) {
    hsize_t n = (hsize_t)count;
    hid_t   space = H5Screate_simple(1, &n, NULL);
    hid_t   attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool    good = attribute >= 0 && H5Awrite(attribute, type, values) >= 0;
    if (!good) explain(message, "an attribute cannot be written");
    if (attribute >= 0) H5Aclose(attribute);
    H5Sclose(space);
    return good;
}

static bool set_texts(void *d, const char *name, const char *const *texts, int count, char *message) {
    enter();
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    bool good = set_attribute(((dataset *)d)->id, name, type, count, texts, message);
    H5Tclose(type);
    leave();
    return good;
}

static bool set_numbers(void *d, const char *name, const double *values, int count, char *message) {
    enter();
    bool good = set_attribute(((dataset *)d)->id, name, H5T_NATIVE_DOUBLE, count, values, message);
    leave();
    return good;
}

static bool flush(void *f, char *message) {
    enter();
    bool good = H5Fflush(((file *)f)->id, H5F_SCOPE_GLOBAL) >= 0;
    if (!good) explain(message, "it cannot be written");
    leave();
    return good;
}

/* ---------------------------------------------------------------- small datasets */

static bool read_text(void *f, const char *name, char *text, size_t room) {
    enter();
    hid_t  id = H5Dopen2(((file *)f)->id, name, H5P_DEFAULT), type = id >= 0 ? H5Dget_type(id) : -1;
    hid_t  space = id >= 0 ? H5Dget_space(id) : -1;
    bool   good = type >= 0 && space >= 0 && H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1;
    size_t size = good ? H5Tget_size(type) : 0;
    if (good && H5Tis_variable_str(type) > 0) {
        char *read = NULL;
        good = H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &read) >= 0 && read;
        if (good) snprintf(text, room, "%s", read);
        if (read) H5free_memory(read);
    } else if (good) {
        char *read = size && size < 1 << 20 ? calloc(1, size + 1) : NULL;
        good = read && H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, read) >= 0;
        if (good) snprintf(text, room, "%s", read);
        free(read);
    }
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (id >= 0) H5Dclose(id);
    H5Eclear2(H5E_DEFAULT);
    leave();
    return good;
}

/* count 0: one value without axes */
static bool write_small(void *f, const char *name, hid_t type, int64_t count, const void *values, char *message) {
    hsize_t n = (hsize_t)count;
    hid_t   space = n ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
    hid_t   links = H5Pcreate(H5P_LINK_CREATE), plan = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    H5Pset_obj_track_times(plan, false);
    hid_t id = H5Dcreate2(((file *)f)->id, name, type, space, links, plan, H5P_DEFAULT);
    bool  good = id >= 0 && H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    if (!good) explain(message, "the HDF5 library cannot make the dataset");
    if (id >= 0) H5Dclose(id);
    H5Pclose(plan);
    H5Pclose(links);
    H5Sclose(space);
    return good;
}

static bool write_text(void *f, const char *name, const char *text, char *message) {
    enter();
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    bool good = write_small(f, name, type, 1, &text, message);
    H5Tclose(type);
    leave();
    return good;
}

static bool write_numbers(void *f, const char *name, const double *values, int64_t count, char *message) {
    enter();
    bool good = write_small(f, name, H5T_NATIVE_DOUBLE, count, values, message);
    leave();
    return good;
}

static bool write_number(void *f, const char *name, double value, bool whole, char *message) {
    int64_t integer = (int64_t)value;
    enter();
    bool good = whole ? write_small(f, name, H5T_NATIVE_INT64, 0, &integer, message)
                      : write_small(f, name, H5T_NATIVE_DOUBLE, 0, &value, message);
    leave();
    return good;
}

static bool make_link(void *f, const char *target, const char *name, char *message) {
    enter();
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    bool good = H5Lcreate_soft(target, ((file *)f)->id, name, links, H5P_DEFAULT) >= 0;
    if (!good) explain(message, "the HDF5 library cannot make a link");
    H5Pclose(links);
    leave();
    return good;
}

const fv_hdf5_plugin *fv_hdf5_plugin_get(void);
const fv_hdf5_plugin *fv_hdf5_plugin_get(void) {
    H5dont_atexit(); /* what was written is flushed; tidying up after a file that met a full disk would crash */
    static const fv_hdf5_plugin plugin = {
        .version = FV_HDF5_VERSION,
        .fork = fork_alone,
        .open = open_file,
        .open_source = open_source,
        .close = close_file,
        .open_dataset = open_dataset,
        .close_dataset = close_dataset,
        .read_chunk = read_chunk,
        .find_chunk = find_chunk,
        .read_box = read_box,
        .visit = visit,
        .links = links,
        .get_text = get_text,
        .get_numbers = get_numbers,
        .get_scale = get_scale,
        .create = create_file,
        .create_dataset = create_dataset,
        .write_chunk = write_chunk,
        .set_texts = set_texts,
        .set_numbers = set_numbers,
        .flush = flush,
        .read_text = read_text,
        .write_text = write_text,
        .write_numbers = write_numbers,
        .write_number = write_number,
        .link = make_link,
    };
    return &plugin;
}
