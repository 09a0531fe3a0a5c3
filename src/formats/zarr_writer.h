/* A Zarr writer and its parts: layout (zarr_create.c), chunks and their durability (zarr_write.c), the coarser levels
 * (zarr_pyramid.c) and what waits in memory for them (zarr_forming.c), metadata (zarr_metadata.c), label images (zarr_labels.c).
 *
 * Invariants: 1. the mutex guards the list of files that are not durable; 2. whoever syncs holds the sync mutex until those are
 * durable, so that a second sync cannot return before; 3. a file has its own name only when it is complete. */
#ifndef FV_ZARR_WRITER_H
#define FV_ZARR_WRITER_H

#include "formats/zarr_array.h"
#include "op/format.h"
#include <pthread.h>

enum { FV_ZARR_MOST_LEVELS = 32 };

typedef struct fv_zarr_level {
    fv_zarr_array array;
    bool          halved[FV_MAX_DIMS]; /* along these axes it is half as long as the level before */
    int64_t       factor[FV_MAX_DIMS]; /* voxels of the image below one of its own */
} fv_zarr_level;

typedef struct fv_zarr_coarse { /* a file of the coarser level in the making */
    fv_block    to;
    const bool *halved;
    bool        mean;
} fv_zarr_coarse;

typedef struct fv_zarr_place {
    int     level;
    int64_t index;
} fv_zarr_place; /* of a file */

typedef struct fv_zarr_forming { /* a file of a coarser level of which some children have come */
    struct fv_zarr_forming *next;
    int                     level;
    int64_t                 index;
    void                   *data; /* NULL: its parts lie on the disk */
    size_t                  bytes;
    uint64_t                missing; /* children, a bit each */
    int                     users;   /* who fill their part in right now */
} fv_zarr_forming;

typedef struct fv_zarr_design { /* what follows from type and options */
    fv_zarr_level level[FV_ZARR_MOST_LEVELS];
    int           nlevels;
    bool          ome;   /* an OME-Zarr group with one folder for each level; otherwise a plain array */
    bool          label; /* it becomes labels/NAME of an image */
    bool          mean;  /* coarser levels are means; otherwise every second voxel */
} fv_zarr_design;

typedef struct fv_zarr_writer {
    fv_writer        base;
    fv_zarr_design   design;
    pthread_mutex_t  mutex, sync_mutex;
    fv_zarr_place   *written; /* not durable yet */
    size_t           nwritten, capacity;
    fv_zarr_forming *forming; /* guarded by the mutex */
    int64_t          kept;    /* bytes of it */
} fv_zarr_writer;

extern const fv_format fv_format_zarr;

/* zarr_create.c */
fv_status fv__zarr_layout(const fv_image_file *file, fv_file_layout *layout, fv_error *error);
fv_status fv__zarr_create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                          fv_error *error);
void      fv__zarr_free_writer(fv_writer *base);

/* zarr_write.c */
fv_status fv__zarr_begin(fv_writer *base, fv_error *error);
fv_status fv__zarr_put(fv_writer *base, const fv_block *block, fv_error *error);
fv_status fv__zarr_sync(fv_writer *base, fv_error *error);
fv_status fv__zarr_finish(fv_writer *base, fv_error *error);
/* Packs one file of a level, which begins at a voxel, and gives it its name. block: its voxels, cut at the image's end; coarse:
 * where they are shrunk to while they are in the cache, or NULL. */
fv_status fv__zarr_store(fv_zarr_writer *w, int level, const int64_t *start, const fv_block *block, const fv_zarr_coarse *coarse,
                         fv_error *error);
/* The same for each of the files of a region, which lies in block. */
fv_status fv__zarr_store_all(fv_zarr_writer *w, int level, const fv_block *block, const fv_region *region,
                             const fv_zarr_coarse *coarse, fv_error *error);
/* Writes a whole file where nobody looks and moves it to its place. lasting: it will be synced soon. */
fv_status fv__zarr_write_file(const fv_zarr_writer *w, const char *path, const void *data, size_t size, bool lasting,
                              fv_error *error);
/* In the output's own folder until it is finished: a folder of this name, and files whose names begin so, are parts of it. */
#define FV_ZARR_PARTIAL ".partial"
/* Paths are only known for good when writing begins. Callers free. */
char *fv__zarr_level_folder(const fv_zarr_writer *w, int level);

/* zarr_pyramid.c */
int64_t fv__zarr_pyramid_memory(const fv_zarr_design *design); /* that fv__zarr_climb needs */
int64_t fv__zarr_pyramid_bytes(const fv_zarr_design *design);  /* of all coarser levels */
/* What follows in the coarser levels once some whole files of a level are known. store: those are to be written, too. */
fv_status fv__zarr_climb(fv_zarr_writer *w, int level, const fv_block *block, bool store, fv_error *error);
/* Makes what is missing in the coarser levels, from the finer ones. */
fv_status fv__zarr_mend(fv_zarr_writer *w, fv_error *error);

/* zarr_forming.c */
/* The file, to fill some children in; NULL: their parts go to the disk. wanted: all its children, a bit each. */
fv_zarr_forming *fv__zarr_form(fv_zarr_writer *w, int level, int64_t index, size_t bytes, uint64_t wanted);
/* These children are filled in. True: it is complete, and the caller's to write and to release. */
bool fv__zarr_formed(fv_zarr_writer *w, fv_zarr_forming *file, uint64_t children);
void fv__zarr_form_release(fv_zarr_writer *w, fv_zarr_forming *file);
void fv__zarr_form_forget(fv_zarr_writer *w, int level, int64_t index); /* one whose parts lay on the disk is complete */
void fv__zarr_form_clear(fv_zarr_writer *w);                            /* once nothing more is put */

/* zarr_labels.c: label images, which lie in labels/NAME of an OME-Zarr image. */
bool      fv__zarr_is_label(const char *path);
fv_status fv__zarr_check_label(const fv_zarr_design *design, const fv_image_file *file,
                               fv_error *error); /* whether it can be one */
void      fv__zarr_describe_label(const fv_zarr_writer *w, cJSON *attributes);
fv_status fv__zarr_adopt_labels(const char *temporary, const char *path, fv_error *error);
fv_status fv__zarr_list_label(const char *path, fv_error *error);

/* zarr_metadata.c: paths of what was written, for the caller to sync and to free. */
typedef struct fv_zarr_paths {
    char **path;
    size_t count, capacity;
} fv_zarr_paths;
cJSON    *fv__zarr_compose_group(int version);
void      fv__zarr_add_path(fv_zarr_paths *list, char *path_take);
void      fv__zarr_release_paths(fv_zarr_paths *list);
fv_status fv__zarr_write_metadata(const fv_zarr_writer *w, fv_zarr_paths *files, fv_error *error);

#endif
