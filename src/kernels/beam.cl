/* Parallel rays through a bundle of 16 slices on an OpenCL device: the same projections and adjoint as kernels/beam.c, which says
 * how bundles lie in memory.
 *
 * On a processor a work-item makes 16 neighbours: places and weights are computed for all at once into a private table, then two
 * results are summed at a time. On a card (TILE 1) it makes one.
 */
#define PAD 2
#if TILE == 16
#define BLOCK 64
#define PAIR 2
typedef long16  longs;
typedef int16   ints;
typedef float16 floats;
#define STEPS (longs)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define TO_INTS convert_int16
#define TO_FLOATS convert_float16
#else
#define BLOCK 1
#define PAIR 1
typedef long  longs;
typedef int   ints;
typedef float floats;
#define STEPS 0L
#define TO_INTS convert_int
#define TO_FLOATS convert_float
#endif

typedef struct { /* fv_beam_angle */
    long  base, along_x, along_y;
    long  start, by_column, by_line;
    float inverse;
    uchar upright, unused[3];
} angle;

typedef struct { /* where TILE results look in each line, and how they weigh the two neighbours there */
    ints   offset[BLOCK];
    floats low[BLOCK], high[BLOCK];
    int    line[BLOCK];
} table;

static void fill(table *t, int i, int line, long at, long step, int size, int pitch, float inverse) {
    longs  place = (longs)at + STEPS * step;
    ints   index = clamp(TO_INTS(place >> 32), (ints)-PAD, (ints)size);
    floats f = TO_FLOATS(TO_INTS((place >> 8) & 0xffffffL)) * 0x1p-24f;
    t->line[i] = line;
    t->offset[i] = (index + PAD) * pitch;
    t->low[i] = fmax(1 - f * inverse, (floats)0) * inverse;
    t->high[i] = fmax(1 - (1 - f) * inverse, (floats)0) * inverse;
}

static void sum_lines(const table *t, int lines, global const float16 *from, int next, float16 *sum) {
    for (int j = 0; j < TILE; j += PAIR) {
        float16 low[PAIR], high[PAIR];
        for (int p = 0; p < PAIR; p++) low[p] = high[p] = 0;
        for (int k = 0; k < lines; k++) {
            const int   *offset = (const int *)&t->offset[k];
            const float *wl = (const float *)&t->low[k], *wh = (const float *)&t->high[k];
#pragma unroll
            for (int p = 0; p < PAIR; p++) {
                global const float16 *at = from + t->line[k] + offset[j + p];
                low[p] = fma((float16)wl[j + p], at[0], low[p]);
                high[p] = fma((float16)wh[j + p], at[next], high[p]);
            }
        }
        for (int p = 0; p < PAIR; p++) sum[j + p] += low[p] + high[p];
    }
}

/* Line integrals along rays j ... j + TILE - 1 of an angle. */
static void project_tile(global const angle *a, global const float16 *image, int rows, int width, int j, float16 *sum) {
    int   row = width + 2 * PAD, upright = a->upright;
    int   nlines = upright ? rows : width, size = upright ? width : rows, between = upright ? row : 1, pitch = upright ? 1 : row;
    table t;
    for (int i = 0; i < TILE; i++) sum[i] = 0;
    for (int k = 0; k < nlines; k += BLOCK) {
        int lines = min(BLOCK, nlines - k);
        for (int i = 0; i < lines; i++)
            fill(&t, i, (PAD + k + i) * between, a->start + j * a->by_column + (k + i) * a->by_line, a->by_column, size, pitch, 1.0f);
        sum_lines(&t, lines, image, pitch, sum);
    }
    for (int i = 0; i < TILE; i++) sum[i] *= a->inverse;
}

/* What voxels (y, x ... x + TILE - 1) take from the sinogram. */
static void gather_tile(global const angle *angles, int nangles, global const float16 *sinogram, int columns, int joseph, int y,
                        int x, float16 *sum) {
    int   pitch = columns + 2 * PAD;
    table t;
    for (int i = 0; i < TILE; i++) sum[i] = 0;
    for (int k = 0; k < nangles; k += BLOCK) {
        int lines = min(BLOCK, nangles - k);
        for (int i = 0; i < lines; i++) {
            global const angle *a = angles + k + i;
            fill(&t, i, (k + i) * pitch, a->base + x * a->along_x + y * a->along_y, a->along_x, columns, 1,
                 joseph ? a->inverse : 1.0f);
        }
        sum_lines(&t, lines, sinogram, 1, sum);
    }
}

/* Rays of angles first ...: to[angle][count]. */
kernel void project(global const angle *angles, int first, global const float16 *image, int rows, int width, int start, int count,
                    global float16 *to) {
    int     j = get_global_id(0) * TILE, k = get_global_id(1);
    float16 sum[TILE];
    project_tile(angles + first + k, image, rows, width, start + j, sum);
    for (int i = 0; i < TILE && j + i < count; i++) to[(long)k * count + j + i] = sum[i];
}

/* Voxels of rows y0 ...: to[row][count]. */
kernel void gather(global const angle *angles, int nangles, global const float16 *sinogram, int columns, int joseph, int y0, int x0,
                   int count, global float16 *to) {
    int     j = get_global_id(0) * TILE, y = get_global_id(1);
    float16 sum[TILE];
    gather_tile(angles, nangles, sinogram, columns, joseph, y0 + y, x0 + j, sum);
    for (int i = 0; i < TILE && j + i < count; i++) to[(long)y * count + j + i] = sum[i];
}

/* What the measured rays have more than those of the image, each times its share. */
kernel void compare(global const angle *angles, global const float16 *image, int rows, int width, int columns,
                    global const float16 *measured, global const float *share, global float16 *rest) {
    int     j = get_global_id(0) * TILE, k = get_global_id(1);
    float16 sum[TILE];
    project_tile(angles + k, image, rows, width, j, sum);
    for (int i = 0; i < TILE && j + i < columns; i++) {
        long at = (long)k * (columns + 2 * PAD) + PAD + j + i;
        rest[at] = (measured[at] - sum[i]) * share[k * columns + j + i];
    }
}

static float16 limited(float16 x, int nonnegative, int masked, float16 mask) {
    if (nonnegative) x = fmax(x, (float16)0);
    return masked ? select((float16)0, x, mask != (float16)0) : x;
}

/* Adds to the voxels what they take from the rest, each times its share. */
kernel void add(global const angle *angles, int nangles, global const float16 *rest, int columns, int width, float step,
                global const float *share, int nonnegative, int masked, global const float16 *mask, global float16 *image) {
    int     j = get_global_id(0) * TILE, y = get_global_id(1);
    float16 sum[TILE];
    gather_tile(angles, nangles, rest, columns, 1, y, j, sum);
    for (int i = 0; i < TILE && j + i < width; i++) {
        long    at = (long)(y + PAD) * (width + 2 * PAD) + PAD + j + i;
        float16 x = image[at] + step * (share[y * width + j + i] * sum[i]);
        image[at] = limited(x, nonnegative, masked, masked ? mask[at] : (float16)0);
    }
}

/* Before the first iteration. */
kernel void limit(int width, int nonnegative, int masked, global const float16 *mask, global float16 *image) {
    long at = (long)(get_global_id(1) + PAD) * (width + 2 * PAD) + PAD + get_global_id(0);
    image[at] = limited(image[at], nonnegative, masked, masked ? mask[at] : (float16)0);
}
