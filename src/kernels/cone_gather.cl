/* Back-projection along the rays of a cone on an OpenCL device: the same places and weights as kernels/cone_beam.c and
 * kernels/lines.c.
 *
 * Filtered projections lie column by column, [angles][columns][rows]; results in bundles of slices, [bundles][height][width][16].
 * On a processor (TILE 16) a work-item makes 16 x 16 columns of voxels of 32 slices: what two columns of the detector hold is
 * blended once for all slices. On a card (TILE 1) it makes one voxel.
 */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

typedef struct { /* fv_cone_view */
    double source, magnify, center, middle_row, middle;
    double across, down; /* of the first voxel of the results from the axis */
    double rise;         /* 1; 0: a single slice that looks at a single row */
} view;

#if TILE == 1

/* Adds what voxels see at `nangles` angles; fresh: to nothing. Detector rows first_row ... are held. */
kernel void gather(global const view *g, global const double *cosine, global const double *sine, int first_angle,
                   int nangles, global const float *filtered, int columns, int rows, int first_row, int z0, int fresh, int depth,
                   int height, int width, global float *to) {
    int    z = get_global_id(0), x = get_global_id(1), y = get_global_id(2);
    double across = g->across + x, down = g->down + y;
    float  sum = 0;
    cosine += first_angle;
    sine += first_angle;
    for (int a = 0; a < nangles; a++) {
        double inverse = 1 / (g->source + (across * sine[a] + down * cosine[a])), scale = inverse * g->magnify;
        double column = g->center + (across * cosine[a] - down * sine[a]) * scale, whole = floor(column);
        if (!(whole >= 0 && whole + 1 < columns)) continue;
        float f = (float)(column - whole), weight = (float)(g->source * inverse * (g->source * inverse));
        float v = fma((float)(z0 + z), (float)(scale * g->rise), (float)(g->middle_row - g->middle * scale)), below = floor(v);
        global const float *low = filtered + ((long)a * columns + (int)whole) * rows + (int)below - first_row, *high = low + rows;
        float near = fma(weight * f, high[0], weight * (1 - f) * low[0]);
        float far = fma(weight * f, high[1], weight * (1 - f) * low[1]);
        sum += fma(v - below, far - near, near);
    }
    long at = (((long)(z / 16) * height + y) * width + x) * 16 + z % 16;
    to[at] = fresh ? sum : to[at] + sum;
}

#else

enum { ANGLES = 16, DEPTH = 32, STEEPEST = 2, ROOM = STEEPEST * DEPTH + 32 };

typedef struct { /* where a column of voxels is seen at each angle of a block */
    int   count, offset[ANGLES];
    float steepest;
    float low[ANGLES], high[ANGLES], base[ANGLES], slope[ANGLES];
} sight;

static void see(global const view *g, global const double *cosine, global const double *sine, int nangles, double across,
                double down, int columns, int rows, sight *s) {
    double weight[ANGLES], column[ANGLES], scale[ANGLES];
    for (int k = 0; k < ANGLES; k++) { /* the angles behind the last one are there too */
        double inverse = 1 / (g->source + (across * sine[k] + down * cosine[k]));
        scale[k] = inverse * g->magnify;
        column[k] = g->center + (across * cosine[k] - down * sine[k]) * scale[k];
        weight[k] = g->source * inverse * (g->source * inverse);
    }
    s->count = 0;
    s->steepest = 0;
    for (int k = 0; k < nangles; k++) {
        int   whole = column[k] < 0 ? -1 : (int)column[k], i = s->count;
        float f = (float)(column[k] - whole), w = (float)weight[k];
        if (!(whole >= 0 && whole + 1 < columns)) continue;
        s->offset[i] = (k * columns + whole) * rows;
        s->low[i] = w * (1 - f);
        s->high[i] = w * f;
        s->base[i] = (float)(g->middle_row - g->middle * scale[k]);
        s->slope[i] = (float)(scale[k] * g->rise);
        if (s->slope[i] > s->steepest) s->steepest = s->slope[i];
        s->count++;
    }
}

typedef float8 unaligned __attribute__((aligned(4)));
#define LOAD(p) (*(const unaligned *)(p))
#define STEPS (float8)(0, 1, 2, 3, 4, 5, 6, 7)
#define INLINE static inline __attribute__((always_inline))

/* floor, which PoCL's library makes of many steps; and values r[0 ... 7] of those at p: r starts with 0, grows, and stays below
 * 16 (near: below 8). */
#ifdef __AVX2__
typedef float eight __attribute__((vector_size(32)));
typedef int   eight_ints __attribute__((vector_size(32)));
#define FLOOR __builtin_floorf
#define FLOOR8(v) __builtin_astype(__builtin_ia32_roundps256(__builtin_astype(v, eight), 1), float8)
INLINE float8 shuffled(float8 v, int8 r) {
    return __builtin_astype(__builtin_ia32_permvarsf256(__builtin_astype(v, eight), __builtin_astype(r, eight_ints)), float8);
}
INLINE float8 pick(const float *p, int8 r, int near) {
    float8 low = shuffled(LOAD(p), r);
    return near ? low : r > 7 ? shuffled(LOAD(p + 8), r) : low;
}
#else
#define FLOOR floor
#define FLOOR8 floor
INLINE float8 pick(const float *p, int8 r, int near) {
    return (float8)(p[r.s0], p[r.s1], p[r.s2], p[r.s3], p[r.s4], p[r.s5], p[r.s6], p[r.s7]);
}
#endif

/* What the voxels see of two columns of the detector, blended; first[k]: the row that lies first. All angles before any voxel
 * looks: what was stored a moment ago is slow to load in other pieces. */
INLINE void blend_columns(const sight *s, global const float *filtered, int rows, int first_row, int z, int vectors, int *first,
                          float (*blend)[ROOM]) {
    for (int k = 0; k < s->count; k++) {
        float base = s->base[k], slope = s->slope[k], a = s->low[k], b = s->high[k];
        first[k] = (int)FLOOR(fma((float)z, slope, base));
        int                 last = (int)FLOOR(fma((float)(z + 8 * vectors - 1), slope, base)) + 1 - first[k];
        global const float *low = filtered + s->offset[k] + (first[k] - first_row);
        for (int i = 0; i <= last; i += 8)
            *(unaligned *)(blend[k] + i) =
                fma((float8)b, *(global const unaligned *)(low + rows + i), a * *(global const unaligned *)(low + i));
    }
}

INLINE void look(const float *blend, int first, float base, float slope, int z, int vectors, int near, float8 *sum) {
#pragma unroll
    for (int i = 0; i < vectors; i++) {
        float8       v = fma((float)(z + 8 * i) + STEPS, (float8)slope, (float8)base), whole = FLOOR8(v);
        int8         at = __builtin_convertvector(whole, int8);
        const float *p = blend + (at.s0 - first);
        float8       low = pick(p, at - at.s0, near), high = pick(p + 1, at - at.s0, near);
        sum[i] += fma(v - whole, high - low, low);
    }
}

static void look_steep(global const float *column, int rows, int first_row, float a, float b, float base, float slope, int z,
                       int vectors, float8 *sum) {
    for (int i = 0; i < 8 * vectors; i++) {
        float               v = fma((float)(z + i), slope, base), whole = FLOOR(v);
        global const float *p = column + ((int)whole - first_row);
        float               low = fma(b, p[rows], a * p[0]), high = fma(b, p[rows + 1], a * p[1]);
        ((float *)sum)[i] += fma(v - whole, high - low, low);
    }
}

INLINE void add_column(const sight *s, global const float *filtered, int rows, int first_row, int z, int vectors, int fresh,
                       long bundle, global float *to) {
    float  blend[ANGLES][ROOM];
    int    first[ANGLES];
    float8 sum[DEPTH / 8];
#pragma unroll
    for (int i = 0; i < vectors; i++) sum[i] = fresh ? (float8)0 : vload8(i % 2, to + i / 2 * bundle);
    if (s->steepest < STEEPEST) {
        blend_columns(s, filtered, rows, first_row, z, vectors, first, blend);
        for (int k = 0; k < s->count; k++)
            if (s->slope[k] < 0.998f) look(blend[k], first[k], s->base[k], s->slope[k], z, vectors, 1, sum);
            else look(blend[k], first[k], s->base[k], s->slope[k], z, vectors, 0, sum);
    } else
        for (int k = 0; k < s->count; k++)
            look_steep(filtered + s->offset[k], rows, first_row, s->low[k], s->high[k], s->base[k], s->slope[k], z, vectors, sum);
#pragma unroll
    for (int i = 0; i < vectors; i++) vstore8(sum[i], i % 2, to + i / 2 * bundle);
}

/* A square of columns of voxels, a few angles after the other: neighbours look at the same few columns of the detector. */
kernel void gather(global const view *g, global const double *cosine, global const double *sine, int first_angle,
                   int nangles, global const float *filtered, int columns, int rows, int first_row, int z0, int fresh, int depth,
                   int height, int width, global float *to) {
    int  z = DEPTH * get_global_id(2), x0 = TILE * get_global_id(0), y0 = TILE * get_global_id(1);
    long bundle = (long)height * width * 16;
    cosine += first_angle;
    sine += first_angle;
    for (int a = 0; a < nangles; a += ANGLES)
        for (int y = y0; y < min(y0 + TILE, height); y++)
            for (int x = x0; x < min(x0 + TILE, width); x++) {
                sight               s;
                global float       *at = to + z / 16 * bundle + ((long)y * width + x) * 16;
                global const float *from = filtered + (long)a * columns * rows;
                see(g, cosine + a, sine + a, min(ANGLES, nangles - a), g->across + x, g->down + y, columns, rows, &s);
                if (depth - z > 16) add_column(&s, from, rows, first_row, z0 + z, 4, fresh && !a, bundle, at);
                else add_column(&s, from, rows, first_row, z0 + z, 2, fresh && !a, bundle, at);
            }
}

#endif
