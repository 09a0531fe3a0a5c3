/* An image as rows of a Parquet file: what the reader and the writer have in common. Internal to formats/parquet_image*.c.
 *
 * A row is a slice: its number, its angle in degrees where the image is a scan, and its voxels as a blob, last axis fastest,
 * little-endian. Slices are planes of the last two axes, of colour images of the last three; they are numbered over all axes
 * before, the last of these fastest. The entry fovea.image of the file's metadata is a JSON object with shape, dtype, axes,
 * spacing, origin, units and, where they are known, affine and angles.
 */
#ifndef FV_PARQUET_IMAGE_H
#define FV_PARQUET_IMAGE_H

#include "base/duckdb.h"
#include "op/format.h"

#define FV_PARQUET_IMAGE "fovea.image"
/* Bytes of voxels that the library holds at a time, unless one slice is larger. */
#define FV_PARQUET_GROUP ((int64_t)16 << 20)
#define FV_PARQUET_MOST_SLICE ((int64_t)1 << 30)

extern const fv_format fv_format_parquet;

typedef struct fv_slices {
    int     leading;      /* axes that are counted by the slice's number; the rest is the slice */
    int64_t count, bytes; /* of slices, and of one of them */
} fv_slices;
/* Fails for images that cannot be such rows. */
fv_status fv__slices_of(const fv_image_type *type, const char *path, fv_slices *slices, fv_error *error);

/* The JSON text of a type and the angles of its planes, or NULL. The caller frees it with cJSON_free, and the angles. */
char     *fv__parquet_image_text(const fv_image_type *type, const double *angles);
fv_status fv__parquet_image_parse(const char *text, const char *path, fv_image_type *type, double **angles, fv_error *error);

fv_status fv__parquet_image_layout(const fv_image_file *file, fv_file_layout *layout, fv_error *error);
fv_status fv__parquet_image_create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary,
                                   fv_writer **writer, fv_error *error);
fv_status fv__parquet_image_encode(fv_writer *writer, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error);
fv_status fv__parquet_image_assemble(fv_writer *writer, fv_pieces *pieces, fv_error *error);

#endif
