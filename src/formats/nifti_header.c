/* NIfTI headers. Both versions have the same fields at different places and in different widths, so one table of places
 * serves reading and writing. The definition is https://nifti.nimh.nih.gov/pub/dist/src/niftilib/nifti1.h (and nifti2.h).
 *
 * Axes: the file's dimensions 1 to 6 are x, y, z, t, c (NIfTI's "vector" dimension) and p; the first is contiguous, so the
 * shape is (p, c, t, z, y, x). RGB and RGBA voxels become a last axis c. */
#include "formats/nifti_header.h"
#include "op/format.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_DIMS = 7, RGB = 128, RGBA = 2304 };
static const char *const axis_names[] = { "x", "y", "z", "t", "c", "p" };

typedef struct {
    int size, magic, datatype, bitpix, dim, dim_width, pixdim, real_width, vox_offset, slope, inter, toffset;
    int units, units_width, description, qform_code, sform_code, code_width;
    int quatern; /* b c d, then the three offsets */
    int srow;    /* 3 rows of 4 */
} layout;

static const layout layouts[2] = {
    { .size = FV_NIFTI_1,
      .magic = 344,
      .datatype = 70,
      .bitpix = 72,
      .dim = 40,
      .dim_width = 2,
      .pixdim = 76,
      .real_width = 4,
      .vox_offset = 108,
      .slope = 112,
      .inter = 116,
      .toffset = 136,
      .units = 123,
      .units_width = 1,
      .description = 148,
      .qform_code = 252,
      .sform_code = 254,
      .code_width = 2,
      .quatern = 256,
      .srow = 280 },
    { .size = FV_NIFTI_2,
      .magic = 4,
      .datatype = 12,
      .bitpix = 14,
      .dim = 16,
      .dim_width = 8,
      .pixdim = 104,
      .real_width = 8,
      .vox_offset = 168,
      .slope = 176,
      .inter = 184,
      .toffset = 216,
      .units = 500,
      .units_width = 4,
      .description = 240,
      .qform_code = 344,
      .sform_code = 348,
      .code_width = 4,
      .quatern = 352,
      .srow = 400 },
};

static const struct {
    int      code;
    fv_dtype dtype;
} datatypes[] = {
    { 2, FV_UINT8 },     { 4, FV_INT16 },         { 8, FV_INT32 },    { 16, FV_FLOAT32 }, { 32, FV_COMPLEX64 },
    { 64, FV_FLOAT64 },  { 256, FV_INT8 },        { 512, FV_UINT16 }, { 768, FV_UINT32 }, { 1024, FV_INT64 },
    { 1280, FV_UINT64 }, { 1792, FV_COMPLEX128 }, { RGB, FV_UINT8 },  { RGBA, FV_UINT8 },
};

static const struct {
    int         code;
    const char *name;
    double      factor;
} space_units[] = {
    /* factor: in millimetres */
    { 1, "meter", 1e3 },      { 2, "millimeter", 1 },  { 3, "micrometer", 1e-3 }, { 0, "centimeter", 10 },
    { 0, "nanometer", 1e-6 }, { 0, "angstrom", 1e-7 }, { 0, "picometer", 1e-9 },
};
static const struct {
    int         code;
    const char *name;
} other_units[] = {
    { 8, "second" }, { 16, "millisecond" }, { 24, "microsecond" }, { 32, "hertz" }, { 40, "ppm" }, { 48, "radian/second" },
};

/* ---------------------------------------------------------------- fields */

typedef struct {
    uint8_t      *bytes;
    const layout *at;
    bool          swapped;
} fields;

static uint64_t get_bits(const fields *f, int offset, int width) {
    uint8_t part[8] = { 0 };
    for (int i = 0; i < width; i++) part[i] = f->bytes[offset + (f->swapped ? width - 1 - i : i)];
    uint64_t bits = 0; /* a native integer of that width, widened */
    for (int i = 0; i < width; i++) {
        int place = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? i : width - 1 - i;
        bits |= (uint64_t)part[i] << 8 * place;
    }
    return bits;
}

static int64_t get_integer(const fields *f, int offset, int width) {
    int unused = 64 - 8 * width;
    return (int64_t)(get_bits(f, offset, width) << unused) >> unused;
}

static double get_real(const fields *f, int offset) {
    uint64_t bits = get_bits(f, offset, f->at->real_width);
    double   real;
    float    single;
    uint32_t low = (uint32_t)bits;
    memcpy(&real, &bits, sizeof real);
    memcpy(&single, &low, sizeof single);
    return f->at->real_width == 8 ? real : (double)single;
}

static double get_nth_real(const fields *f, int offset, int n) { return get_real(f, offset + n * f->at->real_width); }

static void put_integer(fields *f, int offset, int width, int64_t value) {
    if (width == 1) f->bytes[offset] = (uint8_t)value;
    if (width == 2) memcpy(f->bytes + offset, &(int16_t){ (int16_t)value }, 2);
    if (width == 4) memcpy(f->bytes + offset, &(int32_t){ (int32_t)value }, 4);
    if (width == 8) memcpy(f->bytes + offset, &value, 8);
}

static void put_nth_real(fields *f, int offset, int n, double value) {
    float single = (float)value;
    offset += n * f->at->real_width;
    memcpy(f->bytes + offset, f->at->real_width == 8 ? (void *)&value : (void *)&single, (size_t)f->at->real_width);
}

/* ---------------------------------------------------------------- the voxel to world matrix */

typedef struct {
    double r[3][3];
} rotation;

/* Quaternion (b, c, d) with a >= 0 made from its length being 1. */
static rotation rotation_of(double b, double c, double d) {
    double a = 1 - (b * b + c * c + d * d);
    if (a < 1e-7) {
        double length = 1 / sqrt(b * b + c * c + d * d);
        b *= length;
        c *= length;
        d *= length;
        a = 0;
    } else
        a = sqrt(a);
    return (rotation){ { { a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c) },
                         { 2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b) },
                         { 2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c } } };
}

/* The inverse, for a proper rotation: from the largest of the four squares, so that nothing small is divided by. */
static void quaternion_of(const rotation *m, double q[3]) {
    double trace = m->r[0][0] + m->r[1][1] + m->r[2][2], w[4];
    if (trace > 0) {
        double s = 2 * sqrt(1 + trace);
        w[0] = s / 4;
        for (int i = 0; i < 3; i++) w[1 + i] = (m->r[(i + 2) % 3][(i + 1) % 3] - m->r[(i + 1) % 3][(i + 2) % 3]) / s;
    } else {
        int i = m->r[1][1] > m->r[0][0] ? 1 : 0;
        if (m->r[2][2] > m->r[i][i]) i = 2;
        int    j = (i + 1) % 3, k = (i + 2) % 3;
        double s = 2 * sqrt(FV_MAX(1 + m->r[i][i] - m->r[j][j] - m->r[k][k], 0));
        w[0] = (m->r[k][j] - m->r[j][k]) / s;
        w[1 + i] = s / 4;
        w[1 + j] = (m->r[j][i] + m->r[i][j]) / s;
        w[1 + k] = (m->r[k][i] + m->r[i][k]) / s;
    }
    for (int i = 0; i < 3; i++) q[i] = w[0] < 0 ? -w[1 + i] : w[1 + i];
}

static double determinant(const rotation *m) {
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        sum += m->r[0][i] * (m->r[1][j] * m->r[2][k] - m->r[1][k] * m->r[2][j]);
    }
    return sum;
}

static bool all_finite(const double *values, int n) {
    for (int i = 0; i < n; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

static double spacing_of(const fields *f, int dim) {
    double value = fabs(get_nth_real(f, f->at->pixdim, dim));
    return isfinite(value) && value > 0 ? value : 1;
}

/* sform before qform, as nibabel and FSL do. Neither: spacing alone says where voxels are. */
static void read_affine(const fields *f, fv_image_type *type) {
    double value[12];
    int    sform = (int)get_integer(f, f->at->sform_code, f->at->code_width),
        qform = (int)get_integer(f, f->at->qform_code, f->at->code_width);
    for (int i = 0; i < 12; i++) value[i] = get_nth_real(f, f->at->srow, i);
    if (sform > 0 && all_finite(value, 12)) {
        type->has_affine = true;
        type->affine_code = sform;
        memcpy(type->affine, value, sizeof type->affine);
        return;
    }
    for (int i = 0; i < 6; i++) value[i] = get_nth_real(f, f->at->quatern, i);
    if (qform <= 0 || !all_finite(value, 6) || fabs(value[0]) > 2 || fabs(value[1]) > 2 || fabs(value[2]) > 2) return;
    rotation m = rotation_of(value[0], value[1], value[2]);
    double   handedness = get_real(f, f->at->pixdim) < 0 ? -1 : 1;
    for (int row = 0; row < 3; row++) {
        for (int column = 0; column < 3; column++)
            type->affine[4 * row + column] = m.r[row][column] * spacing_of(f, 1 + column) * (column == 2 ? handedness : 1);
        type->affine[4 * row + 3] = value[3 + row];
    }
    type->has_affine = true;
    type->affine_code = qform;
}

/* A matrix that only scales and shifts also tells the origin of each axis. */
static void origin_from_affine(fv_image_type *type) {
    const double *a = type->affine;
    bool plain = type->has_affine && a[0] > 0 && a[5] > 0 && a[10] > 0 && !a[1] && !a[2] && !a[4] && !a[6] && !a[8] && !a[9];
    for (int d = 0; plain && d < type->ndim; d++)
        for (int i = 0; i < 3; i++)
            if (!strcmp(type->axis[d], axis_names[i])) type->origin[d] = a[4 * i + 3];
}

/* The quaternion needs right angles and the spacing of pixdim; other matrices are written as sform alone. */
static void write_affine(fields *f, const double affine[12], const double spacing[3], int code) {
    rotation m;
    bool     rigid = true;
    for (int i = 0; i < 12; i++) put_nth_real(f, f->at->srow, i, affine[i]);
    put_integer(f, f->at->sform_code, f->at->code_width, code);
    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 3; column++) m.r[row][column] = affine[4 * row + column] / spacing[column];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j <= i; j++) {
            double product = m.r[0][i] * m.r[0][j] + m.r[1][i] * m.r[1][j] + m.r[2][i] * m.r[2][j];
            if (!(fabs(product - (i == j)) < 1e-4)) rigid = false;
        }
    double handedness = determinant(&m) < 0 ? -1 : 1, q[3];
    put_nth_real(f, f->at->pixdim, 0, rigid ? handedness : 1);
    if (!rigid) return;
    for (int row = 0; row < 3; row++) m.r[row][2] *= handedness;
    quaternion_of(&m, q);
    for (int i = 0; i < 3; i++) {
        put_nth_real(f, f->at->quatern, i, q[i]);
        put_nth_real(f, f->at->quatern, 3 + i, affine[4 * i + 3]);
    }
    put_integer(f, f->at->qform_code, f->at->code_width, code);
}

/* ---------------------------------------------------------------- reading */

size_t fv__nifti_size(const uint8_t start[4]) {
    fields f = { .bytes = (uint8_t *)start };
    bool   second = get_integer(&f, 0, 4) == FV_NIFTI_2;
    f.swapped = true;
    return second || get_integer(&f, 0, 4) == FV_NIFTI_2 ? FV_NIFTI_2 : FV_NIFTI_1;
}

static fv_status recognise(fields *f, size_t size, const char *path, fv_nifti_header *h, fv_error *error) {
    static const struct {
        const char *magic;
        int         version;
        bool        pair;
    } kinds[] = {
        { "n+1", 1, false },
        { "ni1", 1, true },
        { "n+2", 2, false },
        { "ni2", 2, true },
    };
    for (int i = 0; i < FV_COUNT(kinds); i++) {
        f->at = &layouts[kinds[i].version - 1];
        if (size < (size_t)f->at->size || memcmp(f->bytes + f->at->magic, kinds[i].magic, 4)) continue;
        h->version = kinds[i].version;
        h->pair = kinds[i].pair;
        for (int swapped = 0; swapped < 2; swapped++) {
            f->swapped = swapped;
            if (get_integer(f, 0, 4) == f->at->size) return FV_OK;
        }
        return fv_fail(error, FV_ERROR_INPUT, "%s: sizeof_hdr of the NIfTI header is %lld; allowed is %d", path,
                       (long long)get_integer(f, 0, 4), f->at->size);
    }
    return fv_fail(error, FV_ERROR_INPUT,
                   "%s is not NIfTI: the header's magic is none of n+1, ni1, n+2, ni2 (Analyze 7.5 is not read)", path);
}

static fv_status read_shape(const fields *f, int channels, const char *path, fv_image_type *type, fv_error *error) {
    int64_t dim[1 + MOST_DIMS];
    for (int i = 0; i <= MOST_DIMS; i++) dim[i] = get_integer(f, f->at->dim + i * f->at->dim_width, f->at->dim_width);
    if (dim[0] < 1 || dim[0] > MOST_DIMS)
        return fv_fail(error, FV_ERROR_INPUT, "%s: dim[0] of the NIfTI header is %lld; allowed are 1 to 7", path,
                       (long long)dim[0]);
    int n = (int)dim[0], most = FV_MAX_DIMS - (channels > 0);
    for (int i = 1; i <= n; i++)
        if (dim[i] < 1)
            return fv_fail(error, FV_ERROR_INPUT, "%s: dim[%d] of the NIfTI header is %lld; it must be at least 1", path, i,
                           (long long)dim[i]);
    while (n > most && dim[n] == 1) n--;
    if (n > most) return fv_fail(error, FV_ERROR_INPUT, "%s has %d axes; at most %d can be read", path, n, most);
    int64_t shape[FV_MAX_DIMS];
    for (int d = 0; d < n; d++) shape[d] = dim[n - d];
    if (channels) shape[n] = channels;
    fv_image_type_init(type, FV_UINT8, n + (channels > 0), shape);
    for (int d = 0; d < n; d++) {
        snprintf(type->axis[d], sizeof type->axis[d], "%s", axis_names[n - 1 - d]);
        type->spacing[d] = spacing_of(f, n - d);
    }
    if (channels) snprintf(type->axis[n], sizeof type->axis[n], "c");
    return FV_OK;
}

static void read_units(const fields *f, fv_image_type *type) {
    int units = (int)get_integer(f, f->at->units, f->at->units_width);
    for (int d = 0; d < type->ndim; d++) {
        if (strchr("xyz", type->axis[d][0]))
            for (int i = 0; i < FV_COUNT(space_units); i++)
                if (space_units[i].code && space_units[i].code == (units & 7))
                    snprintf(type->unit[d], sizeof type->unit[d], "%s", space_units[i].name);
        if (type->axis[d][0] != 't') continue;
        for (int i = 0; i < FV_COUNT(other_units); i++)
            if (other_units[i].code == (units & 56)) snprintf(type->unit[d], sizeof type->unit[d], "%s", other_units[i].name);
        double offset = get_real(f, f->at->toffset);
        type->origin[d] = isfinite(offset) ? offset : 0;
    }
}

/* Integers that 24 bits of a float still tell apart become float32, others float64. */
static fv_dtype scaled_dtype(fv_dtype stored, double slope, double inter) {
    if (!fv_dtype_is_integer(stored)) return stored;
    double bits = 8.0 * (double)fv_dtype_size(stored), most = ldexp(1, (int)bits);
    bool   small = most + fabs(inter / slope) <= 0x1p24 && most * fabs(slope) + fabs(inter) < FLT_MAX;
    return small ? FV_FLOAT32 : FV_FLOAT64;
}

static fv_status read_scale(const fields *f, bool colour, const char *path, fv_nifti_header *h, fv_error *error) {
    h->slope = get_real(f, f->at->slope);
    h->inter = get_real(f, f->at->inter);
    h->scaled = !colour && isfinite(h->slope) && h->slope != 0 && !(h->slope == 1 && h->inter == 0);
    if (h->scaled && !isfinite(h->inter))
        return fv_fail(error, FV_ERROR_INPUT, "%s: scl_inter of the NIfTI header is not a finite number", path);
    h->type.dtype = h->scaled ? scaled_dtype(h->stored, h->slope, h->inter) : h->stored;
    return FV_OK;
}

static fv_status read_offset(const fields *f, const char *path, fv_nifti_header *h, fv_error *error) {
    double real = h->version == 1 ? get_real(f, f->at->vox_offset) : 0;
    if (!(real >= -2147483648.0 && real < 2147483648.0))
        return fv_fail(error, FV_ERROR_INPUT, "%s: vox_offset of the NIfTI header is %g", path, real);
    int64_t offset = h->version == 1 ? (int64_t)real : get_integer(f, f->at->vox_offset, 8),
            least = h->pair ? 0 : f->at->size + FV_NIFTI_EXTENDER;
    if (offset < 0) return fv_fail(error, FV_ERROR_INPUT, "%s: vox_offset of the NIfTI header is %lld", path, (long long)offset);
    h->data_offset = FV_MAX(offset, least); /* some writers leave 0 */
    return FV_OK;
}

fv_status fv__nifti_parse(const uint8_t *bytes, size_t size, const char *path, fv_nifti_header *header, fv_error *error) {
    fields f = { .bytes = (uint8_t *)bytes };
    *header = (fv_nifti_header){ 0 };
    FV_TRY(recognise(&f, size, path, header, error));
    header->swapped = f.swapped;
    int  code = (int)get_integer(&f, f.at->datatype, 2), channels = code == RGB ? 3 : code == RGBA ? 4 : 0;
    bool known = false;
    for (int i = 0; i < FV_COUNT(datatypes) && !known; i++) {
        known = datatypes[i].code == code;
        header->stored = datatypes[i].dtype;
    }
    if (!known)
        return fv_fail(error, FV_ERROR_INPUT, "%s: datatype %d of the NIfTI header cannot be read (no bits, no 128-bit floats)",
                       path, code);
    FV_TRY(read_shape(&f, channels, path, &header->type, error));
    FV_TRY(read_scale(&f, channels > 0, path, header, error));
    FV_TRY(read_offset(&f, path, header, error));
    if (fv_image_type_bytes(&header->type) < 0)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the dimensions of the NIfTI header overflow", path);
    read_units(&f, &header->type);
    read_affine(&f, &header->type);
    origin_from_affine(&header->type);
    for (int i = 0; i < 80; i++) {
        char c = (char)bytes[f.at->description + i];
        if (!c) break;
        header->description[i] = c >= ' ' && c <= '~' ? c : '?';
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- writing */

static int colour_code(const fv_image_type *type) {
    int64_t last = type->shape[type->ndim - 1];
    bool    colour = type->ndim > 1 && !strcmp(type->axis[type->ndim - 1], "c") && type->dtype == FV_UINT8;
    return !colour ? 0 : last == 3 ? RGB : last == 4 ? RGBA : 0;
}

static int slot_of(const char *axis) {
    for (int i = 0; i < FV_COUNT(axis_names); i++)
        if (!strcmp(axis, axis_names[i])) return i;
    return -1;
}

/* Dimension of the file (0 based) for each of n axes: by name; axes with other names (angle, u, v) by place alone. */
static fv_status choose_slots(const fv_image_type *type, int n, const char *path, int slot[FV_MAX_DIMS], fv_error *error) {
    bool known = true, ordered = true;
    for (int d = 0; d < n; d++) {
        slot[d] = slot_of(type->axis[d]);
        known = known && slot[d] >= 0;
        ordered = ordered && (d == 0 || slot[d] < slot[d - 1]);
    }
    if (known && !ordered) {
        char names[8 * FV_MAX_DIMS] = "";
        for (int d = 0; d < type->ndim; d++) snprintf(names + strlen(names), 9, "%s%s", d ? " " : "", type->axis[d]);
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s: NIfTI keeps axes in the order c t z y x, or colour of uint8 with 3 or 4 channels as last axis c; "
                       "this image has %s of %s",
                       path, names, fv_dtype_name(type->dtype));
    }
    for (int d = 0; d < n && !known; d++) slot[d] = n - 1 - d;
    return FV_OK;
}

/* One unit for the spatial axes: that of the last one which has any. *factor brings a length of axis d to it. */
static int space_unit(const fv_image_type *type, const int *slot, int n, double factor[FV_MAX_DIMS], double *world) {
    int chosen = -1;
    for (int d = 0; d < n; d++)
        for (int i = 0; i < FV_COUNT(space_units); i++)
            if (slot[d] < 3 && !strcmp(type->unit[d], space_units[i].name)) chosen = i;
    *world = 1;
    for (int d = 0; d < n; d++) factor[d] = 1;
    if (chosen < 0) return 0;
    int target = chosen;
    if (!space_units[target].code) target = space_units[target].factor > 1 ? 1 : 2; /* cm to mm, nm to um */
    *world = space_units[chosen].factor / space_units[target].factor;
    for (int d = 0; d < n; d++)
        for (int i = 0; i < FV_COUNT(space_units); i++)
            if (slot[d] < 3 && !strcmp(type->unit[d], space_units[i].name))
                factor[d] = space_units[i].factor / space_units[target].factor;
    return space_units[target].code;
}

static void write_geometry(fields *f, const fv_image_type *type, const int *slot, int n) {
    double factor[FV_MAX_DIMS], world, spacing[FV_MAX_DIMS] = { 1, 1, 1, 1, 1, 1 }, affine[12] = { 0 };
    int    units = space_unit(type, slot, n, factor, &world), used = 0;
    bool   placed = type->has_affine;
    for (int d = 0; d < n; d++) {
        spacing[slot[d]] = type->spacing[d] * factor[d];
        used |= 1 << slot[d];
        if (slot[d] < 3 && !type->has_affine) {
            affine[4 * slot[d] + 3] = type->origin[d] * factor[d];
            placed = placed || type->origin[d] != 0;
        }
        if (slot[d] != 3) continue;
        put_nth_real(f, f->at->toffset, 0, type->origin[d]);
        for (int i = 0; i < FV_COUNT(other_units); i++)
            if (!strcmp(type->unit[d], other_units[i].name)) units |= other_units[i].code;
    }
    for (int i = 0; i < 3 && type->has_affine; i++) { /* a plane has a thickness too */
        const double *m = type->affine + i;
        if (!(used >> i & 1)) spacing[i] = sqrt(m[0] * m[0] + m[4] * m[4] + m[8] * m[8]) * world;
        if (!(spacing[i] > 0)) spacing[i] = 1;
    }
    put_nth_real(f, f->at->pixdim, 0, 1);
    for (int i = 0; i < MOST_DIMS; i++) put_nth_real(f, f->at->pixdim, 1 + i, i < FV_MAX_DIMS ? spacing[i] : 1);
    put_integer(f, f->at->units, f->at->units_width, units);
    for (int i = 0; i < 3; i++) affine[5 * i] = spacing[i];
    for (int i = 0; i < 12 && type->has_affine; i++) affine[i] = world == 1 ? type->affine[i] : type->affine[i] * world;
    /* Without a matrix the codes stay 0; an origin alone makes one that only scales and shifts. */
    if (placed) write_affine(f, affine, spacing, type->has_affine && type->affine_code > 0 ? type->affine_code : 2);
}

static void write_fixed(fields *f, int version, int datatype, int bits) {
    static const char magic[2][8] = { { 'n', '+', '1', 0 }, { 'n', '+', '2', 0, '\r', '\n', '\032', '\n' } };
    put_integer(f, 0, 4, f->at->size);
    memcpy(f->bytes + f->at->magic, magic[version - 1], version == 1 ? 4 : 8);
    put_integer(f, f->at->datatype, 2, datatype);
    put_integer(f, f->at->bitpix, 2, bits);
    if (version == 1) {
        put_nth_real(f, f->at->vox_offset, 0, f->at->size + FV_NIFTI_EXTENDER);
        f->bytes[38] = 'r'; /* "regular", which Analyze readers ask for */
    } else
        put_integer(f, f->at->vox_offset, 8, f->at->size + FV_NIFTI_EXTENDER);
    put_nth_real(f, f->at->slope, 0, 1);
    snprintf((char *)f->bytes + f->at->description, 80, "Fovea");
}

fv_status fv__nifti_compose(const fv_image_type *type, const char *path, fv_bytes *out, fv_error *error) {
    FV_TRY(fv__writer_check(path, type, error));
    int     datatype = colour_code(type), n = type->ndim - (datatype != 0), slot[FV_MAX_DIMS];
    int     bits = 8 * (int)fv_dtype_size(type->dtype) * (datatype == RGB ? 3 : datatype == RGBA ? 4 : 1);
    int64_t longest = 0;
    FV_TRY(choose_slots(type, n, path, slot, error));
    for (int i = 0; i < FV_COUNT(datatypes) && !datatype; i++)
        if (datatypes[i].dtype == (type->dtype == FV_BOOL ? FV_UINT8 : type->dtype)) datatype = datatypes[i].code;
    for (int d = 0; d < n; d++) longest = FV_MAX(longest, type->shape[d]);
    int    version = longest > INT16_MAX ? 2 : 1;
    fields f = { .at = &layouts[version - 1] };
    f.bytes = fv__bytes_append(out, NULL, (size_t)f.at->size + FV_NIFTI_EXTENDER);
    memset(f.bytes, 0, (size_t)f.at->size + FV_NIFTI_EXTENDER);
    write_fixed(&f, version, datatype, bits);
    put_integer(&f, f.at->dim, f.at->dim_width, slot[0] + 1);
    for (int i = 1; i <= MOST_DIMS; i++) put_integer(&f, f.at->dim + i * f.at->dim_width, f.at->dim_width, 1);
    for (int d = 0; d < n; d++) put_integer(&f, f.at->dim + (1 + slot[d]) * f.at->dim_width, f.at->dim_width, type->shape[d]);
    write_geometry(&f, type, slot, n);
    return FV_OK;
}
