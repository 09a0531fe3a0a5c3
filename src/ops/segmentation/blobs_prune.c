/* Pruning of blobs by overlap: from the largest down, each is compared with the kept ones near it.
 *
 * Kept blobs of a scale lie in a grid whose cells are as wide as two blobs of that scale; a blob that comes later is not larger,
 * so it can only overlap those in its own and the next cells. In a cell there are few, because they do not overlap much.
 * No base/hash_table.h: cells hold several blobs, and cells that fall together may be mixed, since each blob is compared anyway.
 */
#include "base/math.h"
#include "base/take.h"
#include "ops/segmentation/blobs.h"
#include <stdlib.h>

typedef struct {
    double  place[3];
    int64_t channel;
} spot;

typedef struct {
    const fv__blobs     *b;
    int                  axes;
    int                  spatial[FV_MAX_DIMS];
    const fv_image_type *image;
    int64_t              slots;
    int64_t             *slot; /* first kept blob of a place, -1: none */
    int64_t             *next; /* of a kept blob: the one before it in its place */
} grid;

static spot spot_of(const grid *g, int64_t index) {
    spot s = { { 0 }, 0 };
    int  k = g->axes - 1;
    for (int d = g->image->ndim - 1; d >= 0; index /= g->image->shape[d--]) {
        int64_t at = index % g->image->shape[d];
        if (k >= 0 && g->spatial[k] == d)
            s.place[k--] = (double)at;
        else
            s.channel = s.channel * g->image->shape[d] + at;
    }
    return s;
}

/* ---------------------------------------------------------------- overlap, as scikit-image computes it */

static double arccos(double x) {
    x = x < -1 ? -1 : x > 1 ? 1 : x;
    return fv__atan2(sqrt((1 - x) * (1 + x)), x);
}

static double disk_overlap(double d, double r, double s) {
    double first = arccos((d * d + r * r - s * s) / (2 * d * r)), second = arccos((d * d + s * s - r * r) / (2 * d * s));
    double product = (-d + s + r) * (d - s + r) * (d + s - r) * (d + s + r), least = r < s ? r : s;
    return (r * r * first + s * s * second - 0.5 * sqrt(fabs(product))) / (3.14159265358979323846 * least * least);
}

static double ball_overlap(double d, double r, double s) {
    double least = r < s ? r : s, gap = r + s - d;
    double volume = gap * gap * (d * d + 2 * d * (r + s) - 3 * (r * r + s * s) + 6 * r * s) / (12 * d);
    return volume / (4. / 3 * least * least * least);
}

/* The part of the smaller of two balls, one of scale `large`, the other not larger, that lies in the other. Space is measured in
 * radii of the larger one, so that both are round whatever the sigmas of the axes. */
static double overlap_of(const grid *g, const spot *a, int large, const spot *b, int small) {
    const fv__blobs *blobs = g->b;
    double           squares = 0, r = 1;
    int              last = g->axes - 1;
    double           s = blobs->sigma(blobs->params, small, last) / blobs->sigma(blobs->params, large, last);
    for (int k = 0; k < g->axes; k++) {
        double along = (a->place[k] - b->place[k]) / (blobs->sigma(blobs->params, large, k) * sqrt((double)g->axes));
        squares += along * along;
    }
    double d = sqrt(squares);
    if (d > r + s) return 0;
    if (d <= r - s) return 1;
    return g->axes == 1 ? (r + s - d) / (2 * s) : g->axes == 2 ? disk_overlap(d, r, s) : ball_overlap(d, r, s);
}

/* ---------------------------------------------------------------- the grid */

static uint64_t slot_of(const grid *g, const spot *s, int scale, const int64_t *cell) {
    uint64_t hash = (uint64_t)scale * 0x9e3779b97f4a7c15u ^ (uint64_t)s->channel;
    for (int k = 0; k < g->axes; k++) hash = (hash ^ (uint64_t)cell[k]) * 0xd6e8feb86659fd93u ^ hash >> 29;
    return (hash ^ hash >> 32) & (uint64_t)(g->slots - 1);
}

static void cell_of(const grid *g, const spot *s, int scale, int64_t *cell) {
    for (int k = 0; k < g->axes; k++)
        cell[k] = (int64_t)floor(s->place[k] / (2 * g->b->sigma(g->b->params, scale, k) * sqrt((double)g->axes)));
}

static bool overlaps_in_cell(const grid *g, const fv__blob *blobs, int64_t own, const spot *s, int scale, const int64_t *cell) {
    for (int64_t i = g->slot[slot_of(g, s, scale, cell)]; i >= 0; i = g->next[i]) {
        spot other = spot_of(g, blobs[i].index);
        if (blobs[i].scale == scale && other.channel == s->channel &&
            overlap_of(g, &other, scale, s, (int)blobs[own].scale) > g->b->overlap)
            return true;
    }
    return false;
}

static bool overlaps(const grid *g, const fv__blob *blobs, int64_t own, const spot *s) {
    int neighbours = g->axes == 1 ? 3 : g->axes == 2 ? 9 : 27;
    for (int scale = (int)blobs[own].scale; scale < g->b->scales; scale++) {
        int64_t middle[3], cell[3];
        cell_of(g, s, scale, middle);
        for (int code = 0; code < neighbours; code++) {
            for (int k = 0, rest = code; k < g->axes; k++, rest /= 3) cell[k] = middle[k] + rest % 3 - 1;
            if (overlaps_in_cell(g, blobs, own, s, scale, cell)) return true;
        }
    }
    return false;
}

static int largest_first(const void *a, const void *b) {
    const fv__blob *x = a, *y = b;
    if (x->scale != y->scale) return x->scale > y->scale ? -1 : 1;
    if (x->response != y->response) return x->response > y->response ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

fv_status fv__blobs_prune(const fv__blobs *b, const fv_image_type *image, fv__blob *blobs, int64_t count, fv_error *error) {
    grid g = { .b = b, .image = image };
    g.axes = fv_image_type_spatial(image, g.spatial);
    for (g.slots = 16; g.slots < 2 * count;) g.slots *= 2;
    FV_TRY(FV_TAKE(g.slot, (size_t)g.slots * sizeof *g.slot, error));
    if (FV_TAKE(g.next, (size_t)count * sizeof *g.next, error) != FV_OK) {
        free(g.slot);
        return FV_ERROR_MEMORY;
    }
    memset(g.slot, 0xff, (size_t)g.slots * sizeof *g.slot);
    qsort(blobs, (size_t)count, sizeof *blobs, largest_first);
    for (int64_t i = 0; i < count; i++) {
        spot    s = spot_of(&g, blobs[i].index);
        int64_t cell[3];
        if (overlaps(&g, blobs, i, &s)) {
            blobs[i].scale = -1;
            continue;
        }
        cell_of(&g, &s, (int)blobs[i].scale, cell);
        uint64_t place = slot_of(&g, &s, (int)blobs[i].scale, cell);
        g.next[i] = g.slot[place];
        g.slot[place] = i;
    }
    free(g.slot);
    free(g.next);
    return FV_OK;
}
