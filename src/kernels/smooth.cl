/* Separable filters on an OpenCL device: sums along z with the borders laid around, then along y and x with the rows between in
 * private memory.
 *
 * Weights are applied only to voxels inside a window: a not-a-number beside it must not spoil the result. Four results along an
 * axis share every voxel that they load.
 */
#define SPAN 1024 /* floats of a private row: results along x and what lies before and after */
#define TAPS 513  /* room for the weights of an axis: z, y, x */

/* sum[r] += weight[k] * value(k + r), for four r; lines: how many values there are. */
#define ADD(r) sum[r] = fma((float16)weight[k - r], v, sum[r])
#define ADD_INSIDE(r) \
    if (k >= r && k - r < taps) ADD(r)
#define FOUR(add) add(0); add(1); add(2); add(3)
#define SUM_FOUR(lines, value)                          \
    {                                                   \
        int k = 0, end = min(taps + 3, lines);          \
        for (int r = 0; r < 4; r++) sum[r] = 0;         \
        for (; k < min(3, end); k++) {                  \
            float16 v = value;                          \
            FOUR(ADD_INSIDE);                           \
        }                                               \
        for (; k < min(taps, end); k++) {               \
            float16 v = value;                          \
            FOUR(ADD);                                  \
        }                                               \
        for (; k < end; k++) {                          \
            float16 v = value;                          \
            FOUR(ADD_INSIDE);                           \
        }                                               \
    }

typedef struct { /* the same in terms_device.c */
    long  plane, row;         /* strides of the image */
    long  out_plane, out_row; /* and of the results */
    int   y_map, x_map;       /* where the maps of rows and columns begin */
    int   start, end;         /* columns of a row with its borders that lie in the image one after the other */
    int   pitch, columns;     /* of a row with its borders; vectors may be loaded beyond the last column */
    int   taps[3], width;
    float outside;
} view;

/* A single column: of the border, or of a row that is shorter than a vector. */
static float sum_one(global const float *in, long plane, global const int *z, int taps, constant float *weight, float outside) {
    float sum = 0;
    for (int k = 0; k < taps; k++) sum = fma(weight[k], z[k] < 0 ? outside : in[z[k] * plane], sum);
    return sum;
}

/* Planes 4b ... and a row of the padded image, `span` columns of it, summed along z. A map tells which plane, row or column of the
 * image a position is; -1: none. Columns before and after the image are copied where their like is at hand. */
kernel void along_z(global const float *in, global const view *g, global const int *maps, int first_z, int first_y, int planes,
                    int rows, int span, constant float *weight, global float *out) {
    global const int *x = maps + g->x_map, *z = maps + first_z + 4 * get_global_id(2);
    int     b = 4 * get_global_id(2), row = get_global_id(1), from = get_global_id(0) * span, until = min(from + span, g->columns);
    int     start = max(g->start, from), end = min(g->end, until), taps = g->taps[0], shift = x[g->start] - g->start;
    int     source = maps[g->y_map + first_y + row];
    long    plane = g->plane, step = (long)rows * g->pitch;
    float   outside = g->outside;
    float16 sum[4];
    out += b * step + (long)row * g->pitch;
    if (source >= 0) in += source * g->row;
    if (source < 0) start = end = until;
    for (int i = start; i < end && end - start >= 16; i += 16) {
        int at = min(i, end - 16);
        SUM_FOUR(planes + taps - 1 - b, z[k] < 0 ? (float16)outside : vload16(0, in + z[k] * plane + shift + at));
        for (int r = 0; r < 4 && b + r < planes; r++) vstore16(sum[r], 0, out + r * step + at);
    }
    for (int r = 0; r < 4 && b + r < planes; r++)
        for (int i = from; i < until; i++) {
            if (i == start && end - start >= 16) i = end;
            if (i >= until) break;
            int like = x[i] - shift;
            if (source < 0 || x[i] < 0) out[r * step + i] = outside;
            else if (like != i && like >= start && like < end && end - start >= 16) out[r * step + i] = out[r * step + like];
            else out[r * step + i] = sum_one(in + x[i], plane, z + r, taps, weight, outside);
        }
}

/* Rows 4b ... of a plane, g->width results of each (a multiple of 16); at: where the first one is among the results. */
kernel void along_yx(global const float *in, global const view *g, int rows, constant float *weights, long at, global float *out) {
    int             taps = g->taps[1], taps_x = g->taps[2], columns = g->columns - (taps_x - 1), pitch = g->pitch;
    int             x = get_global_id(0) * g->width, b = 4 * get_global_id(1), n = min(g->width, columns - x);
    long            plane = get_global_id(2), out_row = g->out_row;
    constant float *weight = weights + TAPS, *weight_x = weights + 2 * TAPS;
    private float   row[4][SPAN];
    float16         sum[4];
    in += (plane * (rows + taps - 1) + b) * pitch + x;
    out += at + plane * g->out_plane + b * out_row + x;
    for (int i = 0; i < n + taps_x - 1; i += 16) {
        SUM_FOUR(rows + taps - 1 - b, vload16(0, in + (long)k * pitch + i));
        for (int r = 0; r < 4; r++) vstore16(sum[r], 0, row[r] + i);
    }
    for (int i = 0; i < n; i += 16) {
        for (int r = 0; r < 4; r++) sum[r] = 0;
        for (int k = 0; k < taps_x; k++)
#pragma unroll
            for (int r = 0; r < 4; r++) sum[r] = fma((float16)weight_x[k], vload16(0, row[r] + i + k), sum[r]);
        for (int r = 0; r < 4 && b + r < rows; r++) {
            global float *to = out + r * out_row + i;
            if (i + 16 <= n) vstore16(sum[r], 0, to);
            else
                for (int e = 0; e < n - i; e++) to[e] = ((float *)&sum[r])[e];
        }
    }
}
