/* Exit waves of ptychography on an OpenCL device. A plane has rows of `width` real numbers and as many imaginary ones; planes of
 * frame f are those of its modes, one after the other. A work-item does TILE pixels of a row (-DTILE: many on a processor, one on
 * a card).
 */
#define PIXELS(x, width) for (int x = get_global_id(0) * TILE; x < min((int)(get_global_id(0) + 1) * TILE, width); x++)

typedef struct {
    int   y, x, shift, before; /* of its corner in the window; before: whether there is a wave of the iteration before */
    float by;                  /* factor of the measured amplitudes */
} place;

/* ---------------------------------------------------------------- transforms */

/* Stockham's passes: m groups of r numbers each, s of which lie side by side. */
static void pass2(global const float16 *from, global float16 *to, int m, int s, int whole, float sign,
                  global const float2 *turn) {
    for (int p = 0; p < m; p++) {
        float2 w = turn[p * (whole / (2 * m))];
        w.y *= sign;
        for (int q = 0; q < s; q++) {
            global const float16 *a = from + 2 * (q + s * p), *b = a + 2 * s * m;
            global float16       *c = to + 2 * (q + 2 * s * p), *d = c + 2 * s;
            float16               re = a[0] - b[0], im = a[1] - b[1];
            c[0] = a[0] + b[0];
            c[1] = a[1] + b[1];
            d[0] = re * w.x - im * w.y;
            d[1] = re * w.y + im * w.x;
        }
    }
}

static void pass4(global const float16 *from, global float16 *to, int m, int s, int whole, float sign,
                  global const float2 *turn) {
    for (int p = 0; p < m; p++) {
        int    by = whole / (4 * m);
        float2 w1 = turn[p * by], w2 = turn[2 * p * by], w3 = turn[3 * p * by];
        w1.y *= sign, w2.y *= sign, w3.y *= sign;
        for (int q = 0; q < s; q++) {
            global const float16 *a = from + 2 * (q + s * p);
            global float16       *c = to + 2 * (q + 4 * s * p);
            int                   in = 2 * s * m, out = 2 * s;
            float16 r0 = a[0] + a[2 * in], i0 = a[1] + a[2 * in + 1], r1 = a[0] - a[2 * in], i1 = a[1] - a[2 * in + 1];
            float16 r2 = a[in] + a[3 * in], i2 = a[in + 1] + a[3 * in + 1];
            float16 r3 = (a[3 * in + 1] - a[in + 1]) * sign, i3 = (a[in] - a[3 * in]) * sign; /* turned by a quarter */
            float16 re = r1 + r3, im = i1 + i3;
            c[0] = r0 + r2;
            c[1] = i0 + i2;
            c[out] = re * w1.x - im * w1.y;
            c[out + 1] = re * w1.y + im * w1.x;
            re = r0 - r2, im = i0 - i2;
            c[2 * out] = re * w2.x - im * w2.y;
            c[2 * out + 1] = re * w2.y + im * w2.x;
            re = r1 - r3, im = i1 - i3;
            c[3 * out] = re * w3.x - im * w3.y;
            c[3 * out + 1] = re * w3.y + im * w3.x;
        }
    }
}

static void pass_any(global const float16 *from, global float16 *to, int r, int m, int s, int whole, float sign,
                     global const float2 *turn) {
    for (int p = 0; p < m; p++)
        for (int k = 0; k < r; k++) {
            float2 w = turn[p * k * (whole / (r * m)) % whole];
            w.y *= sign;
            for (int q = 0; q < s; q++) {
                float16 re = 0, im = 0;
                for (int j = 0; j < r; j++) {
                    float2                v = turn[j * k % r * (whole / r)];
                    global const float16 *a = from + 2 * (q + s * (p + m * j));
                    re += a[0] * v.x - a[1] * v.y * sign;
                    im += a[0] * v.y * sign + a[1] * v.x;
                }
                global float16 *c = to + 2 * (q + s * (r * p + k));
                c[0] = re * w.x - im * w.y;
                c[1] = re * w.y + im * w.x;
            }
        }
}

/* Transforms the columns of planes of n rows, 16 at a time, and leaves them as rows. sign: -1 there, 1 back. turn: cosine and
 * sine of k / n turns, from number `first` on. room: 4 n vectors for each work-item. */
kernel void columns(global const float *from, global float *to, int n, int across, float sign, global const float2 *turn,
                    int first, global float16 *room) {
    int             bundle = get_global_id(0), x = 16 * bundle, many = min(16, across - x);
    long            plane = get_global_id(1), size = 2L * n * across;
    global float16 *a = room + (plane * get_global_size(0) + bundle) * 4L * n, *b = a + 2 * n;
    turn += first;
    from += plane * size + x;
    to += plane * size + 2L * x * n;
    for (int y = 0; y < n; y++)
        for (int part = 0; part < 2; part++) {
            global const float *row = from + (2L * y + part) * across;
            if (many == 16)
                a[2 * y + part] = vload16(0, row);
            else
                for (int l = 0; l < 16; l++) ((global float *)(a + 2 * y + part))[l] = l < many ? row[l] : 0;
        }
    for (int left = n, s = 1; left > 1;) {
        int r = left % 4 == 0 ? 4 : left % 2 == 0 ? 2 : left % 3 == 0 ? 3 : left % 5 == 0 ? 5 : 7, m = left / r;
        if (r == 4)
            pass4(a, b, m, s, n, sign, turn);
        else if (r == 2)
            pass2(a, b, m, s, n, sign, turn);
        else
            pass_any(a, b, r, m, s, n, sign, turn);
        global float16 *other = a;
        a = b;
        b = other;
        left = m;
        s *= r;
    }
    for (int l = 0; l < many; l++)
        for (int part = 0; part < 2; part++)
            for (int y = 0; y < n; y++) to[(2L * l + part) * n + y] = ((global float *)(a + 2 * y + part))[l];
}

/* ---------------------------------------------------------------- waves */

/* What is projected, of frames first, first + step, ...: twice s = probe * object less the wave before, or s. Unless it is for s
 * alone, the wave becomes what is kept of both. shares: of s, with a wave before and without. */
kernel void leave(int height, int width, int modes, int first, int step, global const place *places, global const float *probe,
                  global const float *object, int box_width, global float *wave, global float *work, float keep, float with,
                  float without, int alone) {
    int   y = get_global_id(1), k = get_global_id(2), f = first + k / modes * step, m = k % modes;
    place at = places[f];
    long  row = 2L * width;
    int   before = at.before && !alone;
    float share = before ? with : without, kept = before ? keep : 0, less = before ? 1 : 0, twice = before ? 2 : 1;
    global const float *restrict p = probe + (((long)at.shift * modes + m) * height + y) * row, *restrict q = p + width;
    global const float *restrict o = object + 2L * (at.y + y) * box_width + at.x, *restrict i = o + box_width;
    global float *restrict re = work + ((long)k * height + y) * row, *restrict im = re + width;
    global float *restrict u = wave + (((long)f * modes + m) * height + y) * row, *restrict v = u + width;
    PIXELS(x, width) {
        float s = p[x] * o[x] - q[x] * i[x], t = p[x] * i[x] + q[x] * o[x];
        re[x] = twice * s - less * u[x];
        im[x] = twice * t - less * v[x];
        if (alone) continue;
        u[x] = kept * u[x] + share * s;
        v[x] = kept * v[x] + share * t;
    }
}

static float size_of(global const float *work, long plane, int width, int modes, float background) {
    for (int m = 0; m < modes; m++) {
        float re = work[m * plane], im = work[m * plane + width];
        background += re * re + im * im;
    }
    return sqrt(background);
}

/* Sums of a row: differences of amplitudes, and what was measured. The plane behind those of `frames` frames is the background.
 */
kernel void differ(int height, int width, int modes, int first, int step, int frames, global const place *places,
                   global const float *amplitudes, global const float *work, global float2 *sums) {
    int                 y = get_global_id(0), k = get_global_id(1), f = first + k * step;
    long                plane = 2L * height * width;
    global const float *a = amplitudes + ((long)f * height + y) * width;
    global const float *light = amplitudes + ((long)frames * height + y) * width;
    float2              sum = 0;
    for (int x = 0; x < width; x++) {
        float size = size_of(work + (long)k * modes * plane + 2L * y * width + x, plane, width, modes, light[x]);
        float measured = a[x] * places[f].by;
        if (a[x] >= 0) sum += (float2)(fabs(measured - size), measured);
    }
    sums[k * height + y] = sum;
}

/* Waves at the detector get the measured amplitudes. */
kernel void project(int height, int width, int modes, int frames, global const place *places, global const float *amplitudes,
                    global float *work) {
    int                 y = get_global_id(1), f = get_global_id(2);
    long                plane = 2L * height * width;
    global float       *w = work + f * modes * plane + 2L * y * width;
    global const float *a = amplitudes + ((long)f * height + y) * width;
    global const float *light = amplitudes + ((long)frames * height + y) * width;
    float               whole = 1.0f / (height * width);
    PIXELS(x, width) {
        float by = a[x] >= 0 ? a[x] * places[f].by / fmax(size_of(w + x, plane, width, modes, light[x]), 1e-20f) * whole : whole;
        for (int m = 0; m < modes; m++) {
            w[m * plane + x] *= by;
            w[m * plane + width + x] *= by;
        }
    }
}

/* row: numbers of a row, rows one after the other. */
kernel void come_back(int row, global const float *restrict work, global float *restrict wave, float keep) {
    long at = (long)get_global_id(1) * row;
    PIXELS(x, row) wave[at + x] += keep * work[at + x];
}

/* Each pixel of the box adds the frames that cover it, in their order: conj(probe) * wave, and |probe|^2. */
kernel void gather(int height, int width, int modes, int frames, global const place *places, global const float *probe,
                   global const float *wave, int box_width, global float *sums) {
    int  y = get_global_id(1);
    long row = 2L * width;
    sums += 3L * y * box_width;
    for (int f = 0; f < frames; f++) {
        int left = places[f].x, v = y - places[f].y;
        if (v < 0 || v >= height) continue;
        for (int m = 0; m < modes; m++) {
            global const float *p = probe + (((long)places[f].shift * modes + m) * height + v) * row - left, *q = p + width;
            global const float *a = wave + (((long)f * modes + m) * height + v) * row - left, *b = a + width;
            PIXELS(x, box_width) {
                if (x < left || x >= left + width) continue;
                sums[x] += p[x] * a[x] + q[x] * b[x];
                sums[box_width + x] += p[x] * b[x] - q[x] * a[x];
                sums[2 * box_width + x] += p[x] * p[x] + q[x] * q[x];
            }
        }
    }
}
