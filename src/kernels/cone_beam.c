/* Back-projection along the rays of a cone. */
#include "kernels/cone_beam.h"
#include "kernels/vectors.h"

void FV_ISA_NAME(fv_cone_rows)(const fv_cone *c, int64_t first, int64_t count, int64_t *first_row, int64_t *nrows) {
    double radius = sqrt((double)(c->height * c->height + c->width * c->width)) / 2;
    double low = 1e300, high = -1e300;
    for (int k = 0; k < 4; k++) {
        double q = c->source + (k & 1 ? radius : -radius), z = (double)(k & 2 ? first + count - 1 : first) - c->middle;
        double v = c->middle_row + z * c->distance / (q * c->pitch);
        low = FV_MIN(low, v);
        high = FV_MAX(high, v);
    }
    *first_row = (int64_t)floor(low) - 1;
    *nrows = (int64_t)floor(high) + 3 - *first_row;
}

/* The two columns that a voxel lies between, blended and weighted, where its line of slices looks. */
FV_INLINE void blend_columns(const float *low, const float *high, float f, float weight, int64_t from, int64_t until, float *to) {
    float a = weight * (1 - f), b = weight * f;
    for (int64_t v = from; v < until; v++) to[v] = fmaf(b, high[v], a * low[v]);
}

#if defined(FV_ISA_avx2)
/* Element r (0 to 15) of the sixteen floats at p, for each lane. */
FV_INLINE __m256 pick(const float *p, __m256i r) {
    __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), r), high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(p + 8), r);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(r, 28))); /* bit 3 of r is the sign */
}

/* Eight slices at once. They look at fewer than sixteen rows, two loads and a shuffle away, unless the magnification is large. */
FV_INLINE int64_t add_eight(const float *blend, int32_t first_row, float base, float slope, int64_t first, int64_t count,
                            float *line) {
    const __m256 steps = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), slopes = _mm256_set1_ps(slope), bases = _mm256_set1_ps(base);
    int64_t      k = 0;
    for (; k + 8 <= count && slope < 2; k += 8) {
        __m256       z = _mm256_add_ps(_mm256_set1_ps((float)(first + k)), steps);
        __m256       v = _mm256_fmadd_ps(z, slopes, bases), whole = _mm256_floor_ps(v);
        __m256i      at = _mm256_cvttps_epi32(whole);
        int32_t      start = _mm256_cvtsi256_si32(at);
        const float *from = blend + (start - first_row);
        __m256i      r = _mm256_sub_epi32(at, _mm256_set1_epi32(start));
        __m256       low = pick(from, r), high = pick(from + 1, r);
        __m256       value = _mm256_fmadd_ps(_mm256_sub_ps(v, whole), _mm256_sub_ps(high, low), low);
        _mm256_storeu_ps(line + k, _mm256_add_ps(_mm256_loadu_ps(line + k), value));
    }
    return k;
}
#else
FV_INLINE int64_t add_eight(const float *blend, int32_t first_row, float base, float slope, int64_t first, int64_t count,
                            float *line) {
    (void)blend, (void)first_row, (void)base, (void)slope, (void)first, (void)count, (void)line;
    return 0;
}
#endif

void FV_ISA_NAME(fv_cone_gather)(const fv_cone *c, const float *filtered, int64_t from, int64_t until, int64_t y, int64_t x,
                                 int64_t first, int64_t count, float *blend, float *line) {
    double across = (double)x - (double)(c->width - 1) / 2, down = (double)y - (double)(c->height - 1) / 2;
    for (int64_t a = from; a < until; a++) {
        double s = across * c->turn[2 * a] - down * c->turn[2 * a + 1],
               depth = across * c->turn[2 * a + 1] + down * c->turn[2 * a];
        double q = c->source + depth, scale = c->distance / (q * c->pitch), u = c->center + s * scale, whole = floor(u);
        if (!(whole >= 0 && whole + 1 < (double)c->columns)) continue;
        float        base = (float)(c->middle_row - c->middle * scale), slope = (float)scale;
        float        ends[2] = { fmaf((float)first, slope, base), fmaf((float)(first + count - 1), slope, base) };
        int64_t      top = (int64_t)floorf(FV_MIN(ends[0], ends[1])) - c->first_row;
        int64_t      bottom = (int64_t)floorf(FV_MAX(ends[0], ends[1])) + 2 - c->first_row;
        const float *low = filtered + (a * c->columns + (int64_t)whole) * c->nrows;
        float        weight = (float)(c->source * c->source / (q * q));
        blend_columns(low, low + c->nrows, (float)(u - whole), weight, FV_MAX(top, 0), FV_MIN(bottom, c->nrows), blend);
        for (int64_t k = add_eight(blend, (int32_t)c->first_row, base, slope, first, count, line); k < count; k++) {
            float   v = fmaf((float)(first + k), slope, base), floor_v = floorf(v);
            int64_t at = (int64_t)floor_v - c->first_row;
            line[k] += fmaf(v - floor_v, blend[at + 1] - blend[at], blend[at]);
        }
    }
}
