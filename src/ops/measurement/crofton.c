/* Weights of the directions in Crofton's formula; see crofton.h. */
#include "ops/measurement/crofton.h"
#include "base/math.h"

#define PI 3.14159265358979323846

typedef struct {
    double v[3];
} vector;

static double dot(const vector *a, const vector *b) { return a->v[0] * b->v[0] + a->v[1] * b->v[1] + a->v[2] * b->v[2]; }
static vector cross(const vector *a, const vector *b) {
    return (vector){ { a->v[1] * b->v[2] - a->v[2] * b->v[1], a->v[2] * b->v[0] - a->v[0] * b->v[2],
                       a->v[0] * b->v[1] - a->v[1] * b->v[0] } };
}
static double length(const vector *a) { return sqrt(dot(a, a)); }
static vector unit(const vector *a) {
    double l = length(a);
    return (vector){ { a->v[0] / l, a->v[1] / l, a->v[2] / l } };
}

/* ---------------------------------------------------------------- in a plane */

static double angle_of(const vector *a) { return fv__atan2(a->v[1] < 0 ? -a->v[1] : a->v[1], a->v[1] < 0 ? -a->v[2] : a->v[2]); }

/* Half the angle between both neighbours, of half a circle. */
static double share_of_circle(const vector *direction, int count, int own) {
    double before = -INFINITY, after = INFINITY, angle = angle_of(&direction[own]);
    for (int i = 0; i < count; i++)
        for (int turn = -1; turn <= 1; turn++) {
            double other = angle_of(&direction[i]) + turn * PI;
            if (i == own && turn == 0) continue;
            if (other < angle)
                before = FV_MAX(before, other);
            else
                after = FV_MIN(after, other);
        }
    return (after - before) / 2 / PI;
}

/* ---------------------------------------------------------------- in space */

enum { MOST_CORNERS = 40 };

/* The part of a polygon on the side of p + ... where x . n >= 0. */
static int clip(const vector *polygon, int count, const vector *n, vector *to) {
    int made = 0;
    for (int i = 0; i < count; i++) {
        const vector *a = &polygon[i], *b = &polygon[(i + 1) % count];
        double        from = dot(a, n), into = dot(b, n);
        if (from >= 0) to[made++] = *a;
        if ((from >= 0) != (into >= 0)) {
            double t = from / (from - into);
            for (int d = 0; d < 3; d++) to[made].v[d] = a->v[d] + t * (b->v[d] - a->v[d]);
            made++;
        }
    }
    return made;
}

/* Solid angle of a triangle seen from the origin (van Oosterom and Strackee). */
static double solid_angle(const vector *a, const vector *b, const vector *c) {
    vector x = unit(a), y = unit(b), z = unit(c), normal = cross(&y, &z);
    return 2 * fv__atan2(fabs(dot(&x, &normal)), 1 + dot(&x, &y) + dot(&y, &z) + dot(&z, &x));
}

/* The share of the half sphere that is nearer to a direction than to all others and their opposites: in the plane that touches
 * the sphere there, a polygon cut out by planes through the origin. */
static double share_of_sphere(const vector *direction, int count, int own) {
    vector p = direction[own], helper = { { 0 } }, polygon[MOST_CORNERS], next[MOST_CORNERS];
    helper.v[fabs(p.v[0]) < 0.6 ? 0 : 1] = 1;
    vector u = cross(&p, &helper);
    u = unit(&u);
    vector w = cross(&p, &u);
    int    corners = 4;
    for (int i = 0; i < 4; i++)
        for (int d = 0; d < 3; d++)
            polygon[i].v[d] = p.v[d] + 1e3 * ((i == 0 || i == 3 ? 1 : -1) * u.v[d] + (i < 2 ? 1 : -1) * w.v[d]);
    for (int i = 0; i < 2 * count; i++) {
        vector n;
        if (i / 2 == own) continue;
        for (int d = 0; d < 3; d++) n.v[d] = p.v[d] - (i % 2 ? -1 : 1) * direction[i / 2].v[d];
        corners = clip(polygon, corners, &n, next);
        memcpy(polygon, next, sizeof polygon);
    }
    double angle = 0;
    for (int i = 0; i < corners; i++) angle += solid_angle(&p, &polygon[i], &polygon[(i + 1) % corners]);
    return angle / (2 * PI);
}

/* ---------------------------------------------------------------- the formula */

void fv__crofton_init(fv__crofton *c, const fv_image_type *labels) {
    int    spatial[FV_MAX_DIMS], n = fv_image_type_spatial(labels, spatial), step[3];
    vector direction[FV__PAIRS];
    double far[FV__PAIRS], voxel = 1;
    for (int k = 0; k < n; k++) voxel *= labels->spacing[spatial[k]];
    for (c->count = 0; fv__direction(n, c->count, step); c->count++) {
        vector v = { { 0 } };
        for (int k = 0; k < n; k++) v.v[3 - n + k] = step[3 - n + k] * labels->spacing[spatial[k]];
        far[c->count] = length(&v);
        direction[c->count] = unit(&v);
    }
    for (int i = 0; i < c->count; i++)
        c->weight[i] = n == 3 ? 4 * share_of_sphere(direction, c->count, i) * voxel / far[i]
                              : PI * share_of_circle(direction, c->count, i) * voxel / far[i];
}

double fv__crofton_measure(const fv__crofton *c, const fv__object *o) {
    double sum = 0;
    for (int i = 0; i < c->count; i++) sum += c->weight[i] * (double)(o->voxels - o->pairs[i]);
    return sum;
}
