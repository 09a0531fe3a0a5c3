/* The last hundredths of a voxel of a shift; see phase.h.
 *
 * Both images are smoothed by a Gaussian; that of the moving image is sampled at the shifted places, so that nothing has to be
 * interpolated. What is asked for is the shift s, gain a and offset b under which
 *
 *     sum of w * slope of fixed * (moving at s - a * fixed - b) = 0
 *
 * along every axis. The window w weights what is left and touches no image, so it pulls the shift nowhere; the noise of fixed is
 * not correlated with its own slope, nor with the noise of moving, so noise pulls it nowhere either. Steps are those of Newton,
 * with a derivative in which the slopes of both images meet: it is right at any noise.
 */
#include "base/math.h"
#include "ops/registration/phase.h"

enum { REACH = 5, TAPS = 2 * REACH + 1, LANES = 8, STEPS = 12 };
enum { PLENTY = 1 << 19 };                       /* voxels: of an image with more of them only every so many rows are compared */
static const double enough = 1e-5, far_away = 1; /* voxels: of the last step, and from where it began */

/* Sums over all voxels, times the window. */
typedef struct {
    double one, moving, fixed, moving_moving, fixed_fixed;
    double slope[3], slope_moving[3], slope_fixed[3]; /* of fixed */
    double slopes[3][3];                              /* of fixed and of moving */
} sums;

/* The Gaussian at places k - at, and its derivative along k, for the taps of one axis. */
typedef struct {
    float value[3][TAPS], slope[3][TAPS];
} taps;

static void fill_taps(const fv_phase *p, const double at[3], taps *t) {
    for (int c = 0; c < 3; c++) {
        double g[TAPS], sum = 0;
        for (int k = 0; k < TAPS; k++) {
            double u = k - REACH - at[c];
            sum += g[k] = c < p->n ? fv__exp(-u * u / 2) : k == REACH;
        }
        for (int k = 0; k < TAPS; k++) {
            t->value[c][k] = (float)(g[k] / sum);
            t->slope[c][k] = (float)(g[k] / sum * (k - REACH - at[c]));
        }
    }
}

/* Sum of the rows around (y, z) of an image, its x from `from` on for n voxels; outside of it lies what is at its border. */
static void add_rows(const fv_phase *p, const float *image, const int64_t at[3], int64_t n, const float *high, const float *deep,
                     float *line) {
    int planes = p->n == 3 ? REACH : 0;
    memset(line, 0, (size_t)n * sizeof *line);
    for (int k = -planes; k <= planes; k++)
        for (int j = -REACH; j <= REACH; j++) {
            int64_t      z = FV_MAX(FV_MIN(at[2] + k, p->size[2] - 1), 0), y = FV_MAX(FV_MIN(at[1] + j, p->size[1] - 1), 0);
            const float *row = image + (z * p->size[1] + y) * p->size[0];
            float        weight = high[j + REACH] * deep[k + REACH];
            int64_t      x = at[0] - REACH, before = FV_MAX(FV_MIN(-x, n), 0), last = p->size[0] - 1;
            int64_t      end = FV_MAX(FV_MIN(n, last + 1 - x), before);
            for (int64_t i = 0; i < before; i++) line[i] += weight * row[0];
            for (int64_t i = before; i < end; i++) line[i] += weight * row[x + i];
            for (int64_t i = end; i < n; i++) line[i] += weight * row[last];
        }
}

static void smooth(const float *line, const float *tap, int64_t n, float *to) {
    for (int64_t i = 0; i < n; i++) {
        float sum = tap[0] * line[i];
        for (int k = 1; k < TAPS; k++) sum += tap[k] * line[i + k];
        to[i] = sum;
    }
}

/* The smoothed row of an image at a place, and (slope != NULL) its slopes along x, y, z. */
static void smooth_row(const fv_phase *p, const float *image, const int64_t at[3], int64_t n, const taps *t, float *line,
                       float *value, float *const slope[3]) {
    add_rows(p, image, at, n + 2 * REACH, t->value[1], t->value[2], line);
    smooth(line, t->value[0], n, value);
    if (!slope) return;
    smooth(line, t->slope[0], n, slope[0]);
    add_rows(p, image, at, n + 2 * REACH, t->slope[1], t->value[2], line);
    smooth(line, t->value[0], n, slope[1]);
    if (p->n < 3) return;
    add_rows(p, image, at, n + 2 * REACH, t->value[1], t->slope[2], line);
    smooth(line, t->value[0], n, slope[2]);
}

static double add_products(const float *a, const float *b, const double *window, int64_t n) {
    double lane[LANES] = { 0 };
    for (int64_t i = 0; i < n; i++) lane[i % LANES] += window[i] * ((double)a[i] * (double)b[i]);
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static void add_row(const fv_phase *p, const float *one, int64_t n, double high, bool both, sums *s) {
    const float  *moving = p->line[1], *fixed = p->line[2];
    const double *window = p->taper[0];
    s->one += high * add_products(one, one, window, n);
    s->moving += high * add_products(one, moving, window, n);
    s->fixed += high * add_products(one, fixed, window, n);
    s->moving_moving += high * add_products(moving, moving, window, n);
    s->fixed_fixed += high * add_products(fixed, fixed, window, n);
    for (int c = 0; c < p->n; c++) {
        const float *slope = p->line[3 + c];
        s->slope[c] += high * add_products(one, slope, window, n);
        s->slope_moving[c] += high * add_products(moving, slope, window, n);
        s->slope_fixed[c] += high * add_products(fixed, slope, window, n);
        for (int d = 0; d < p->n && both; d++) s->slopes[c][d] += high * add_products(slope, p->line[6 + d], window, n);
    }
}

/* The sums where fixed is compared with moving at offset + at; both: with the slopes of both. */
static void add_up(const fv_phase *p, const fv_overlap *o, const double at[3], bool both, sums *s) {
    static const double none[3] = { 0 };
    float              *line = p->line[0], *one = p->line[9];
    taps                of_fixed, of_moving;
    fill_taps(p, none, &of_fixed);
    fill_taps(p, at, &of_moving);
    int64_t every = FV_MAX(o->count[0] * o->count[1] * o->count[2] / PLENTY, 1);
    *s = (sums){ 0 };
    for (int64_t i = 0; i < o->count[0]; i++) one[i] = 1;
    for (int64_t z = 0; z < o->count[2]; z++)
        for (int64_t y = z % every; y < o->count[1]; y += every) {
            int64_t fixed[3] = { o->start[0], o->start[1] + y, o->start[2] + z }, moving[3];
            for (int c = 0; c < 3; c++) moving[c] = fixed[c] + o->offset[c];
            smooth_row(p, p->moving, moving, o->count[0], &of_moving, line, p->line[1], both ? p->line + 6 : NULL);
            smooth_row(p, p->fixed, fixed, o->count[0], &of_fixed, line, p->line[2], p->line + 3);
            add_row(p, one, o->count[0], p->taper[1][y] * p->taper[2][z], both, s);
        }
}

/* Solves a x = b; false: it cannot be. */
static bool solve(int n, double a[3][3], const double *b, double *x) {
    double whole[12] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0 }, inverse[12];
    for (int r = 0; r < n; r++)
        for (int c = 0; c < n; c++) whole[r * 4 + c] = a[r][c];
    if (!fv__matrix_invert(whole, inverse)) return false;
    for (int r = 0; r < n; r++) {
        x[r] = 0;
        for (int c = 0; c < n; c++) x[r] += inverse[r * 4 + c] * b[c];
    }
    return true;
}

/* What is asked to be zero. The gain is that of the spreads of both images, which noise of the same strength leaves alone. */
static bool find_step(const fv_phase *p, const sums *s, double slopes[3][3], double step[3]) {
    double mean_moving = s->moving / s->one, mean_fixed = s->fixed / s->one, left[3];
    double spread_moving = s->moving_moving / s->one - mean_moving * mean_moving;
    double spread_fixed = s->fixed_fixed / s->one - mean_fixed * mean_fixed;
    if (!(spread_moving > 0 && spread_fixed > 0)) return false;
    double gain = sqrt(spread_moving / spread_fixed);
    for (int c = 0; c < p->n; c++)
        left[c] = (gain * s->slope_fixed[c] - s->slope_moving[c]) + (mean_moving - gain * mean_fixed) * s->slope[c];
    return solve(p->n, slopes, left, step);
}

void fv__shift_refine(const fv_phase *p, const fv_overlap *o, double shift[3]) {
    double at[3] = { 0 }, begin[3] = { 0 }, slopes[3][3];
    for (int c = 0; c < p->n; c++) at[c] = begin[c] = shift[c] - (double)o->offset[c];
    for (int i = 0; i < STEPS; i++) {
        sums   s;
        double step[3], longest = 0;
        add_up(p, o, at, i == 0, &s);
        if (i == 0) memcpy(slopes, s.slopes, sizeof slopes);
        if (!find_step(p, &s, slopes, step)) return;
        for (int c = 0; c < p->n; c++) {
            at[c] += step[c];
            longest = FV_MAX(longest, fabs(step[c]));
            if (!(fabs(at[c] - begin[c]) < far_away)) return; /* too little is to be seen: what the spectra tell stays */
        }
        if (longest < enough) break;
    }
    for (int c = 0; c < p->n; c++) shift[c] = (double)o->offset[c] + at[c];
}
