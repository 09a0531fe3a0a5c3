/* ptycho_modes: the modes of a probe made orthogonal, the strongest first.
 *
 * Intensities stay the same if modes are mixed by a unitary matrix. The one that makes them orthogonal has the eigenvectors of
 * their products <mode i, mode j>, which turns by turns bring to a diagonal (Jacobi).
 */
#include "op/op.h"

enum { MOST = 16, SWEEPS = 40 };

typedef double number[2]; /* re, im */

static const fv_input inputs[] = {
    { "probe", FV_KIND_IMAGE, .doc = "modes of a probe, not shifted: mode, row, part, column" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *p = &i->in[0]->image;
    if (p->ndim != 4 || p->dtype != FV_FLOAT32 || p->shape[2] != 2 || p->shape[0] > MOST)
        return fv_fail(error, FV_ERROR_USAGE, "probe must be float32: at most %d modes, y, part, x", MOST);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) { in[0] = fv__region_whole(&n->in[0]->image); }

static const float *row_of(const fv_block *in, int64_t mode, int64_t y) {
    return (float *)in->data + mode * in->stride[0] + y * in->stride[1];
}

/* sum of conj(a) b */
static void multiply(const fv_block *in, int64_t a, int64_t b, number sum) {
    int64_t part = in->stride[2], n = in->region.size[3];
    sum[0] = sum[1] = 0;
    for (int64_t y = 0; y < in->region.size[1]; y++) {
        const float *p = row_of(in, a, y), *q = row_of(in, b, y);
        for (int64_t x = 0; x < n; x++) {
            double re = (double)p[x], im = (double)p[part + x], u = (double)q[x], v = (double)q[part + x];
            sum[0] += fma(re, u, im * v);
            sum[1] += fma(re, v, -(im * u));
        }
    }
}

/* Columns p and q of a matrix: x' = c x - conj(s) y, y' = s x + c y; fused as written, and not as a compiler likes it. */
static void turn_pair(number *x, number *y, double c, const number s) {
    double a = (*x)[0], b = (*x)[1], u = (*y)[0], v = (*y)[1];
    (*x)[0] = fma(c, a, -fma(s[0], u, s[1] * v));
    (*x)[1] = fma(c, b, -fma(s[0], v, -(s[1] * u)));
    (*y)[0] = fma(s[0], a, fma(c, u, -(s[1] * b)));
    (*y)[1] = fma(s[0], b, fma(c, v, s[1] * a));
}

/* g becomes v^H g v with g[p][q] = 0; v gathers the turns. */
static void turn(int64_t n, number g[MOST][MOST], number v[MOST][MOST], int64_t p, int64_t q) {
    double size = sqrt(g[p][q][0] * g[p][q][0] + g[p][q][1] * g[p][q][1]);
    if (!(size > 1e-300)) return;
    double by = (g[q][q][0] - g[p][p][0]) / (2 * size), t = (by >= 0 ? 1 : -1) / (fabs(by) + sqrt(by * by + 1));
    double c = 1 / sqrt(t * t + 1);
    number s = { c * t * g[p][q][0] / size, c * t * g[p][q][1] / size }, back = { s[0], -s[1] };
    for (int64_t k = 0; k < n; k++) {
        turn_pair(&g[k][p], &g[k][q], c, s);
        turn_pair(&v[k][p], &v[k][q], c, s);
    }
    for (int64_t k = 0; k < n; k++) turn_pair(&g[p][k], &g[q][k], c, back);
}

static void find_mixture(const fv_block *in, int64_t n, number v[MOST][MOST], int64_t order[MOST]) {
    number g[MOST][MOST];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            multiply(in, i, j, g[i][j]);
            v[i][j][0] = i == j;
            v[i][j][1] = 0;
        }
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) turn(n, g, v, p, q);
    for (int64_t i = 0; i < n; i++) { /* the strongest first */
        int64_t k = i;
        for (; k > 0 && g[order[k - 1]][order[k - 1]][0] < g[i][i][0]; k--) order[k] = order[k - 1];
        order[k] = i;
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out, *in = r->in[0];
    int64_t         n = in->region.size[0], order[MOST];
    number          v[MOST][MOST];
    fv_rows         rows;
    (void)error;
    find_mixture(in, n, v, order);
    for (fv__rows_begin(&rows, &out->region); fv__rows_next(&rows);) {
        const int64_t *at = rows.position;
        float         *to = fv__block_at(out, at);
        for (int64_t x = 0; x < out->region.size[3]; x++) {
            double sum = 0;
            for (int64_t m = 0; m < n; m++) {
                const float *p = row_of(in, m, at[1]) + at[3] + x;
                double       re = (double)p[0], im = (double)p[in->stride[2]], *by = v[m][order[at[0]]];
                sum += at[2] ? re * by[1] + im * by[0] : re * by[0] - im * by[1];
            }
            to[x] = (float)sum;
        }
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_modes) = {
    .name = "ptycho_modes",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "modes of a probe made orthogonal, the strongest first: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .doc =
        "Modes are mixed by the unitary matrix that makes them orthogonal. The sum of their intensities stays the same at every "
        "position and every pixel of the detector, so a reconstruction with these modes is as good as with those before.",
    .citation = "Thibault and Menzel, Reconstructing state mixtures from diffraction measurements, Nature 494, 2013",
    .example = "p = ptycho_start(make_probe(32, radius = 10), shifts = [0, 0], modes = 3)\n"
               "write(join_complex(ptycho_modes(p)), \"modes.npy\")",
    .see = "ptycho ptycho_start ptycho_probe",
};
