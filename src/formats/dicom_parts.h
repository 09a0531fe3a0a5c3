/* A DICOM file or series opened for reading. Internal to formats/dicom*.c. */
#ifndef FV_DICOM_PARTS_H
#define FV_DICOM_PARTS_H

#include "formats/dicom_plugin.h"
#include "op/format.h"

extern const fv_format fv_format_dicom;

typedef struct fv_dicom_slice {
    char          *path;
    double         place; /* along the normal of the slices, or the number in the series */
    fv_dicom_about about;
} fv_dicom_slice;

typedef struct fv_dicom_reader {
    fv_reader              base;
    const fv_dicom_plugin *dicom;
    fv_dtype               stored;
    bool                   scaled; /* values become float32 by slope and intercept */
    fv_dicom_slice        *slices; /* one file of frames, or files of a series in order of their place */
    int64_t                nslices;
} fv_dicom_reader;

/* dicom_guard.c: the library in child processes, since damaged files make it crash. */
/* What files are; the first that cannot be read fails. */
fv_status fv__dicom_about_files(const fv_dicom_plugin *dicom, char *const *paths, int64_t count, fv_dicom_about *abouts,
                                fv_error *error);
fv_status fv__dicom_frame(const fv_dicom_plugin *dicom, const fv_dicom_slice *slice, int64_t index, void *to, size_t size,
                          fv_error *error);

void fv__dicom_add(fv_dicom_reader *r, const char *path, const fv_dicom_about *about);
/* All files of a folder that belong to a series, in order; uid NULL: the only one that there is. */
fv_status fv__dicom_find_series(fv_dicom_reader *r, const char *folder, const char *uid, fv_error *error);

#endif
