/* place_tiles: where tiles lie, from how far each two of them are apart.
 *
 * The error of a place is a number for each tile and axis. Each compared pair says what the difference of two of them is, with a
 * weight that grows with its agreement; a weak spring between all neighbours holds those that no pair tells anything about. The
 * sum of squares is made least by conjugate gradients. Pairs that contradict the others lose weight from round to round (Geman
 * and McClure's function of the residual, whose width shrinks), so that a wrong one does not pull.
 */
#include "op/scratch.h"
#include "ops/registration/stitch_tiles.h"
#include <stdio.h>

typedef struct {
    FV__TILES_FIELDS
    FV__TILES_OWN
} place_tiles;

static const fv_param params[] = { FV__TILES_PARAMS(place_tiles), FV__TILES_OWN_PARAMS(place_tiles) };
static const fv_input inputs[] = { { "shifts", FV_KIND_IMAGE, .doc = "what tile_shifts gives for the same tiles" },
                                   FV_INPUT_END };

enum { ROUNDS = 12, MOST_STEPS = 1000 };
static const double least_agreement = 0.25, spring = 1e-4, anchor = 1e-9, widest = 64, narrowest = 0.5;

static const fv__tiles_found *found_in(const place_tiles *p) { return (const fv__tiles_found *)&p->paths; }

static fv_status infer(fv_infer *i, fv_error *error) {
    place_tiles    *p = i->params;
    fv_image_type   tile;
    fv__tiles_found found;
    FV_TRY(FV_ISA_NAME(fv__tiles_find)((const fv__tiles *)p, i->arena, &found, &tile, error));
    p->paths = found.paths;
    p->places = found.places;
    p->pairs = found.pairs;
    const fv_image_type *shifts = &i->in[0]->image;
    int64_t              pairs = fv__tiles_pairs(&found), shape[] = { fv__tiles_count(&found), fv__tiles_axes(&found) + 1 };
    if (shifts->ndim != 2 || shifts->shape[0] != FV_MAX(pairs, 1) || shifts->shape[1] != shape[1] || shifts->dtype != FV_FLOAT64)
        return fv_fail(error, FV_ERROR_USAGE, "shifts is not what tile_shifts gives for these tiles");
    fv_image_type_init(&i->out->image, FV_FLOAT64, 2, shape);
    snprintf(i->out->image.axis[0], sizeof i->out->image.axis[0], "tile");
    snprintf(i->out->image.axis[1], sizeof i->out->image.axis[1], "number");
    return FV_OK;
}

/* All at once. */
static void slab(const fv_need *n, int64_t *chunk) { memcpy(chunk, n->out->image.shape, 2 * sizeof *chunk); }

static void need(const fv_need *n, fv_region *in) { in[0] = fv__region_whole(&n->in[0]->image); }

typedef struct {
    int            n; /* axes along which tiles move */
    int64_t        tiles, pairs;
    fv__tile_pair *pair;
    const double  *shift;  /* of each pair: (z) y, x, agreement */
    double        *weight; /* of each pair, in this round */
    double        *place;  /* of each tile, axis after axis: the error found */
    double        *diagonal, *rest, *way, *product, *scaled;
} system_of;

static size_t lay_out(const fv_need *n, system_of *s, void *memory) {
    fv_scratch pieces = { memory };
    int64_t    number = sizeof(double);
    s->n = (int)n->out->image.shape[1] - 1;
    s->tiles = n->out->image.shape[0];
    s->pairs = n->in[0]->image.shape[0];
    s->pair = fv__scratch_take(&pieces, s->pairs * (int64_t)sizeof *s->pair);
    s->weight = fv__scratch_take(&pieces, s->pairs * number);
    s->place = fv__scratch_take(&pieces, s->n * s->tiles * number);
    double **vectors[] = { &s->diagonal, &s->rest, &s->way, &s->product, &s->scaled };
    for (int i = 0; i < FV_COUNT(vectors); i++) *vectors[i] = fv__scratch_take(&pieces, s->tiles * number);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    system_of s;
    return lay_out(n, &s, NULL);
}

/* The matrix of the normal equations times a vector. */
static void multiply(const system_of *s, const double *in, double *out) {
    for (int64_t i = 0; i < s->tiles; i++) out[i] = anchor * in[i];
    for (int64_t k = 0; k < s->pairs; k++) {
        int64_t a = s->pair[k].tile[0], b = s->pair[k].tile[1];
        double  pull = (s->weight[k] + spring) * (in[b] - in[a]);
        out[a] -= pull;
        out[b] += pull;
    }
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Conjugate gradients along one axis, from 0, scaled by the diagonal. */
static void solve(const system_of *s, int axis) {
    int64_t n = s->tiles;
    double *x = s->place + axis * n;
    for (int64_t i = 0; i < n; i++) {
        x[i] = s->rest[i] = 0;
        s->diagonal[i] = anchor;
    }
    for (int64_t k = 0; k < s->pairs; k++) {
        int64_t a = s->pair[k].tile[0], b = s->pair[k].tile[1];
        double  pull = s->weight[k] * s->shift[(s->n + 1) * k + axis];
        s->rest[a] -= pull;
        s->rest[b] += pull;
        s->diagonal[a] += s->weight[k] + spring;
        s->diagonal[b] += s->weight[k] + spring;
    }
    for (int64_t i = 0; i < n; i++) s->way[i] = s->scaled[i] = s->rest[i] / s->diagonal[i];
    double before = dot(s->rest, s->scaled, n), end = 1e-24 * before;
    for (int step = 0; step < MOST_STEPS && before > end && before > 0; step++) {
        multiply(s, s->way, s->product);
        double length = before / dot(s->way, s->product, n);
        for (int64_t i = 0; i < n; i++) {
            x[i] += length * s->way[i];
            s->rest[i] -= length * s->product[i];
            s->scaled[i] = s->rest[i] / s->diagonal[i];
        }
        double now = dot(s->rest, s->scaled, n), ratio = now / before;
        for (int64_t i = 0; i < n; i++) s->way[i] = s->scaled[i] + ratio * s->way[i];
        before = now;
    }
}

/* How far a pair is from what all agree upon. */
static double residual(const system_of *s, int64_t k) {
    int64_t a = s->pair[k].tile[0], b = s->pair[k].tile[1];
    double  sum = 0;
    for (int axis = 0; axis < s->n; axis++) {
        const double *place = s->place + axis * s->tiles;
        double        off = place[b] - place[a] - s->shift[(s->n + 1) * k + axis];
        sum += off * off;
    }
    return sqrt(sum);
}

static double trust(const system_of *s, int64_t k) {
    double agreement = s->shift[(s->n + 1) * k + s->n];
    return agreement >= least_agreement ? agreement * agreement : 0;
}

static void place_all(const system_of *s) {
    double width = widest;
    for (int64_t k = 0; k < s->pairs; k++) s->weight[k] = trust(s, k);
    for (int round = 0; round < ROUNDS; round++) {
        for (int axis = 0; axis < s->n; axis++) solve(s, axis);
        for (int64_t k = 0; k < s->pairs; k++) {
            double part = residual(s, k) / width, kept = 1 / (1 + part * part);
            s->weight[k] = trust(s, k) * kept * kept;
        }
        width = FV_MAX(width / 2, narrowest);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const place_tiles *p = r->need.params;
    const fv_region   *region = &r->out->region;
    system_of          s;
    (void)error;
    lay_out(&r->need, &s, r->scratch);
    s.shift = r->in[0]->data;
    s.pairs = FV_MIN(s.pairs, fv__tiles_pairs(found_in(p)));
    for (int64_t k = 0; k < s.pairs; k++) s.pair[k] = FV_ISA_NAME(fv__tiles_pair)(found_in(p), k);
    place_all(&s);
    for (int64_t i = 0; i < region->size[0]; i++) {
        int64_t tile = region->start[0] + i;
        double  used = 0;
        for (int64_t k = 0; k < s.pairs; k++)
            if ((s.pair[k].tile[0] == tile || s.pair[k].tile[1] == tile) && 4 * s.weight[k] > trust(&s, k) && trust(&s, k) > 0)
                used++;
        double all[4];
        for (int axis = 0; axis < s.n; axis++)
            all[axis] = fv__tiles_place(found_in(p), tile, 3 - s.n + axis) + s.place[axis * s.tiles + tile];
        all[s.n] = used;
        double *to = (double *)r->out->data + i * r->out->stride[0];
        for (int64_t c = 0; c < region->size[1]; c++) to[c] = all[region->start[1] + c];
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(place_tiles) = {
    .name = "place_tiles",
    .family = "registration",
    .brief = "where tiles lie, from the shifts between neighbours",
    .version = 1,
    .also = "global_optimization, global_registration",
    .doc =
        "What stitch finds out second. A row for each tile: (z) y and x of its first pixel, and how many of its neighbours were "
        "of use. "
        "Least squares over all pairs that tile_shifts compared; those that agree well count more, those that contradict the "
        "others "
        "do not count.",
    .citation =
        "Preibisch, Saalfeld, Tomancak, Bioinformatics 25, 1463 (2009); Geman, McClure, Bull. Int. Stat. Inst. 52, 5 (1987)",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(place_tiles),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .example = "image = phantom(\"cells\", [200, 300])\n"
               "write(image[:, 0:180], \"tiles/left.tif\")\n"
               "write(image[:, 120:300], \"tiles/right.tif\")",
    .see = "stitch tile_shifts",
};
