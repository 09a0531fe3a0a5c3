/* What an image is: element type, shape, named axes, spacing, and a box of it. */
#ifndef FOVEA_IMAGE_H
#define FOVEA_IMAGE_H

#include <fovea/api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FV_MAX_DIMS 6

typedef enum fv_dtype {
    FV_BOOL, /* one byte, 0 or 1 */
    FV_UINT8,
    FV_INT8,
    FV_UINT16,
    FV_INT16,
    FV_UINT32,
    FV_INT32,
    FV_UINT64,
    FV_INT64,
    FV_FLOAT32,
    FV_FLOAT64,
    FV_COMPLEX64,
    FV_COMPLEX128,
    FV_DTYPES
} fv_dtype;

FV_API size_t      fv_dtype_size(fv_dtype dtype);
FV_API const char *fv_dtype_name(fv_dtype dtype); /* numpy's names: "uint8", "float32", ... */
FV_API bool        fv_dtype_parse(const char *name, fv_dtype *dtype);
FV_API bool        fv_dtype_is_float(fv_dtype dtype);
FV_API bool        fv_dtype_is_integer(fv_dtype dtype); /* not bool */
FV_API bool        fv_dtype_is_signed(fv_dtype dtype);
FV_API bool        fv_dtype_is_complex(fv_dtype dtype);

/* What is known of a channel. */
#define FV_MAX_CHANNELS 64
typedef struct fv_channel {
    char     name[32]; /* "" where unknown */
    bool     has_color;
    uint32_t color;     /* 0xrrggbb; valid if has_color */
    double   low, high; /* values that are shown black and in the full colour; equal where unknown */
} fv_channel;

/* Shape is in C order: the last axis is contiguous. Axis names are "t c z y x" and others such as "angle".
 * A colour image is "y x c". */
typedef struct fv_image_type {
    fv_dtype dtype;
    int      ndim;
    int64_t  shape[FV_MAX_DIMS];
    char     axis[FV_MAX_DIMS][8];
    double   spacing[FV_MAX_DIMS];  /* 1 where unknown */
    double   origin[FV_MAX_DIMS];   /* 0 where unknown */
    char     unit[FV_MAX_DIMS][16]; /* "micrometer", "millimeter", "second", or "" */
    bool     has_affine;
    double   affine[12];  /* rows of the 3x4 voxel (x y z) to world matrix, as NIfTI's sform; valid if has_affine */
    int      affine_code; /* NIfTI's code of that world: 1 scanner, 2 aligned, 3 Talairach, 4 MNI; 0 where unknown */
    /* As many as the axis c is long, one for an image without that axis; 0: nothing is known of them, or they are too many. */
    int        nchannels;
    fv_channel channel[FV_MAX_CHANNELS];
} fv_image_type;

/* Sets ndim and shape, default axis names (..., "z", "y", "x"), spacing 1, origin 0, no units. */
FV_API void    fv_image_type_init(fv_image_type *type, fv_dtype dtype, int ndim, const int64_t *shape);
FV_API int64_t fv_image_type_voxels(const fv_image_type *type); /* -1 on overflow */
FV_API int64_t fv_image_type_bytes(const fv_image_type *type);  /* -1 on overflow */
/* Number of spatial axes (z, y and x, or v and u of a detector); spatial[i] gets the index of the i-th, in order. */
FV_API int fv_image_type_spatial(const fv_image_type *type, int spatial[FV_MAX_DIMS]);

/* A box of an image. */
typedef struct fv_region {
    int     ndim;
    int64_t start[FV_MAX_DIMS];
    int64_t size[FV_MAX_DIMS];
} fv_region;

#endif
