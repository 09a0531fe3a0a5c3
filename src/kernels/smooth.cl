/* Separable filters on an OpenCL device: sums along z, then along y and x with the rows between in private memory.
 *
 * Weights are applied only to voxels inside a window: a not-a-number beside it must not spoil the result. Four results along an axis
 * share every voxel that they load.
 */
#define SPAN 1024 /* floats of a private row: results along x and what lies before and after */

#define TERM(r)                                                               \
    if (k >= r && k - r < taps) sum[r] = fma((float16)weight[k - r], v, sum[r])

/* sum[r] += weight[k] * from[(k + r) * step], for four r; lines: how many there are. */
static void sum_four(global const float *from, long step, int lines, constant float *weight, int taps, float16 sum[4]) {
    int k = 0, end = min(taps + 3, lines);
    for (int r = 0; r < 4; r++) sum[r] = 0;
    for (; k < min(3, end); k++) {
        float16 v = vload16(0, from + k * step);
        TERM(0);
        TERM(1);
        TERM(2);
        TERM(3);
    }
    for (; k < min(taps, end); k++) {
        float16 v = vload16(0, from + k * step);
#pragma unroll
        for (int r = 0; r < 4; r++) sum[r] = fma((float16)weight[k - r], v, sum[r]);
    }
    for (; k < end; k++) {
        float16 v = vload16(0, from + k * step);
        TERM(0);
        TERM(1);
        TERM(2);
        TERM(3);
    }
}

/* Planes 4b ... of out from those of in, `vectors` of 16 of each plane at a time; planes first ... of in are looked at. */
kernel void along_z(global const float *in, int first, long plane, int vectors, int planes, constant float *weight, int taps,
                    global float *out) {
    int     b = 4 * get_global_id(1);
    in += first * plane;
    long    end = min((long)(get_global_id(0) + 1) * vectors, plane / 16);
    float16 sum[4];
    for (long i = (long)get_global_id(0) * vectors; i < end; i++) {
        sum_four(in + b * plane + 16 * i, plane, planes + taps - 1 - b, weight, taps, sum);
        for (int r = 0; r < 4 && b + r < planes; r++) vstore16(sum[r], 0, out + (b + r) * plane + 16 * i);
    }
}

/* Rows 4b ... of a plane, `width` results of each (a multiple of 16). The planes of in are planes first ... of out. */
kernel void along_yx(global const float *in, int pitch, int rows, constant float *weight_y, int taps_y, constant float *weight_x,
                     int taps_x, int width, int first, global float *out, int out_pitch) {
    int           x = get_global_id(0) * width, b = 4 * get_global_id(1), n = min(width, out_pitch - x);
    long          plane = get_global_id(2);
    private float row[4][SPAN];
    float16       sum[4];
    in += (plane * (rows + taps_y - 1) + b) * pitch + x;
    out += ((first + plane) * rows + b) * (long)out_pitch + x;
    for (int i = 0; i < n + taps_x - 1; i += 16) {
        sum_four(in + i, pitch, rows + taps_y - 1 - b, weight_y, taps_y, sum);
        for (int r = 0; r < 4; r++) vstore16(sum[r], 0, row[r] + i);
    }
    for (int i = 0; i < n; i += 16) {
        for (int r = 0; r < 4; r++) sum[r] = 0;
        for (int k = 0; k < taps_x; k++)
#pragma unroll
            for (int r = 0; r < 4; r++) sum[r] = fma((float16)weight_x[k], vload16(0, row[r] + i + k), sum[r]);
        for (int r = 0; r < 4 && b + r < rows; r++) vstore16(sum[r], 0, out + r * (long)out_pitch + i);
    }
}
