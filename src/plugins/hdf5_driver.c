/* The driver; see hdf5_driver.h. Voxels need not come through the library: while it is asked where a chunk lies, the place of
 * their bytes is noted, and the bytes are not read. */
#include "plugins/hdf5_driver.h"
#include <stdlib.h>
#include <string.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

typedef struct {
    H5FD_t         base;
    fv_hdf5_source source;
    haddr_t        end; /* of what is in use */
} driven;

static bool    noting; /* guarded by the lock of the plug-in, as is what was noted */
static haddr_t noted;

haddr_t fv_hdf5_driver_note(bool on) {
    haddr_t last = noted;
    noting = on;
    noted = HADDR_UNDEF;
    return last;
}

static H5FD_t *drive_open(const char *name, unsigned flags, hid_t access, haddr_t most) {
    const fv_hdf5_source *source = H5Pget_driver_info(access);
    (void)most;
    if (!source || strcmp(name, source->name) || flags & H5F_ACC_RDWR) return NULL; /* a link into another file */
    driven *d = calloc(1, sizeof *d);
    d->source = *source;
    return &d->base;
}

static herr_t drive_close(H5FD_t *base) {
    free(base);
    return 0;
}

static int drive_compare(const H5FD_t *one, const H5FD_t *two) {
    uintptr_t a = (uintptr_t)((const driven *)one)->source.context, b = (uintptr_t)((const driven *)two)->source.context;
    return a < b ? -1 : a > b;
}

static herr_t drive_query(const H5FD_t *base, unsigned long *flags) {
    (void)base;
    *flags = H5FD_FEAT_DATA_SIEVE;
    return 0;
}

static haddr_t drive_get_end(const H5FD_t *base, H5FD_mem_t type) {
    (void)type;
    return ((const driven *)base)->end;
}

static herr_t drive_set_end(H5FD_t *base, H5FD_mem_t type, haddr_t end) {
    (void)type;
    ((driven *)base)->end = end;
    return 0;
}

static haddr_t drive_size(const H5FD_t *base, H5FD_mem_t type) {
    (void)type;
    return (haddr_t)((const driven *)base)->source.size;
}

static herr_t drive_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size, void *to) {
    const fv_hdf5_source *source = &((driven *)base)->source;
    (void)transfer;
    if (noting && type == H5FD_MEM_DRAW) {
        noted = at;
        return 0;
    }
    if (at > (haddr_t)source->size) return -1;
    size_t there = size < (size_t)source->size - at ? size : (size_t)((haddr_t)source->size - at);
    memset((char *)to + there, 0, size - there); /* as the library's own drivers do behind the end */
    return source->read(source->context, (int64_t)at, to, there) ? 0 : -1;
}

static herr_t drive_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size, const void *from) {
    (void)base, (void)type, (void)transfer, (void)at, (void)size, (void)from;
    return -1;
}

hid_t fv_hdf5_driver(void) {
    static hid_t known = -1;
    static const H5FD_class_t class = {
#ifdef H5FD_CLASS_VERSION
        .version = H5FD_CLASS_VERSION,
        .value = 613,
#endif
        .name = "fovea",
        .maxaddr = INT64_MAX,
        .fc_degree = H5F_CLOSE_WEAK,
        .fapl_size = sizeof(fv_hdf5_source),
        .open = drive_open,
        .close = drive_close,
        .cmp = drive_compare,
        .query = drive_query,
        .get_eoa = drive_get_end,
        .set_eoa = drive_set_end,
        .get_eof = drive_size,
        .read = drive_read,
        .write = drive_write,
        .fl_map = H5FD_FLMAP_DICHOTOMY,
    };
    if (known < 0) known = H5FDregister(&class);
    return known;
}
