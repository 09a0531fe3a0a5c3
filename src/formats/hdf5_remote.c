/* HDF5 files behind http and s3 addresses: the library reads what it wants to know of them by range, and we the voxels. */
#include "base/remote.h"
#include "formats/expendable.h"
#include "formats/hdf5_parts.h"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct fv_hdf5_remote {
    char           *path;
    int             fd;
    int64_t         size;
    pthread_mutex_t mutex;   /* guards the failure */
    fv_error        failure; /* of the network; code FV_OK: none */
};

/* The library says no more than that it could not read. */
static bool read_bytes(void *context, int64_t offset, void *to, size_t size) {
    fv_hdf5_remote *r = context;
    fv_error        error = { 0 };
    if (fv__expendable_inside() && !fv__expendable_fetch(r->fd, offset, size)) return false;
    if (fv__expendable_inside()) {
        for (ssize_t got; size > 0 && (got = pread(r->fd, to, size, offset)) > 0; offset += got, size -= (size_t)got)
            to = (char *)to + got;
        return size == 0;
    }
    if (fv__file_read_at(r->fd, to, size, offset, r->path, &error) == FV_OK) return true;
    pthread_mutex_lock(&r->mutex);
    r->failure = error;
    pthread_mutex_unlock(&r->mutex);
    return false;
}

fv_status fv__hdf5_remote_open(const char *path, fv_hdf5_remote **out, fv_error *error) {
    fv_file_id id;
    int        fd;
    FV_TRY(fv__file_identify(path, &id, error));
    FV_TRY(fv__file_open_read(path, &fd, error));
    fv_hdf5_remote *r = fv__calloc(sizeof *r);
    *r = (fv_hdf5_remote){ .path = fv__strdup(path), .fd = fd, .size = id.size };
    pthread_mutex_init(&r->mutex, NULL);
    *out = r;
    return FV_OK;
}

void fv__hdf5_remote_free(fv_hdf5_remote *r) {
    if (!r) return;
    close(r->fd);
    pthread_mutex_destroy(&r->mutex);
    free(r->path);
    free(r);
}

fv_hdf5_source fv__hdf5_remote_source(fv_hdf5_remote *r) {
    return (fv_hdf5_source){ .context = r, .name = r->path, .size = r->size, .read = read_bytes };
}

fv_status fv__hdf5_remote_read(fv_hdf5_remote *r, int64_t offset, void *to, size_t size, fv_error *error) {
    return fv__file_read_at(r->fd, to, size, offset, r->path, error);
}

int     fv__hdf5_remote_descriptor(const fv_hdf5_remote *r) { return r->fd; }
int64_t fv__hdf5_remote_size(const fv_hdf5_remote *r) { return r->size; }

fv_status fv__hdf5_remote_blame(fv_hdf5_remote *r, fv_status status, fv_error *error) {
    if (!r || status == FV_OK) return status;
    pthread_mutex_lock(&r->mutex);
    if (r->failure.code != FV_OK) {
        status = r->failure.code;
        if (error) *error = r->failure;
        r->failure.code = FV_OK;
    }
    pthread_mutex_unlock(&r->mutex);
    return status;
}
