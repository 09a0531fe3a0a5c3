/* Lines of samples along the axis of rotation. */
#include "kernels/lines.h"
#include "kernels/vectors.h"

enum { STEP = FV_LINES_STEP };

static int64_t pitch_of(const fv_lines *s) { return s->samples + 2 * STEP; }

/* The pair blended, where the elements look. */
static void blend_pair(const fv_lines *s, const fv_line *line, float *restrict to) {
    float   ends[2] = { fmaf((float)s->first, line->slope, line->base),
                        fmaf((float)(s->first + s->count - 1), line->slope, line->base) };
    int64_t from = (int64_t)floorf(FV_MIN(ends[0], ends[1])) - s->start;
    int64_t until = (int64_t)floorf(FV_MAX(ends[0], ends[1])) + 2 - s->start;
    from = FV_MAX(from, 0) & ~(int64_t)(FV_F32_LANES - 1);
    until = FV_MIN(until, s->samples);
    fv_f32v a = fv_f32v_splat(line->a), b = fv_f32v_splat(line->b);
    for (int64_t v = from; v < until; v += FV_F32_LANES)
        fv_f32v_store(to + v, fv_f32v_fma(b, fv_f32v_load(line->high + v), a * fv_f32v_load(line->low + v)));
}

static void look_one(const float *blend, int64_t start, const fv_line *line, int64_t first, int64_t count, float *to) {
    for (int64_t k = 0; k < count; k++) {
        float   v = fmaf((float)(first + k), line->slope, line->base), whole = floorf(v);
        int64_t at = (int64_t)whole - start;
        to[k] += fmaf(v - whole, blend[at + 1] - blend[at], blend[at]);
    }
}

#if defined(FV_ISA_avx2)
/* Elements r (0 to 7, or 0 to 15) of the floats at p, for each lane. */
FV_INLINE __m256 pick_near(const float *p, __m256i r) { return _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), r); }
FV_INLINE __m256 pick_far(const float *p, __m256i r) {
    __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), r), high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(p + 8), r);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(r, 28))); /* bit 3 of r is the sign */
}

/* Eight elements see fewer than eight samples, or fewer than sixteen: a load or two and a shuffle, where others gather. */
FV_INLINE __m256 look(const float *blend, __m256 z, __m256 slope, __m256 base, bool near) {
    __m256       v = _mm256_fmadd_ps(z, slope, base), whole = _mm256_floor_ps(v);
    __m256i      at = _mm256_cvttps_epi32(whole);
    const float *from = blend + _mm256_cvtsi256_si32(at);
    __m256i      r = _mm256_sub_epi32(at, _mm256_broadcastd_epi32(_mm256_castsi256_si128(at)));
    __m256       low = near ? pick_near(from, r) : pick_far(from, r);
    __m256       high = near ? pick_near(from + 1, r) : pick_far(from + 1, r);
    return _mm256_fmadd_ps(_mm256_sub_ps(v, whole), _mm256_sub_ps(high, low), low);
}

/* Below this slope eight elements stay within eight samples, however places are rounded. */
#define NEAR 0.998f

/* Sixteen or thirty-two elements, held in registers over all lines. */
FV_INLINE void look_many(const fv_lines *s, const fv_line *line, int nlines, int64_t first, int vectors, float *to) {
    const __m256 steps = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
    __m256       sum[4], z[4];
    for (int i = 0; i < vectors; i++) {
        sum[i] = _mm256_loadu_ps(to + 8 * i);
        z[i] = _mm256_add_ps(_mm256_set1_ps((float)(first + 8 * i)), steps);
    }
    for (int k = 0; k < nlines; k++) {
        const float *blend = s->blend + k * pitch_of(s) - s->start;
        __m256       slope = _mm256_set1_ps(line[k].slope), base = _mm256_set1_ps(line[k].base);
        if (line[k].slope < NEAR) {
#pragma GCC unroll 4
            for (int i = 0; i < vectors; i++) sum[i] = _mm256_add_ps(sum[i], look(blend, z[i], slope, base, true));
        } else {
#pragma GCC unroll 4
            for (int i = 0; i < vectors; i++) sum[i] = _mm256_add_ps(sum[i], look(blend, z[i], slope, base, false));
        }
    }
    for (int i = 0; i < vectors; i++) _mm256_storeu_ps(to + 8 * i, sum[i]);
}

static void look_all(const fv_lines *s, const fv_line *line, int nlines, float *to) {
    int64_t k = 0;
    for (; k + 32 <= s->count; k += 32) look_many(s, line, nlines, s->first + k, 4, to + k);
    for (; k < s->count; k += 16) look_many(s, line, nlines, s->first + k, 2, to + k);
}
enum { STEEPEST = 2 };
#elif defined(FV_ISA_avx512)
/* Sixteen elements see fewer than 32 samples: two loads and one shuffle. */
FV_INLINE __m512 pick(const float *p, __m512i r) {
    return _mm512_permutex2var_ps(_mm512_loadu_ps(p), r, _mm512_loadu_ps(p + 16));
}

static void look_all(const fv_lines *s, const fv_line *line, int nlines, float *to) {
    const __m512 steps = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int64_t i = 0; i < s->count; i += 16) {
        __m512 z = _mm512_add_ps(_mm512_set1_ps((float)(s->first + i)), steps), sum = _mm512_loadu_ps(to + i);
        for (int k = 0; k < nlines; k++) {
            __m512       v = _mm512_fmadd_ps(z, _mm512_set1_ps(line[k].slope), _mm512_set1_ps(line[k].base));
            __m512       whole = _mm512_roundscale_ps(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
            __m512i      at = _mm512_cvttps_epi32(whole);
            const float *from = s->blend + k * pitch_of(s) - s->start + _mm512_cvtsi512_si32(at);
            __m512i      r = _mm512_sub_epi32(at, _mm512_broadcastd_epi32(_mm512_castsi512_si128(at)));
            __m512       low = pick(from, r), high = pick(from + 1, r);
            sum = _mm512_add_ps(sum, _mm512_fmadd_ps(_mm512_sub_ps(v, whole), _mm512_sub_ps(high, low), low));
        }
        _mm512_storeu_ps(to + i, sum);
    }
}
enum { STEEPEST = 2 };
#else
static void look_all(const fv_lines *s, const fv_line *line, int nlines, float *to) {
    for (int k = 0; k < nlines; k++) look_one(s->blend + k * pitch_of(s), s->start, &line[k], s->first, s->count, to);
}
enum { STEEPEST = 1 << 30 };
#endif

void FV_ISA_NAME(fv__lines_gather)(const fv_lines *s, const fv_line *line, int nlines, float *to) {
    float steepest = 0;
    for (int k = 0; k < nlines && s->single; k++) to[0] += fmaf(line[k].b, line[k].high[0], line[k].a * line[k].low[0]);
    if (s->single) return;
    for (int k = 0; k < nlines; k++) {
        blend_pair(s, &line[k], s->blend + k * pitch_of(s));
        steepest = FV_MAX(steepest, line[k].slope);
    }
    if (steepest < (float)STEEPEST) {
        look_all(s, line, nlines, to);
        return;
    }
    for (int k = 0; k < nlines; k++) look_one(s->blend + k * pitch_of(s), s->start, &line[k], s->first, s->count, to);
}

/* ---------------------------------------------------------------- the transpose */

/* Samples see all elements that lie less than 1 away: `taps` of them, from the first one on. */
static void spread_one(const fv_lines *s, const float *from, float base, float slope, int taps, int64_t i, float *to) {
    float z = (float)(s->start + i), inverse = 1 / slope, sum = 0;
    float k = floorf(((z - 1) - base) * inverse) + 1;
    for (int t = 0; t < taps; t++, k += 1) {
        float   weight = 1 - fabsf(fmaf(k, slope, base) - z);
        int64_t at = (int64_t)k - s->first;
        if (weight > 0 && at >= 0 && at < s->count) sum = fmaf(weight, from[at], sum);
    }
    to[i] = sum;
}

#if defined(FV_ISA_avx2)
/* Eight samples look at elements that span fewer than sixteen. */
static int64_t spread_eights(const fv_lines *s, const float *from, float base, float slope, int taps, float *to) {
    const __m256 steps = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), one = _mm256_set1_ps(1), bases = _mm256_set1_ps(base);
    const __m256 slopes = _mm256_set1_ps(slope), inverse = _mm256_set1_ps(1 / slope), sign = _mm256_set1_ps(-0.0f);
    int64_t      i = 0;
    for (; i + 8 <= s->samples; i += 8) {
        __m256  z = _mm256_add_ps(_mm256_set1_ps((float)(s->start + i)), steps), sum = _mm256_setzero_ps();
        __m256  k = _mm256_floor_ps(_mm256_mul_ps(_mm256_sub_ps(_mm256_sub_ps(z, one), bases), inverse));
        __m256i at = _mm256_cvttps_epi32(k = _mm256_add_ps(k, one));
        int64_t first = _mm256_cvtsi256_si32(at) - s->first;
        __m256i r = _mm256_sub_epi32(at, _mm256_broadcastd_epi32(_mm256_castsi256_si128(at)));
        if (first < 0 || first + taps + 16 > s->count + FV_LINES_ROOM) {
            for (int l = 0; l < 8; l++) spread_one(s, from, base, slope, taps, i + l, to);
            continue;
        }
        for (int t = 0; t < taps; t++, k = _mm256_add_ps(k, one)) {
            __m256 away = _mm256_andnot_ps(sign, _mm256_sub_ps(_mm256_fmadd_ps(k, slopes, bases), z));
            __m256 weight = _mm256_max_ps(_mm256_sub_ps(one, away), _mm256_setzero_ps());
            sum = _mm256_fmadd_ps(weight, pick_far(from + first + t, r), sum);
        }
        _mm256_storeu_ps(to + i, sum);
    }
    return i;
}
#else
static int64_t spread_eights(const fv_lines *s, const float *from, float base, float slope, int taps, float *to) {
    (void)s, (void)from, (void)base, (void)slope, (void)taps, (void)to;
    return 0;
}
#endif

void FV_ISA_NAME(fv__lines_spread)(const fv_lines *s, const float *from, float base, float slope, float *to) {
    if (s->single) {
        to[0] = from[0];
        return;
    }
    int taps = (int)ceilf(2 / slope);
    for (int64_t i = slope > 0.52f ? spread_eights(s, from, base, slope, taps, to) : 0; i < s->samples; i++)
        spread_one(s, from, base, slope, taps, i, to);
}
