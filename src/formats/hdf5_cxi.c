/* CXI files as they are written (https://www.cxidb.org/cxi.html, version 1.6): frames as those of a detector, any other image as
 * a result. Lengths are in metres. */
#include "formats/hdf5_parts.h"
#include <strings.h>

#define DETECTOR "/entry_1/instrument_1/detector_1/"
#define IMAGE "/entry_1/image_1/"
static const char frames[] = DETECTOR "data", image[] = IMAGE "data";

const char *fv__hdf5_dataset(const char *path, const fv_image_type *type) {
    size_t length = strlen(path);
    if (length < 4 || strcasecmp(path + length - 4, ".cxi")) return "/data";
    return type->ndim == 3 && !strcmp(type->axis[0], "frame") ? frames : image;
}

/* Metres in the unit of an axis; 0: it has none that is a length. */
static double metres(const char *unit) {
    static const struct {
        const char *name;
        double      size;
    } lengths[] = {
        { "meter", 1 }, { "millimeter", 1e-3 }, { "micrometer", 1e-6 }, { "nanometer", 1e-9 }, { "angstrom", 1e-10 }
    };
    for (int i = 0; i < FV_COUNT(lengths); i++)
        if (!strcmp(unit, lengths[i].name)) return lengths[i].size;
    return 0;
}

static bool write_detector(const fv_hdf5_plugin *h5, void *file, const fv_image_type *type, char *message) {
    static const char *const names[] = { DETECTOR "y_pixel_size", DETECTOR "x_pixel_size" };
    for (int d = 1; d < 3; d++) {
        double size = metres(type->unit[d]) * type->spacing[d];
        if (size > 0 && !h5->write_number(file, names[d - 1], size, false, message)) return false;
    }
    return true;
}

/* Whole lengths of a result along x, y and z. */
static bool write_image(const fv_hdf5_plugin *h5, void *file, const fv_image_type *type, char *message) {
    double size[FV_MAX_DIMS];
    bool   known = true;
    for (int d = 0; d < type->ndim; d++) {
        int axis = type->ndim - 1 - d;
        size[d] = metres(type->unit[axis]) * type->spacing[axis] * (double)type->shape[axis];
        known = known && size[d] > 0;
    }
    return h5->write_text(file, IMAGE "data_space", "real", message) &&
           h5->write_number(file, IMAGE "is_fft_shifted", 0, true, message) &&
           h5->write_number(file, IMAGE "dimensionality", (double)type->ndim, true, message) &&
           (!known || h5->write_numbers(file, IMAGE "image_size", size, type->ndim, message));
}

bool fv__hdf5_write_cxi(const fv_hdf5_plugin *h5, void *file, const char *dataset, const fv_image_type *type, char *message) {
    if (strcmp(dataset, frames) && strcmp(dataset, image)) return true;
    return h5->write_number(file, "/cxi_version", 160, true, message) &&
           h5->link(file, dataset, "/entry_1/data_1/data", message) &&
           (strcmp(dataset, frames) ? write_image : write_detector)(h5, file, type, message);
}
