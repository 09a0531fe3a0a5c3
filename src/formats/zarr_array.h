/* The metadata of one Zarr array (zarr.json of version 3, .zarray of version 2), from JSON and back. */
#ifndef FV_ZARR_ARRAY_H
#define FV_ZARR_ARRAY_H

#include "formats/zarr_codec.h"
#include <cjson/cJSON.h>

typedef struct fv_zarr_array {
    fv_dtype      dtype;
    int           ndim;
    int           version;                                /* 2 or 3 */
    int64_t       shape[FV_MAX_DIMS], chunk[FV_MAX_DIMS]; /* chunk may be larger than shape */
    int64_t       file[FV_MAX_DIMS];                      /* voxels of one file: a shard of whole chunks, or a chunk */
    bool          sharded, index_first;                   /* where the index of a shard lies */
    bool          index_summed;                           /* its checksum follows */
    int           order[FV_MAX_DIMS]; /* axes of a chunk as it is stored, the slowest first: 0 1 2 unless turned */
    bool          turned;
    bool          big_endian;
    bool          prefixed;  /* keys are "c/0/1" and not "0/1" */
    char          separator; /* '/' or '.' */
    uint8_t       fill[16];  /* one element in native byte order: what missing chunks hold */
    fv_zarr_codec codec;
} fv_zarr_array;

/* Reads and parses a small JSON file; the caller deletes it. */
fv_status fv__zarr_load(const char *path, fv_hasher *hasher, cJSON **json, fv_error *error);

/* path is the metadata file's, for messages. */
fv_status fv__zarr_array_parse(const cJSON *json, const char *path, fv_zarr_array *array, fv_error *error);
fv_status fv__zarr_array_parse_v2(const cJSON *json, const char *path, fv_zarr_array *array, fv_error *error);

/* zarr.json or .zarray of an array without attributes and dimension names; little endian. */
cJSON *fv__zarr_array_compose(const fv_zarr_array *array);

int64_t fv__zarr_chunk_bytes(const fv_zarr_array *array);
int64_t fv__zarr_shard_chunks(const fv_zarr_array *array); /* chunks of one file; -1 if there are too many */
/* The next box of a grid that meets the region, in C order; it is not cut at the image's end. Begin with ndim 0. */
bool fv__zarr_next(int ndim, const int64_t *grid, const fv_region *region, fv_region *box);
/* Where the file that begins at a voxel lies, below the array's folder; the caller frees. */
char *fv__zarr_file_path(const fv_zarr_array *array, const char *folder, const int64_t *start);

/* Numbers that print exactly, and lists of them. */
cJSON *fv__zarr_integer(int64_t value);
cJSON *fv__zarr_real(double value);
cJSON *fv__zarr_integers(const int64_t *values, int n);
cJSON *fv__zarr_reals(const double *values, int n);
/* n finite numbers from a list of exactly n; false otherwise. */
bool fv__zarr_get_reals(const cJSON *list, double *values, int n);

#endif
