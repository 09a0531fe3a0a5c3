/* The least width of a convex solid; see hull_width.h. Corners are whole numbers: below 2^17 all signs are exact. */
#include "ops/measurement/hull_width.h"
#include "base/take.h"
#include <math.h>
#include <stdlib.h>

enum { BLOCK = 64 };

static double dot(const double a[3], const double b[3]) { return (a[0] * b[0] + a[1] * b[1]) + a[2] * b[2]; }

/* A normal counts steps; how long it is where steps have a length. */
static double length_of(const double normal[3], const double *spacing) {
    double sum = 0;
    for (int d = 0; d < 3; d++) sum += normal[d] / spacing[d] * (normal[d] / spacing[d]);
    return sqrt(sum);
}

static double least_over_faces(const fv__hull_shape *s, const double *spacing) {
    double least = INFINITY;
    for (int64_t i = 0; i < s->faces; i++) {
        double level = dot(s->normal[i], s->on[i]), lowest = 0;
        for (int64_t k = 0; k < s->corners; k++) lowest = FV_MIN(lowest, dot(s->normal[i], s->corner[k]) - level);
        least = FV_MIN(least, -lowest / length_of(s->normal[i], spacing));
    }
    return least;
}

/* The distance of the planes through two edges; infinite where the solid does not lie between them. */
static double between(const fv__hull_edge *a, const fv__hull_edge *b, const double *spacing) {
    double normal[3], apart[3], here[2], there[2];
    for (int d = 0; d < 3; d++) {
        int u = (d + 1) % 3, v = (d + 2) % 3;
        normal[d] = a->along[u] * b->along[v] - a->along[v] * b->along[u];
        apart[d] = a->at[d] - b->at[d];
    }
    for (int k = 0; k < 2; k++) {
        here[k] = dot(normal, a->beyond[k]);
        there[k] = dot(normal, b->beyond[k]);
    }
    bool   below = here[0] <= 0 && here[1] <= 0 && there[0] >= 0 && there[1] >= 0;
    bool   above = here[0] >= 0 && here[1] >= 0 && there[0] <= 0 && there[1] <= 0;
    double length = length_of(normal, spacing);
    return (below || above) && length > 0 ? fabs(dot(normal, apart)) / length : INFINITY;
}

/* The normals of planes that touch a solid at an edge lie between those of its two faces: on an arc around `middle`, within the
 * angle whose cosine and sine are given. */
typedef struct {
    float *middle[3], *cosine, *sine;
} arcs;

static void fill_arc(const arcs *a, int64_t i, const fv__hull_edge *e) {
    double unit[2][3], middle[3], length = 0, cosine = 0;
    for (int k = 0; k < 2; k++)
        for (int d = 0; d < 3; d++) unit[k][d] = e->normal[k][d] / sqrt(dot(e->normal[k], e->normal[k]));
    for (int d = 0; d < 3; d++) middle[d] = unit[0][d] + unit[1][d];
    length = sqrt(dot(middle, middle));
    for (int d = 0; d < 3; d++) a->middle[d][i] = length > 0 ? (float)(middle[d] / length) : 0;
    cosine = length > 0 ? FV_MIN(dot(middle, unit[0]) / length, 1) : 0;
    a->cosine[i] = (float)cosine;
    a->sine[i] = (float)sqrt(1 - cosine * cosine);
}

/* Edges i ... end - 1 of which some may be opposite edge e: their arcs are not too far from its own, turned round. */
static bool any_opposite(const arcs *a, int64_t e, int64_t i, int64_t end) {
    float x = a->middle[0][e], y = a->middle[1][e], z = a->middle[2][e], c = a->cosine[e], s = a->sine[e];
    int   some = 0;
    for (; i < end; i++) {
        float towards = (x * a->middle[0][i] + y * a->middle[1][i]) + z * a->middle[2][i];
        some |= towards <= s * a->sine[i] - c * a->cosine[i] + 1e-4f;
    }
    return some;
}

static double least_over_edges(const fv__hull_shape *s, const arcs *a, const double *spacing) {
    double least = INFINITY;
    for (int64_t i = 0; i < s->edges; i++)
        for (int64_t k = i + 1; k < s->edges; k += BLOCK) {
            int64_t end = FV_MIN(k + BLOCK, s->edges);
            if (!any_opposite(a, i, k, end)) continue;
            for (int64_t j = k; j < end; j++) least = FV_MIN(least, between(&s->edge[i], &s->edge[j], spacing));
        }
    return least;
}

fv_status fv__hull_width(const fv__hull_shape *s, const double spacing[3], double *width, fv_error *error) {
    float *room;
    FV_TRY(FV_TAKE(room, (size_t)(s->edges + 1) * 5 * sizeof *room, error));
    arcs a = { { room, room + s->edges, room + 2 * s->edges }, room + 3 * s->edges, room + 4 * s->edges };
    for (int64_t i = 0; i < s->edges; i++) fill_arc(&a, i, &s->edge[i]);
    *width = FV_MIN(least_over_faces(s, spacing), least_over_edges(s, &a, spacing));
    free(room);
    return FV_OK;
}
