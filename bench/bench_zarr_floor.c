/* The least there is to do for a Zarr image: chunks of arrays in memory packed on all cores and written to files of their own,
 * and nothing else. usage: bench_zarr_floor CODEC FOLDER FILE.npy...; CODEC: zstd, blosc, gzip or none. Every further file stands
 * for a coarser level. Prints the seconds of wall and CPU time, and of wall time until the files are durable. */
#include "base/file.h"
#include "formats/zarr_codec.h"
#include "op/format.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CHUNK = 128 };

typedef struct {
    fv_block   block;
    fv_lattice lattice;
} level;

typedef struct {
    const fv_zarr_codec *codec;
    const char          *folder;
    level                levels[16];
    int                  nlevels;
    atomic_llong         next;
    char               **files; /* of all chunks of all levels, those of the finest first */
} work;

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void stop(const fv_error *error) {
    fprintf(stderr, "bench_zarr_floor: %s\n", error->message);
    exit(1);
}

static level load(const char *path) {
    const fv_format *format;
    fv_reader       *reader;
    fv_error         error = { 0 };
    level            l;
    if (fv__format_for_reading(path, &format, &error) != FV_OK || format->open(path, NULL, &reader, &error) != FV_OK)
        stop(&error);
    fv_region whole = fv__region_whole(&reader->type);
    int64_t   chunk[FV_MAX_DIMS];
    for (int d = 0; d < FV_MAX_DIMS; d++) chunk[d] = CHUNK;
    fv__lattice_init(&l.lattice, reader->type.ndim, reader->type.shape, chunk);
    fv__block_init(&l.block, reader->type.dtype, &whole, fv__buffer_new((size_t)fv_image_type_bytes(&reader->type)));
    if (format->read(reader, &l.block, &error) != FV_OK) stop(&error);
    format->close(reader);
    return l;
}

static void *pack_and_write(void *argument) {
    work   *w = argument;
    int64_t bytes = (int64_t)CHUNK * CHUNK * CHUNK * (int64_t)fv_dtype_size(w->levels[0].block.dtype);
    void   *chunk = fv__buffer_new((size_t)bytes), *room = fv__buffer_new((size_t)fv__zarr_packed_bound(bytes));
    for (long long at; w->files[at = atomic_fetch_add(&w->next, 1)];) {
        const level *l = w->levels;
        int64_t      index = at, size;
        const void  *packed;
        fv_error     error = { 0 };
        int          fd;
        for (; index >= fv__lattice_count(&l->lattice); l++) index -= fv__lattice_count(&l->lattice);
        fv_region region = fv__lattice_chunk(&l->lattice, index);
        fv_block  window = fv__block_window(&l->block, &region), copy;
        fv__block_init(&copy, window.dtype, &region, chunk);
        fv__block_copy(&copy, &window);
        int64_t used = fv__region_voxels(&region) * (int64_t)fv_dtype_size(window.dtype);
        if (fv__zarr_pack(w->codec, chunk, used, room, &packed, &size, &error) != FV_OK ||
            fv__file_open_write(w->files[at], &fd, &error) != FV_OK ||
            fv__file_write_at(fd, packed, (size_t)size, 0, w->files[at], &error) != FV_OK)
            stop(&error);
        close(fd);
    }
    fv__buffer_free(chunk, (size_t)bytes);
    fv__buffer_free(room, (size_t)fv__zarr_packed_bound(bytes));
    return NULL;
}

static fv_zarr_codec choose(const char *name) {
    if (!strcmp(name, "zstd")) return (fv_zarr_codec){ .packing = FV_ZARR_ZSTD, .level = 1 };
    if (!strcmp(name, "blosc")) return (fv_zarr_codec){ .packing = FV_ZARR_BLOSC, .level = 5, .inner = "lz4", .element = 2 };
    if (!strcmp(name, "gzip")) return (fv_zarr_codec){ .packing = FV_ZARR_GZIP, .level = 1 };
    return (fv_zarr_codec){ .packing = FV_ZARR_NONE };
}

int main(int argc, char **argv) {
    if (argc < 4 || argc > 3 + 16) {
        fprintf(stderr, "usage: bench_zarr_floor zstd|blosc|gzip|none FOLDER FILE.npy...\n");
        return 2;
    }
    fv_zarr_codec codec = choose(argv[1]);
    work          w = { .codec = &codec, .folder = argv[2], .nlevels = argc - 3 };
    fv_error      error = { 0 };
    size_t        count = 0;
    long          cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (fv__path_make_folders(w.folder, &error) != FV_OK) stop(&error);
    for (int i = 0; i < w.nlevels; i++) {
        w.levels[i] = load(argv[3 + i]);
        size_t chunks = (size_t)fv__lattice_count(&w.levels[i].lattice);
        w.files = fv__realloc(w.files, (count + chunks + (size_t)cores + 1) * sizeof *w.files);
        for (size_t k = 0; k < chunks; k++) w.files[count++] = fv__sprintf("%s/%d-%zu", w.folder, i, k);
    }
    memset(w.files + count, 0, ((size_t)cores + 1) * sizeof *w.files); /* every thread looks once beyond the end */
    pthread_t threads[64];
    double    start = fv__now(), used = cpu_seconds();
    cores = FV_MIN(cores, FV_COUNT(threads));
    for (long i = 0; i < cores; i++) pthread_create(&threads[i], NULL, pack_and_write, &w);
    for (long i = 0; i < cores; i++) pthread_join(threads[i], NULL);
    double written = fv__now() - start, cpu = cpu_seconds() - used;
    if (fv__paths_sync(w.files, count, &error) != FV_OK) stop(&error);
    printf("%.6f %.6f %.6f\n", written, cpu, fv__now() - start);
    return 0;
}
