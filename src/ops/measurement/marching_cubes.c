/* The table of marching cubes, made by its rule; see marching_cubes.h. */
#include "ops/measurement/marching_cubes.h"
#include "base/base.h"
#include <math.h>
#include <string.h>

/* The corners of each face, counterclockwise seen from outside the cube. */
static const uint8_t faces[6][4] = { { 0, 4, 6, 2 }, { 1, 3, 7, 5 }, { 0, 1, 5, 4 },
                                     { 2, 6, 7, 3 }, { 0, 2, 3, 1 }, { 4, 5, 7, 6 } };

static int edge_between(const fv__marching_cubes *m, int a, int b) {
    int e = 0;
    while (e < FV__CUBE_EDGES && (m->first[e] != FV_MIN(a, b) || m->second[e] != FV_MAX(a, b))) e++;
    return e;
}

static bool inside(int corners, int corner) { return corners >> corner & 1; }

/* next[e]: the edge to which the line leads that begins at e, -1: none begins there. Round a face, a run of inside corners begins
 * behind one edge and ends before another; its line leads from there to here, because an edge that ends a run on one face begins
 * one on the other, and so the lines of all faces form rings. */
static void draw_lines(const fv__marching_cubes *m, int corners, int next[FV__CUBE_EDGES]) {
    for (int e = 0; e < FV__CUBE_EDGES; e++) next[e] = -1;
    for (int f = 0; f < 6; f++)
        for (int i = 0; i < 4; i++) {
            int before = faces[f][i], first = faces[f][(i + 1) % 4], last = (i + 1) % 4;
            if (inside(corners, before) || !inside(corners, first)) continue;
            while (inside(corners, faces[f][(last + 1) % 4])) last = (last + 1) % 4;
            next[edge_between(m, faces[f][last], faces[f][(last + 1) % 4])] = edge_between(m, before, first);
        }
}

static bool on_one_face(const fv__marching_cubes *m, int a, int b) {
    for (int f = 0; f < 6; f++) {
        int met = 0;
        for (int i = 0; i < 4; i++) {
            int e = edge_between(m, faces[f][i], faces[f][(i + 1) % 4]);
            met += (e == a) + (e == b);
        }
        if (met == 2) return true;
    }
    return false;
}

/* Twice the distance of an edge's middle from the cube's start, along an axis. */
static int middle(const fv__marching_cubes *m, int edge, int axis) {
    return (m->first[edge] >> axis & 1) + (m->second[edge] >> axis & 1);
}

/* Of a triangle between the middles of three edges, times 8. edge: of the cube, along x, y, z. */
static double area(const fv__marching_cubes *m, int a, int b, int c, const double edge[3]) {
    double p[3], q[3];
    for (int d = 0; d < 3; d++) {
        p[d] = (middle(m, b, d) - middle(m, a, d)) * edge[d];
        q[d] = (middle(m, c, d) - middle(m, a, d)) * edge[d];
    }
    double x = p[1] * q[2] - p[2] * q[1], y = p[2] * q[0] - p[0] * q[2], z = p[0] * q[1] - p[1] * q[0];
    return sqrt(x * x + y * y + z * z);
}

static const double unit[3] = { 1, 1, 1 };

/* From which point of a ring it is cut into triangles: lines within a face of the cube would lie in the next cube's surface, so
 * they are avoided; of the others, the surface that is arched most is taken, as the tables of others do. */
static int best_view(const fv__marching_cubes *m, const int *ring, int count) {
    int    best = 0, least = count;
    double most = 0;
    for (int i = 0; i < count; i++) {
        int    bad = 0;
        double whole = 0;
        for (int k = 2; k < count - 1; k++) bad += on_one_face(m, ring[i], ring[(i + k) % count]);
        for (int k = 1; k < count - 1; k++) whole += area(m, ring[i], ring[(i + k) % count], ring[(i + k + 1) % count], unit);
        if (bad > least || (bad == least && whole <= most + 1e-9)) continue;
        least = bad;
        most = whole;
        best = i;
    }
    return best;
}

static void cut_ring(fv__marching_cubes *m, int corners, const int *ring, int count) {
    int view = best_view(m, ring, count);
    for (int k = 1; k < count - 1; k++) {
        uint8_t *triangle = m->edge[corners] + 3 * m->count[corners]++;
        triangle[0] = (uint8_t)ring[view];
        triangle[1] = (uint8_t)ring[(view + k + 1) % count];
        triangle[2] = (uint8_t)ring[(view + k) % count];
    }
}

void fv__marching_cubes_init(fv__marching_cubes *m) {
    memset(m, 0, sizeof *m);
    for (int axis = 0, e = 0; axis < 3; axis++)
        for (int corner = 0; corner < 8; corner++)
            if (!(corner >> axis & 1)) {
                m->first[e] = (uint8_t)corner;
                m->second[e++] = (uint8_t)(corner | 1 << axis);
            }
    for (int corners = 0; corners < 256; corners++) {
        int next[FV__CUBE_EDGES];
        draw_lines(m, corners, next);
        for (int e = 0; e < FV__CUBE_EDGES; e++) {
            int ring[FV__CUBE_EDGES], count = 0;
            for (int at = e; next[at] >= 0;) {
                int then = next[at];
                next[at] = -1;
                ring[count++] = at;
                at = then;
            }
            if (count) cut_ring(m, corners, ring, count);
        }
    }
}

void fv__marching_cubes_areas(const double spacing[3], double areas[256]) {
    fv__marching_cubes m;
    double             edge[3] = { spacing[2], spacing[1], spacing[0] };
    fv__marching_cubes_init(&m);
    for (int corners = 0; corners < 256; corners++) {
        areas[corners] = 0;
        for (int k = 0; k < m.count[corners]; k++) {
            const uint8_t *t = m.edge[corners] + 3 * k;
            areas[corners] += area(&m, t[0], t[1], t[2], edge) / 8;
        }
    }
}
