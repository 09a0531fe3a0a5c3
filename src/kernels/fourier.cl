/* Filters of rows by their spectrum on an OpenCL device: the same transforms as kernels/fourier.c, for bundles of 16 rows. */

static void forward(global float16 *work, int n, global const float *turn) { /* decimation in frequency */
    for (int half_ = n / 2; half_ >= 1; half_ /= 2)
        for (int start = 0; start < n; start += 2 * half_)
            for (int k = 0; k < half_; k++) {
                global float16 *p = work + 2 * (start + k), *q = p + 2 * half_;
                float           c = turn[2 * k * (n / 2 / half_)], s = turn[2 * k * (n / 2 / half_) + 1];
                float16         a = p[0], ai = p[1], b = q[0], bi = q[1], d = a - b, di = ai - bi;
                p[0] = a + b;
                p[1] = ai + bi;
                q[0] = d * c + di * s;
                q[1] = di * c - d * s;
            }
}

static void backward(global float16 *work, int n, global const float *turn) { /* decimation in time */
    for (int half_ = 1; half_ < n; half_ *= 2)
        for (int start = 0; start < n; start += 2 * half_)
            for (int k = 0; k < half_; k++) {
                global float16 *p = work + 2 * (start + k), *q = p + 2 * half_;
                float           c = turn[2 * k * (n / 2 / half_)], s = turn[2 * k * (n / 2 / half_) + 1];
                float16         a = p[0], ai = p[1], b = q[0], bi = q[1], t = b * c - bi * s, ti = bi * c + b * s;
                p[0] = a + t;
                p[1] = ai + ti;
                q[0] = a - t;
                q[1] = ai - ti;
            }
}

/* Projections 2p and 2p + 1 of bundle g of `rows`: column x of projection a is at a * pitch + first + g + x * step. Room for the
 * transforms: all[bundle][pair][n][2]. */
kernel void filter(global float16 *rows, int nangles, long pitch, int first, int step, int columns, int n,
                   global const float *turn, global const float *response, global float16 *all) {
    int             pair = get_global_id(0), both = 2 * pair + 1 < nangles;
    global float16 *work = all + (get_global_id(1) * get_global_size(0) + pair) * (long)n * 2;
    global float16 *row = rows + 2 * pair * pitch + first + get_global_id(1);
    for (int x = 0; x < n; x++) {
        work[2 * x] = x < columns ? row[x * step] : (float16)0;
        work[2 * x + 1] = x < columns && both ? row[pitch + x * step] : (float16)0;
    }
    forward(work, n, turn);
    for (int k = 0; k < 2 * n; k++) work[k] *= response[k / 2];
    backward(work, n, turn);
    for (int x = 0; x < columns; x++) {
        row[x * step] = work[2 * x];
        if (both) row[pitch + x * step] = work[2 * x + 1];
    }
}
