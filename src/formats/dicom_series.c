/* The files of a folder that are slices of one DICOM series, in order of their place in the patient.
 *
 * Files that are no DICOM are passed over. A folder of several series needs the identifier of one, and slices that do not fit
 * together are refused with the names of two of them. */
#include "formats/dicom_parts.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_FILES = 100000, MOST_LISTED = 8 };

/* ---------------------------------------------------------------- looking through the folder */

static bool has_magic(const char *path) {
    char magic[4];
    int  fd;
    if (fv__path_is_folder(path) || fv__file_open_read(path, &fd, NULL) != FV_OK) return false;
    bool found = fv__file_read_at(fd, magic, sizeof magic, 128, path, NULL) == FV_OK && !memcmp(magic, "DICM", 4);
    fv__file_close(fd, path, NULL);
    return found;
}

/* DICOM files of a folder in order of name. */
static fv_status list_files(const char *folder, char ***paths, int64_t *count, fv_error *error) {
    struct dirent **names = NULL;
    int             entries = scandir(folder, &names, NULL, alphasort);
    if (entries < 0) return fv_fail(error, FV_ERROR_IO, "cannot look into the folder %s", folder);
    *paths = fv__alloc((size_t)(entries + 1) * sizeof **paths);
    *count = 0;
    for (int i = 0; i < entries; i++) {
        char *path = fv__sprintf("%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", names[i]->d_name);
        if (names[i]->d_name[0] != '.' && has_magic(path))
            (*paths)[(*count)++] = path;
        else
            free(path);
        free(names[i]);
    }
    free(names);
    return FV_OK;
}

static fv_status add_files(fv_dicom_reader *r, const char *folder, const char *uid, fv_error *error) {
    char  **paths = NULL;
    int64_t count = 0;
    FV_TRY(list_files(folder, &paths, &count, error));
    fv_dicom_about *abouts = fv__alloc((size_t)(count + 1) * sizeof *abouts);
    fv_status       status = count > MOST_FILES ? fv_fail(error, FV_ERROR_INPUT, "%s: more than %d files", folder, MOST_FILES)
                             : count            ? fv__dicom_about_files(r->dicom, paths, count, abouts, error)
                                                : FV_OK;
    for (int64_t i = 0; i < count; i++) {
        if (status == FV_OK && (!uid || !strcmp(uid, abouts[i].series))) fv__dicom_add(r, paths[i], &abouts[i]);
        free(paths[i]);
    }
    free(paths);
    free(abouts);
    return status;
}

/* ---------------------------------------------------------------- what fits together */

/* Several series: their identifiers and how many files each has. */
static fv_status check_single(const fv_dicom_reader *r, const char *folder, fv_error *error) {
    fv_bytes list = { 0 };
    int      listed = 0;
    for (int64_t i = 0; i < r->nslices; i++) {
        int64_t first = 0, files = 0;
        while (strcmp(r->slices[first].about.series, r->slices[i].about.series)) first++;
        for (int64_t k = 0; k < r->nslices; k++) files += !strcmp(r->slices[k].about.series, r->slices[i].about.series);
        if (first != i || files == r->nslices || ++listed > MOST_LISTED) continue;
        fv__bytes_printf(&list, "%s\"%s\" (%lld files)", list.size ? ", " : "", r->slices[i].about.series, (long long)files);
    }
    fv_status status = FV_OK;
    if (listed)
        status = fv_fail(error, FV_ERROR_USAGE, "%s holds %d DICOM series; name one by path = ...: %s", folder, listed,
                         (char *)list.data);
    fv__bytes_release(&list);
    return status;
}

static bool alike(const fv_dicom_about *a, const fv_dicom_about *b) {
    bool same = a->columns == b->columns && a->rows == b->rows && a->samples == b->samples && a->size == b->size &&
                a->bits == b->bits && a->is_signed == b->is_signed && a->is_real == b->is_real && a->placed == b->placed;
    for (int i = 0; i < 6; i++) same = same && fabs(a->direction[i] - b->direction[i]) < 1e-3;
    for (int i = 0; i < 2; i++) same = same && fabs(a->spacing[i] - b->spacing[i]) <= 1e-3 * fabs(b->spacing[i]);
    return same;
}

static fv_status check_alike(const fv_dicom_reader *r, fv_error *error) {
    for (int64_t i = 0; i < r->nslices; i++) {
        const fv_dicom_slice *slice = &r->slices[i], *first = &r->slices[0];
        if (slice->about.frames > 1 && r->nslices > 1)
            return fv_fail(error, FV_ERROR_INPUT, "%s holds %lld frames itself and cannot be a slice of a series; read it alone",
                           slice->path, (long long)slice->about.frames);
        if (!alike(&slice->about, &first->about))
            return fv_fail(error, FV_ERROR_INPUT,
                           "%s and %s are of one DICOM series and differ in shape, type, spacing or orientation; put what "
                           "belongs together into a folder of its own",
                           first->path, slice->path);
        if (i && slice->place == slice[-1].place)
            return fv_fail(error, FV_ERROR_INPUT,
                           "%s and %s are of one DICOM series and lie at the same place; put what belongs "
                           "together into a folder of its own",
                           slice[-1].path, slice->path);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- order */

/* Where the slice lies along the normal of rows and columns. */
static double place_of(const fv_dicom_about *a) {
    const double *r = a->direction, *c = a->direction + 3, *p = a->position;
    if (!a->placed) return (double)a->number;
    return p[0] * (r[1] * c[2] - r[2] * c[1]) + p[1] * (r[2] * c[0] - r[0] * c[2]) + p[2] * (r[0] * c[1] - r[1] * c[0]);
}

static int by_place(const void *a, const void *b) {
    const fv_dicom_slice *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return strcmp(x->path, y->path);
}

fv_status fv__dicom_find_series(fv_dicom_reader *r, const char *folder, const char *uid, fv_error *error) {
    FV_TRY(add_files(r, folder, uid, error));
    if (!r->nslices)
        return fv_fail(error, FV_ERROR_INPUT, "%s holds no DICOM file%s%s", folder, uid ? " of series " : "", uid ? uid : "");
    FV_TRY(check_single(r, folder, error));
    for (int64_t i = 0; i < r->nslices; i++) r->slices[i].place = place_of(&r->slices[i].about);
    qsort(r->slices, (size_t)r->nslices, sizeof *r->slices, by_place);
    return check_alike(r, error);
}
