/* What measure knows about one label while it counts: voxels, sums of coordinates, bounding box and moments of an intensity.
 * All of it is exact, so objects of one label merge in any order to the same bits.
 *
 * Coordinates count from an origin that both the writer and the reader of a record know (a chunk's start), which keeps records
 * small. An object is as large as its plan says; it holds no pointers.
 *
 * Record: varints of the label's distance from the one before, the voxels, and per axis the lowest coordinate, the extent less
 * one and the sum of coordinates above the lowest; then the intensity. Narrow integers: varints of minimum, range, sum above the
 * minimum, squares. Others: a byte, and either the values themselves (0) or minimum, maximum and both sums (1).
 */
#ifndef FV_OBJECT_H
#define FV_OBJECT_H

#include "base/exact_sum.h"
#include "op/op.h"

typedef enum fv__intensity { FV__NO_INTENSITY, FV__NARROW, FV__WIDE, FV__FLOAT32, FV__FLOAT64 } fv__intensity;

typedef struct fv__object {
    int64_t           label, voxels;
    int64_t           sum[FV_MAX_DIMS], low[FV_MAX_DIMS], high[FV_MAX_DIMS]; /* coordinates; high inclusive */
    int64_t           least, most;   /* integer intensity; unsigned 64-bit values with the top bit turned */
    double            lowest, highest; /* floating-point intensity */
    unsigned __int128 squares;       /* narrow */
    __int128          total;         /* narrow */
    int64_t           waiting;       /* values not yet in the sums */
} fv__object;

/* Layout of objects for given images. */
typedef struct fv__object_plan {
    int           ndim;
    fv_dtype      dtype; /* of the intensity */
    fv__intensity kind;
    int64_t       values;      /* most that can wait */
    size_t        value_bytes; /* of one waiting value */
    size_t        values_at, sum_at, squares_at, size;
} fv__object_plan;

#define fv__object_planned FV_ISA_NAME(fv__object_planned)
#define fv__object_start FV_ISA_NAME(fv__object_start)
#define fv__object_add FV_ISA_NAME(fv__object_add)
#define fv__object_settle FV_ISA_NAME(fv__object_settle)
#define fv__object_most_bytes FV_ISA_NAME(fv__object_most_bytes)
#define fv__object_write FV_ISA_NAME(fv__object_write)
#define fv__object_read FV_ISA_NAME(fv__object_read)
#define fv__object_moments FV_ISA_NAME(fv__object_moments)

fv__object_plan fv__object_planned(const fv_image_type *labels, const fv_type *intensity);
void fv__object_start(const fv__object_plan *plan, fv__object *object, int64_t label);
/* n voxels in a row along the last axis from position (relative to the origin) on; values: their intensities or NULL. */
void fv__object_add(const fv__object_plan *plan, fv__object *object, const int64_t *position, int64_t n, const void *values);
/* Brings waiting values into the sums. */
void fv__object_settle(const fv__object_plan *plan, fv__object *object);

/* Most bytes of a record with this many voxels (1, 2, or 0 for any number) in a box of this size. */
int64_t fv__object_most_bytes(const fv__object_plan *plan, const int64_t *size, int64_t voxels);
/* Appends the record at `to`, returns its end. */
uint8_t *fv__object_write(const fv__object_plan *plan, fv__object *object, int64_t label_before, uint8_t *to);
/* Adds the record at `from` to an object whose coordinates count from 0, while the record's count from origin. Returns the
 * record's end. label_before is brought up to date; with object NULL that is all, and the return value is NULL. */
const uint8_t *fv__object_read(const fv__object_plan *plan, const uint8_t *from, const int64_t *origin, int64_t *label,
                               fv__object *object);
/* Mean, minimum, maximum, standard deviation as cells. */
void fv__object_moments(const fv__object_plan *plan, fv__object *object, fv_cell cells[4]);

/* Minimum and maximum of this kind of intensity are integers. */
static inline bool fv__object_integral(const fv__object_plan *plan) {
    return plan->kind == FV__NARROW || plan->dtype == FV_INT64;
}

#endif
