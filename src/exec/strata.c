/* Parts of an image in which the chunks of a sample lie. */
#include "exec/strata.h"
#include "base/take.h"
#include <stdlib.h>

enum { OF_BOX = 8, OF_ITEM = 4, LEAST = 2 }; /* chunks of the sample in a part, on average */

void fv__strata_release(fv_strata *s) {
    free(s->stratum);
    free(s->chunks);
    *s = (fv_strata){ 0 };
}

/* Into how many parts each axis is cut, so that all together are at most so many: items first, of which there may be more, then
 * the longest parts. */
static void cut(const fv_stage *stage, const fv_image_type *image, int64_t most, int64_t *parts) {
    int     ndim = stage->lattice.ndim;
    int64_t all = 1;
    for (int d = 0; d < ndim; d++) parts[d] = 1;
    if (ndim && image->ndim == ndim && !strcmp(image->axis[0], "item"))
        all = parts[0] = FV_MIN(stage->count[0], most * OF_BOX / OF_ITEM);
    for (bool more = true; more;) {
        int longest = -1;
        for (int d = 0; d < ndim; d++) {
            bool fits = parts[d] < stage->count[d] && all / parts[d] * (parts[d] + 1) <= most;
            if (fits && (longest < 0 || stage->count[d] * parts[longest] > stage->count[longest] * parts[d])) longest = d;
        }
        more = longest >= 0;
        if (more) all = all / parts[longest] * (parts[longest] + 1), parts[longest]++;
    }
}

static int64_t box_of(const fv_stage *stage, const int64_t *parts, int64_t task) {
    int64_t box = 0, place[FV_MAX_DIMS] = { 0 };
    for (int d = stage->lattice.ndim - 1; d >= 0; task /= stage->count[d--]) place[d] = task % stage->count[d];
    for (int d = 0; d < stage->lattice.ndim; d++) box = box * parts[d] + place[d] * parts[d] / stage->count[d];
    return box;
}

/* All chunks of a box. */
static int64_t chunks_of(const fv_stage *stage, const int64_t *parts, int64_t box) {
    int64_t chunks = 1;
    for (int d = stage->lattice.ndim - 1; d >= 0; box /= parts[d--]) {
        int64_t part = box % parts[d], n = stage->count[d]; /* from the first place at or after part * n / parts */
        chunks *= ((part + 1) * n + parts[d] - 1) / parts[d] - (part * n + parts[d] - 1) / parts[d];
    }
    return chunks;
}

/* Neighbouring boxes are taken together until enough of the sample lies in them; the last ones go to those before. */
static int join(const int64_t *seen, int64_t boxes, int32_t *stratum_of) {
    int     count = 0;
    int64_t within = 0;
    for (int64_t b = 0; b < boxes; b++) {
        stratum_of[b] = count;
        within += seen[b];
        if (within < LEAST) continue;
        count++;
        within = 0;
    }
    for (int64_t b = 0; b < boxes; b++) stratum_of[b] = FV_MIN(stratum_of[b], FV_MAX(count - 1, 0));
    return count;
}

static void fill(fv_strata *s, const fv_stage *stage, const int64_t *order, int64_t seen, const int64_t *parts, int64_t boxes,
                 int64_t *in_sample, int32_t *stratum_of) {
    for (int64_t i = 0; i < seen; i++) in_sample[box_of(stage, parts, order[i])]++;
    s->count = join(in_sample, boxes, stratum_of);
    for (int64_t i = 0; i < seen; i++) s->stratum[i] = stratum_of[box_of(stage, parts, order[i])];
    for (int64_t b = 0; b < boxes; b++) s->chunks[stratum_of[b]] += chunks_of(stage, parts, b);
}

bool fv__strata_find(fv_strata *s, const fv_stage *stage, const fv_image_type *image, const int64_t *order, int64_t seen) {
    int64_t  parts[FV_MAX_DIMS], boxes = 1, *in_sample = NULL;
    int32_t *stratum_of = NULL;
    fv__strata_release(s);
    if (seen < 2 * OF_BOX || seen == stage->ntasks) return false;
    cut(stage, image, seen / OF_BOX, parts);
    for (int d = 0; d < stage->lattice.ndim; d++) boxes *= parts[d];
    bool there = FV_TAKE_ZEROED(in_sample, (size_t)boxes * sizeof *in_sample, NULL) == FV_OK &&
                 FV_TAKE_ZEROED(stratum_of, (size_t)boxes * sizeof *stratum_of, NULL) == FV_OK &&
                 FV_TAKE_ZEROED(s->stratum, (size_t)seen * sizeof *s->stratum, NULL) == FV_OK &&
                 FV_TAKE_ZEROED(s->chunks, (size_t)boxes * sizeof *s->chunks, NULL) == FV_OK;
    if (there) fill(s, stage, order, seen, parts, boxes, in_sample, stratum_of);
    free(in_sample);
    free(stratum_of);
    return there && s->count > 1;
}

bool fv__strata_of_parts(fv_strata *s, const int32_t *part, int64_t units, int64_t count, const int64_t *order, int64_t seen) {
    int64_t *in_sample = NULL;
    int32_t *stratum_of = NULL;
    fv__strata_release(s);
    if (seen < 2 * OF_BOX || seen == units || count < 2) return false;
    bool there = FV_TAKE_ZEROED(in_sample, (size_t)count * sizeof *in_sample, NULL) == FV_OK &&
                 FV_TAKE_ZEROED(stratum_of, (size_t)count * sizeof *stratum_of, NULL) == FV_OK &&
                 FV_TAKE_ZEROED(s->stratum, (size_t)seen * sizeof *s->stratum, NULL) == FV_OK &&
                 FV_TAKE_ZEROED(s->chunks, (size_t)count * sizeof *s->chunks, NULL) == FV_OK;
    for (int64_t i = 0; there && i < seen; i++) in_sample[part[order[i]]]++;
    if (there) s->count = join(in_sample, count, stratum_of);
    for (int64_t i = 0; there && i < seen; i++) s->stratum[i] = stratum_of[part[order[i]]];
    for (int64_t u = 0; there && u < units; u++) s->chunks[stratum_of[part[u]]]++;
    free(in_sample);
    free(stratum_of);
    return there && s->count > 1;
}

bool fv__strata_of_runs(fv_strata *s, int64_t units, const int64_t *order, int64_t seen) {
    const int64_t count = seen / OF_BOX;
    int32_t      *part;
    if (FV_TAKE(part, (size_t)(units + 1) * sizeof *part, NULL) != FV_OK) return false;
    for (int64_t i = 0; i < units; i++) part[i] = (int32_t)(i * count / units);
    bool some = fv__strata_of_parts(s, part, units, count, order, seen);
    free(part);
    return some;
}
