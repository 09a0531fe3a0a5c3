/* Files of the coarser levels that grow in memory until all their children have come, as far as the writer may keep them there.
 * Others wait as parts on the disk; which of both is decided when the first child comes, and remembered. */
#include "formats/zarr_writer.h"
#include <stdlib.h>

/* The pool of buffers rounds sizes up, by an eighth at most. */
static int64_t footprint(const fv_zarr_forming *file) { return (int64_t)(file->bytes + file->bytes / 8); }

/* Mutex held. */
static fv_zarr_forming **find(fv_zarr_writer *w, int level, int64_t index) {
    fv_zarr_forming **file = &w->forming;
    while (*file && ((*file)->level != level || (*file)->index != index)) file = &(*file)->next;
    return file;
}

static fv_zarr_forming *add(fv_zarr_writer *w, int level, int64_t index, size_t bytes, uint64_t wanted) {
    fv_zarr_forming *file = fv__calloc(sizeof *file);
    *file = (fv_zarr_forming){ .next = w->forming, .level = level, .index = index, .bytes = bytes, .missing = wanted };
    if (w->kept + footprint(file) <= w->base.spare) {
        file->data = fv__buffer_new(bytes); /* without memory it waits on the disk, as the others do */
        if (file->data) w->kept += footprint(file);
    }
    return w->forming = file;
}

fv_zarr_forming *fv__zarr_form(fv_zarr_writer *w, int level, int64_t index, size_t bytes, uint64_t wanted) {
    if (!w->base.spare) return NULL;
    pthread_mutex_lock(&w->mutex);
    fv_zarr_forming *file = *find(w, level, index);
    if (!file) file = add(w, level, index, bytes, wanted);
    bool here = file->data != NULL;
    file->users += here;
    pthread_mutex_unlock(&w->mutex);
    return here ? file : NULL;
}

bool fv__zarr_formed(fv_zarr_writer *w, fv_zarr_forming *file, uint64_t children) {
    pthread_mutex_lock(&w->mutex);
    file->missing &= ~children;
    bool complete = --file->users == 0 && !file->missing;
    if (complete) *find(w, file->level, file->index) = file->next;
    pthread_mutex_unlock(&w->mutex);
    return complete;
}

void fv__zarr_form_release(fv_zarr_writer *w, fv_zarr_forming *file) {
    pthread_mutex_lock(&w->mutex);
    if (file->data) w->kept -= footprint(file);
    pthread_mutex_unlock(&w->mutex);
    fv__buffer_free(file->data, file->bytes);
    free(file);
}

void fv__zarr_form_forget(fv_zarr_writer *w, int level, int64_t index) {
    pthread_mutex_lock(&w->mutex);
    fv_zarr_forming **place = find(w, level, index), *file = *place;
    if (file && file->data) file = NULL; /* of a repeated put */
    if (file) *place = file->next;
    pthread_mutex_unlock(&w->mutex);
    free(file);
}

void fv__zarr_form_clear(fv_zarr_writer *w) {
    while (w->forming) {
        fv_zarr_forming *file = w->forming;
        w->forming = file->next;
        fv__zarr_form_release(w, file);
    }
}
