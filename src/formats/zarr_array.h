/* The metadata of one Zarr array (zarr.json of version 3, .zarray of version 2), from JSON and back. */
#ifndef FV_ZARR_ARRAY_H
#define FV_ZARR_ARRAY_H

#include "formats/zarr_codec.h"
#include <cjson/cJSON.h>

typedef struct fv_zarr_array {
    fv_dtype      dtype;
    int           ndim;
    int64_t       shape[FV_MAX_DIMS], chunk[FV_MAX_DIMS]; /* chunk may be larger than shape */
    bool          big_endian;
    bool          prefixed;  /* keys are "c/0/1" and not "0/1" */
    char          separator; /* '/' or '.' */
    uint8_t       fill[16];  /* one element in native byte order: what missing chunks hold */
    fv_zarr_codec codec;
} fv_zarr_array;

/* Reads and parses a small JSON file; the caller deletes it. */
fv_status fv_zarr_load(const char *path, fv_hasher *hasher, cJSON **json, fv_error *error);

/* path is the metadata file's, for messages. */
fv_status fv_zarr_array_parse(const cJSON *json, const char *path, fv_zarr_array *array, fv_error *error);
fv_status fv_zarr_array_parse_v2(const cJSON *json, const char *path, fv_zarr_array *array, fv_error *error);

/* zarr.json of an array without attributes and dimension names; little endian. */
cJSON *fv_zarr_array_compose(const fv_zarr_array *array);

int64_t fv_zarr_chunk_bytes(const fv_zarr_array *array);
/* Where the chunk that begins at a voxel lies, below the array's folder; the caller frees. */
char *fv_zarr_chunk_path(const fv_zarr_array *array, const char *folder, const int64_t *start);

/* Numbers that print exactly, and lists of them. */
cJSON *fv_zarr_integer(int64_t value);
cJSON *fv_zarr_real(double value);
cJSON *fv_zarr_integers(const int64_t *values, int n);
cJSON *fv_zarr_reals(const double *values, int n);
/* n finite numbers from a list of exactly n; false otherwise. */
bool fv_zarr_get_reals(const cJSON *list, double *values, int n);

#endif
