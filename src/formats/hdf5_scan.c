/* Scans in HDF5 files: projections, flat fields, dark fields and angles.
 *
 * DataExchange keeps them in datasets of their own below /exchange. NXtomo (https://manual.nexusformat.org, definition NXtomo)
 * keeps all frames in one dataset, in the order in which they were taken, and image_key says of each what it is: 0 a projection,
 * 1 a flat field, 2 a dark field, 3 invalid. Beamlines put the group that holds both under various names, as themselves or as
 * links, so it is looked for by what is in it. */
#include "base/take.h"
#include "formats/hdf5_parts.h"
#include "op/kernels.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { NAME = 300, MOST_ANGLES = 1000000, DEEPEST = 5, MOST_GROUPS = 500 };

static const char *const words[] = { "projections", "flats", "darks" };
static const char *const called[] = { "projections", "flat fields", "dark fields" };

static bool is_dataset(const fv_hdf5_plugin *h5, void *file, const char *name, int ndim) {
    fv_hdf5_about about;
    char          message[FV_HDF5_MESSAGE];
    void         *dataset = h5->open_dataset(file, name, &about, message);
    bool          good = dataset && about.kind && (!ndim || about.ndim == ndim);
    h5->close_dataset(dataset);
    return good;
}

/* ---------------------------------------------------------------- finding NXtomo */

/* Groups that are still to be looked into, nearest first. */
typedef struct {
    char *name[MOST_GROUPS];
    int   count, depth[MOST_GROUPS];
} queue;

typedef struct {
    queue      *groups;
    const char *group;
    int         depth;
    bool        data, key;
} look;

static bool take_link(void *context, const char *name) {
    look *l = context;
    l->data = l->data || !strcmp(name, "data");
    l->key = l->key || !strcmp(name, "image_key");
    if (l->depth < DEEPEST && l->groups->count < MOST_GROUPS) {
        l->groups->depth[l->groups->count] = l->depth + 1;
        l->groups->name[l->groups->count++] = fv__sprintf("%s/%s", strcmp(l->group, "/") ? l->group : "", name);
    }
    return true;
}

static bool is_tomo(const fv_hdf5_plugin *h5, void *file, const look *l) {
    char *data = fv__sprintf("%s/data", l->group), *key = fv__sprintf("%s/image_key", l->group);
    bool  good = l->data && l->key && is_dataset(h5, file, data, 3) && is_dataset(h5, file, key, 1);
    free(data);
    free(key);
    return good;
}

/* The group nearest to the root that holds frames and their keys; the caller frees it, NULL: there is none. */
static char *find_tomo(const fv_hdf5_plugin *h5, void *file) {
    queue *groups = fv__calloc(sizeof *groups);
    char  *found = NULL;
    groups->name[groups->count++] = fv__strdup("/");
    for (int i = 0; i < groups->count && !found; i++) {
        look l = { .groups = groups, .group = groups->name[i], .depth = groups->depth[i] };
        h5->links(file, l.group, take_link, &l);
        if (is_tomo(h5, file, &l)) found = fv__strdup(l.group);
    }
    for (int i = 0; i < groups->count; i++) free(groups->name[i]);
    free(groups);
    return found;
}

/* ---------------------------------------------------------------- parts */

static const char *exchange_name(const fv_hdf5_plugin *h5, void *file, int kind) {
    static const char *const names[][3] = { { "/exchange/data", NULL, NULL },
                                            { "/exchange/data_white", "/exchange/flat", "/exchange/white" },
                                            { "/exchange/data_dark", "/exchange/dark", NULL } };
    for (int i = 0; i < 3 && names[kind][i]; i++)
        if (is_dataset(h5, file, names[kind][i], 0)) return names[kind][i];
    return NULL;
}

static int kind_of(const char *inside) {
    for (int k = 0; k < FV_COUNT(words); k++)
        if (!strcmp(inside, words[k])) return k;
    return -1;
}

static fv_status find_exchange(const fv_hdf5_plugin *h5, void *file, const char *path, int kind, fv_hdf5_part *part,
                               fv_error *error) {
    const char *name = exchange_name(h5, file, kind);
    if (!name)
        return fv_fail(error, FV_ERROR_INPUT, "%s holds no %s: DataExchange keeps them in /exchange/%s", path, called[kind],
                       kind == FV_HDF5_FLATS ? "data_white" : "data_dark");
    part->name = fv__strdup(name);
    return FV_OK;
}

fv_status fv__hdf5_find_part(const fv_hdf5_plugin *h5, void *file, const char *path, const char *inside, fv_hdf5_part *part,
                             fv_error *error) {
    bool given = inside && *inside;
    int  kind = given ? kind_of(inside) : FV_HDF5_PROJECTIONS;
    if (kind < 0 || (given && is_dataset(h5, file, inside, 0))) return FV_OK;
    if (is_dataset(h5, file, "/exchange/data", 0)) return find_exchange(h5, file, path, kind, part, error);
    char *group = find_tomo(h5, file);
    if (!group && given)
        return fv_fail(error, FV_ERROR_INPUT,
                       "%s: path = \"%s\" is for scans, and this is none: there is no /exchange/data (DataExchange) and no "
                       "image_key beside data (NXtomo). `fovea info` lists what it holds",
                       path, inside);
    if (!group) return FV_OK;
    part->kind = kind;
    part->name = fv__sprintf("%s/data", group);
    part->key = fv__sprintf("%s/image_key", group);
    free(group);
    return FV_OK;
}

/* ---------------------------------------------------------------- numbers */

double *fv__hdf5_numbers(const fv_hdf5_plugin *h5, void *file, const char *name, int64_t most, fv_hdf5_about *about) {
    fv_dtype dtype;
    char     message[FV_HDF5_MESSAGE];
    int64_t  first[FV_HDF5_MOST_DIMS] = { 0 }, n = 1;
    void    *dataset = h5->open_dataset(file, name, about, message);
    if (!dataset) return NULL;
    bool good = about->kind && about->kind != 'c' && fv__hdf5_dtype(about, &dtype);
    for (int d = 0; good && d < about->ndim; d++) good = about->shape[d] >= 1 && fv__mul(n, about->shape[d], &n) && n <= most;
    void   *raw = good ? fv__alloc((size_t)n * fv_dtype_size(dtype)) : NULL;
    double *numbers = good ? fv__alloc((size_t)n * sizeof *numbers) : NULL;
    good = good && h5->read_box(dataset, first, about->shape, raw, message);
    if (good) fv__kernels_current()->convert(numbers, FV_FLOAT64, raw, dtype, n);
    h5->close_dataset(dataset);
    free(raw);
    if (good) return numbers;
    free(numbers);
    return NULL;
}

/* The numbers of a dataset of one axis with n of them, or NULL. */
static double *take_numbers(const fv_hdf5_plugin *h5, void *file, const char *name, int64_t n) {
    fv_hdf5_about about;
    double       *numbers = n <= MOST_ANGLES ? fv__hdf5_numbers(h5, file, name, n, &about) : NULL;
    bool          good = numbers && about.ndim == 1 && about.shape[0] == n;
    for (int64_t i = 0; good && i < n; i++) good = isfinite(numbers[i]);
    if (good) return numbers;
    free(numbers);
    return NULL;
}

static int kind_of_key(double key) {
    return key == 0 ? FV_HDF5_PROJECTIONS : key == 1 ? FV_HDF5_FLATS : key == 2 ? FV_HDF5_DARKS : FV_HDF5_OTHERS;
}

fv_status fv__hdf5_frames(const fv_hdf5_plugin *h5, void *file, const char *path, const fv_hdf5_part *part, int64_t n,
                          int64_t **frames, int64_t count[FV_HDF5_KINDS], fv_error *error) {
    double *key = take_numbers(h5, file, part->key, n);
    for (int k = 0; k < FV_HDF5_KINDS; k++) count[k] = 0;
    if (!key)
        return fv_fail(error, FV_ERROR_INPUT,
                       "%s: %s must hold a number for each of the %lld frames of %s; path = \"%s\" reads all of them", path,
                       part->key, (long long)n, part->name, part->name);
    if (FV_TAKE(*frames, (size_t)n * sizeof **frames, error) != FV_OK) {
        free(key);
        return FV_ERROR_MEMORY;
    }
    for (int64_t i = 0; i < n; i++) {
        int kind = kind_of_key(key[i]);
        if (kind == part->kind) (*frames)[count[kind]] = i;
        count[kind]++;
    }
    free(key);
    if (count[part->kind]) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s holds no %s: no number of %s is %d", path, called[part->kind], part->key,
                   part->kind);
}

/* ---------------------------------------------------------------- angles */

static double *angles_at(const fv_hdf5_plugin *h5, void *file, const char *place, int64_t n) {
    char    units[64];
    double *angles = take_numbers(h5, file, place, n);
    if (!angles) return NULL;
    bool radians = h5->get_text(file, place, "units", 0, units, sizeof units) && !strncasecmp(units, "rad", 3);
    for (int64_t a = 0; radians && a < n; a++) angles[a] *= 180 / 3.14159265358979323846;
    return angles;
}

/* Beside the projections, then in the groups around them, as NXtomo has it in sample. */
double *fv__hdf5_angles(const fv_hdf5_plugin *h5, void *file, const char *name, int64_t n) {
    static const char *const places[] = { "theta", "rotation_angle", "sample/rotation_angle", "data/rotation_angle" };
    char                     group[NAME], place[2 * NAME];
    double                  *angles = NULL;
    snprintf(group, sizeof group, "%s", name);
    for (char *slash = strrchr(group, '/'); slash && !angles; slash = strrchr(group, '/')) {
        *slash = 0;
        for (int i = 0; i < FV_COUNT(places) && !angles; i++) {
            snprintf(place, sizeof place, "%s/%s", group, places[i]);
            angles = angles_at(h5, file, place, n);
        }
    }
    return angles;
}
