/* Convex hulls of objects; see hull.h. Coordinates are doubled where corners are meant, so that all of them are whole numbers. */
#include "ops/measurement/hull.h"
#include "base/take.h"
#include "ops/measurement/hull_width.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
    int64_t at[3]; /* z, y, x */
} point;

typedef struct {
    int64_t y, first, last;
} row;

static int64_t floor_div(__int128 a, __int128 b) {
    __int128 q = a / b;
    return (int64_t)(a % b && (a < 0) != (b < 0) ? q - 1 : q);
}
static int64_t ceil_div(__int128 a, __int128 b) { return -floor_div(-a, b); }

/* ---------------------------------------------------------------- planes */

/* Rows of a plane, or corners: the side of the hull towards lower x (side 0) or higher x (side 1) as places in rows. Returns how
 * many. */
static int64_t side_of(const row *rows, int64_t n, int side, int64_t *corner) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        for (; count > 1; count--) {
            const row *a = &rows[corner[count - 2]], *b = &rows[corner[count - 1]], *c = &rows[i];
            int64_t    ax = side ? -a->last : a->first, bx = side ? -b->last : b->first, cx = side ? -c->last : c->first;
            if ((__int128)(b->y - a->y) * (cx - ax) > (__int128)(bx - ax) * (c->y - a->y)) break;
        }
        corner[count++] = i;
    }
    return count;
}

static void add_point(fv_bytes *points, int64_t z, int64_t y, int64_t x) {
    point p = { { z, y, x } };
    fv__bytes_append(points, &p, sizeof p);
}

/* Only the corners of a plane's hull can be corners of the whole one. */
static void add_plane(fv_bytes *points, int64_t z, const row *rows, int64_t n) {
    int64_t *corner = fv__alloc((size_t)(n + 1) * sizeof *corner);
    for (int side = 0; side < 2; side++) {
        int64_t count = side_of(rows, n, side, corner);
        for (int64_t i = 0; i < count; i++) {
            const row *r = &rows[corner[i]];
            add_point(points, z, r->y, side ? r->last : r->first);
        }
    }
    free(corner);
}

/* Of rows y0 .. y1, the first and last voxel in the hull of the corners of a plane's voxels. */
static void fill_plane(const row *rows, int64_t n, int64_t y0, int64_t y1, row *filled) {
    int64_t count = 2 * (y1 - y0) + 3, *corner = fv__alloc((size_t)count * sizeof *corner);
    row    *edge = fv__alloc((size_t)count * sizeof *edge); /* at half rows, doubled */
    for (int64_t k = 0; k < count; k++) edge[k] = (row){ 2 * y0 - 1 + k, INT64_MAX / 4, -(INT64_MAX / 4) };
    for (int64_t i = 0; i < n; i++)
        for (int step = -1; step <= 1; step++) {
            row *e = &edge[2 * (rows[i].y - y0) + 1 + step];
            e->first = FV_MIN(e->first, 2 * rows[i].first - !step);
            e->last = FV_MAX(e->last, 2 * rows[i].last + !step);
        }
    int64_t there = 0;
    for (int64_t k = 0; k < count; k++)
        if (edge[k].first <= edge[k].last) edge[there++] = edge[k];
    for (int64_t y = y0; y <= y1; y++) filled[y - y0].y = y;
    for (int side = 0; side < 2; side++) {
        int64_t corners = side_of(edge, there, side, corner), k = 0;
        for (int64_t y = y0; y <= y1; y++) {
            while (k + 2 < corners && edge[corner[k + 1]].y < 2 * y) k++;
            const row *a = &edge[corner[k]], *b = &edge[corner[k + 1]];
            __int128   dy = b->y - a->y, ax = side ? a->last : a->first, bx = side ? b->last : b->first;
            __int128   x = ax * dy + (bx - ax) * (2 * y - a->y);
            *(side ? &filled[y - y0].last : &filled[y - y0].first) = side ? floor_div(x, 2 * dy) : ceil_div(x, 2 * dy);
        }
    }
    free(corner);
    free(edge);
}

/* ---------------------------------------------------------------- space */

typedef struct {
    int64_t  corner[3]; /* counterclockwise, seen from outside */
    int64_t  beside[3]; /* face across the edge from corner k to the next */
    int64_t  normal[3];
    __int128 level;   /* of the plane: normal times place */
    int64_t  outside; /* first point above it, -1: none */
    bool     gone, seen;
} face;

typedef struct {
    const point *points;
    int64_t      npoints, *next; /* the next point above the same face */
    fv_bytes     faces;
    int64_t     *begins, *ends; /* by point: the new face whose old edge begins, or ends, there */
    fv_bytes     visible, stack;
} solid;

static face   *face_at(const solid *s, int64_t i) { return (face *)s->faces.data + i; }
static int64_t faces_of(const solid *s) { return (int64_t)(s->faces.size / sizeof(face)); }

static __int128 above(const face *f, const point *p) {
    __int128 place = 0;
    for (int d = 0; d < 3; d++) place += (__int128)f->normal[d] * p->at[d];
    return place - f->level;
}

static void cross(const point *a, const point *b, const point *c, int64_t *normal) {
    for (int d = 0; d < 3; d++) {
        int u = (d + 1) % 3, v = (d + 2) % 3;
        normal[d] = (b->at[u] - a->at[u]) * (c->at[v] - a->at[v]) - (b->at[v] - a->at[v]) * (c->at[u] - a->at[u]);
    }
}

static int64_t add_face(solid *s, int64_t a, int64_t b, int64_t c) {
    face f = { .corner = { a, b, c }, .outside = -1 };
    cross(&s->points[a], &s->points[b], &s->points[c], f.normal);
    f.level = above(&f, &s->points[a]);
    fv__bytes_append(&s->faces, &f, sizeof f);
    return faces_of(s) - 1;
}

/* The first tetrahedron: corners that lie far apart. There is one, because a voxel has six corners. */
static void begin_solid(solid *s) {
    int64_t      corner[4] = { 0 }, normal[3];
    const point *p = s->points;
    for (int64_t i = 1; i < s->npoints; i++) {
        if (p[i].at[2] < p[corner[0]].at[2]) corner[0] = i;
        if (p[i].at[2] > p[corner[1]].at[2]) corner[1] = i;
    }
    double best = -1;
    for (int64_t i = 0; i < s->npoints; i++) {
        cross(&p[corner[0]], &p[corner[1]], &p[i], normal);
        double size = fabs((double)normal[0]) + fabs((double)normal[1]) + fabs((double)normal[2]);
        if (size > best) best = size, corner[2] = i;
    }
    best = -1;
    face base = { 0 };
    cross(&p[corner[0]], &p[corner[1]], &p[corner[2]], base.normal);
    base.level = above(&base, &p[corner[0]]);
    for (int64_t i = 0; i < s->npoints; i++) {
        double size = fabs((double)above(&base, &p[i]));
        if (size > best) best = size, corner[3] = i;
    }
    if (above(&base, &p[corner[3]]) > 0) {
        int64_t swap = corner[0];
        corner[0] = corner[1];
        corner[1] = swap;
    }
    int64_t a = corner[0], b = corner[1], c = corner[2], d = corner[3];
    add_face(s, a, b, c);
    add_face(s, b, a, d);
    add_face(s, c, b, d);
    add_face(s, a, c, d);
    static const int64_t beside[4][3] = { { 1, 2, 3 }, { 0, 3, 2 }, { 0, 1, 3 }, { 0, 2, 1 } };
    for (int i = 0; i < 4; i++) memcpy(face_at(s, i)->beside, beside[i], sizeof beside[i]);
}

/* Gives a point to a face that it lies above, of those from `first` on; none: it is inside. */
static void give(solid *s, int64_t p, int64_t first) {
    for (int64_t i = first, n = faces_of(s); i < n; i++) {
        face *f = face_at(s, i);
        if (f->gone || above(f, &s->points[p]) <= 0) continue;
        s->next[p] = f->outside;
        f->outside = p;
        return;
    }
}

static int64_t farthest(const solid *s, const face *f) {
    int64_t best = f->outside;
    for (int64_t p = f->outside; p >= 0; p = s->next[p])
        if (above(f, &s->points[p]) > above(f, &s->points[best])) best = p;
    return best;
}

/* The faces that a point lies strictly above: they hang together, and their edge is a closed line. */
static void find_visible(solid *s, int64_t start, const point *p) {
    fv__bytes_clear(&s->visible);
    fv__bytes_clear(&s->stack);
    fv__bytes_append(&s->stack, &start, sizeof start);
    face_at(s, start)->seen = true;
    while (s->stack.size) {
        int64_t i;
        s->stack.size -= sizeof i;
        memcpy(&i, s->stack.data + s->stack.size, sizeof i);
        fv__bytes_append(&s->visible, &i, sizeof i);
        for (int k = 0; k < 3; k++) {
            int64_t other = face_at(s, i)->beside[k];
            face   *f = face_at(s, other);
            if (f->seen || above(f, p) <= 0) continue;
            f->seen = true;
            fv__bytes_append(&s->stack, &other, sizeof other);
        }
    }
}

static void add_to_solid(solid *s, int64_t start) {
    int64_t p = farthest(s, face_at(s, start)), first = faces_of(s);
    find_visible(s, start, &s->points[p]);
    int64_t count = (int64_t)(s->visible.size / sizeof(int64_t)), *visible = (int64_t *)s->visible.data;
    for (int64_t v = 0; v < count; v++)
        for (int k = 0; k < 3; k++) {
            face    old = *face_at(s, visible[v]);
            int64_t other = old.beside[k], from = old.corner[k], to = old.corner[(k + 1) % 3];
            if (face_at(s, other)->seen) continue;
            int64_t made = add_face(s, from, to, p);
            face_at(s, made)->beside[0] = other;
            for (int e = 0; e < 3; e++)
                if (face_at(s, other)->corner[e] == to) face_at(s, other)->beside[e] = made;
            s->begins[from] = made;
            s->ends[to] = made;
        }
    for (int64_t i = first; i < faces_of(s); i++) {
        face *f = face_at(s, i);
        f->beside[1] = s->begins[f->corner[1]];
        f->beside[2] = s->ends[f->corner[0]];
    }
    for (int64_t v = 0; v < count; v++) {
        face_at(s, visible[v])->gone = true;
        for (int64_t q = face_at(s, visible[v])->outside, after; q >= 0; q = after) {
            after = s->next[q];
            if (q != p) give(s, q, first);
        }
    }
}

static void solid_release(solid *s) {
    fv__bytes_release(&s->faces);
    fv__bytes_release(&s->visible);
    fv__bytes_release(&s->stack);
    free(s->next);
    free(s->begins);
    free(s->ends);
}

/* To be released even if it fails. */
static fv_status solid_make(solid *s, const fv_bytes *points, fv_error *error) {
    *s = (solid){ .points = (const point *)points->data, .npoints = (int64_t)(points->size / sizeof(point)) };
    FV_TRY(FV_TAKE(s->next, (size_t)s->npoints * sizeof *s->next, error));
    FV_TRY(FV_TAKE(s->begins, (size_t)s->npoints * sizeof *s->begins, error));
    FV_TRY(FV_TAKE(s->ends, (size_t)s->npoints * sizeof *s->ends, error));
    begin_solid(s);
    for (int64_t p = 0; p < s->npoints; p++) give(s, p, 0);
    for (int64_t i = 0; i < faces_of(s); i++) {
        if (!face_at(s, i)->gone && face_at(s, i)->outside >= 0) add_to_solid(s, i);
        FV_TRY(fv__memory_check(error));
    }
    return FV_OK;
}

/* Which points are corners of faces. */
static fv_status find_used(const solid *s, bool **used, fv_error *error) {
    FV_TRY(FV_TAKE_ZEROED(*used, (size_t)s->npoints, error));
    for (int64_t i = 0; i < faces_of(s); i++)
        for (int k = 0; k < 3 && !face_at(s, i)->gone; k++) (*used)[face_at(s, i)->corner[k]] = true;
    return FV_OK;
}

/* The six corners of each voxel, doubled. */
static fv_status corners_of(const fv_bytes *voxels, fv_bytes *corners, fv_error *error) {
    FV_TRY(fv__bytes_need(corners, 6 * voxels->size + 1, error));
    for (size_t i = 0; i < voxels->size / sizeof(point); i++)
        for (int k = 0; k < 6; k++) {
            point p = ((const point *)voxels->data)[i];
            for (int d = 0; d < 3; d++) p.at[d] = 2 * p.at[d] + (d == k / 2 ? k % 2 * 2 - 1 : 0);
            fv__bytes_append(corners, &p, sizeof p);
        }
    return FV_OK;
}

enum { MANY = 1 << 16 }; /* voxels, before those are left out that are inside */

/* Leaves those voxels that have a corner of the hull of all: it stays the same. */
static fv_status thin_out(fv_bytes *voxels, fv_error *error) {
    fv_bytes  corners = { 0 };
    solid     s = { 0 };
    bool     *used = NULL;
    point    *p = (point *)voxels->data;
    int64_t   n = 0;
    fv_status status = corners_of(voxels, &corners, error);
    if (status == FV_OK) status = solid_make(&s, &corners, error);
    if (status == FV_OK) status = find_used(&s, &used, error);
    for (int64_t i = 0; i < s.npoints / 6 && status == FV_OK; i++) {
        bool any = false;
        for (int k = 0; k < 6; k++) any = any || used[6 * i + k];
        if (any) p[n++] = p[i];
    }
    if (status == FV_OK) voxels->size = (size_t)n * sizeof *p;
    free(used);
    solid_release(&s);
    fv__bytes_release(&corners);
    return status;
}

/* Another plane; enough: where voxels are thinned out next. */
static fv_status add_voxels(fv_bytes *voxels, size_t *enough, int64_t z, const row *rows, int64_t n, fv_error *error) {
    add_plane(voxels, z, rows, n);
    FV_TRY(fv__memory_check(error));
    if (voxels->size < FV_MAX(*enough, MANY * sizeof(point))) return FV_OK;
    FV_TRY(thin_out(voxels, error));
    *enough = 2 * voxels->size;
    return FV_OK;
}

/* Rows of the plane z that meet a face: bounds of x there. */
static void cut_face(const solid *s, const face *f, int64_t z, int64_t y0, int64_t y1, row *filled) {
    int64_t low = INT64_MAX, high = INT64_MIN, nx = f->normal[2];
    if (f->gone || !nx) return;
    for (int k = 0; k < 3; k++) {
        const point *a = &s->points[f->corner[k]], *b = &s->points[f->corner[(k + 1) % 3]];
        if (a->at[0] > b->at[0]) {
            const point *swap = a;
            a = b;
            b = swap;
        }
        if (a->at[0] > z || b->at[0] < z) continue;
        __int128 dz = b->at[0] - a->at[0];
        if (!dz) {
            low = FV_MIN(low, FV_MIN(ceil_div(a->at[1], 2), ceil_div(b->at[1], 2)));
            high = FV_MAX(high, FV_MAX(floor_div(a->at[1], 2), floor_div(b->at[1], 2)));
            continue;
        }
        __int128 y = a->at[1] * dz + (__int128)(b->at[1] - a->at[1]) * (z - a->at[0]);
        low = FV_MIN(low, ceil_div(y, 2 * dz));
        high = FV_MAX(high, floor_div(y, 2 * dz));
    }
    for (int64_t y = FV_MAX(low, y0); y <= FV_MIN(high, y1); y++) {
        __int128 x = f->level - (__int128)f->normal[0] * z - (__int128)f->normal[1] * 2 * y;
        row     *r = &filled[y - y0];
        if (nx > 0)
            r->last = FV_MIN(r->last, floor_div(x, 2 * (__int128)nx));
        else
            r->first = FV_MAX(r->first, ceil_div(x, 2 * (__int128)nx));
    }
}

/* Counts the voxels of the convex object, and leaves the corners of its planes' hulls. */
static fv_status fill_space(const fv__hull *hull, const solid *s, fv_bytes *convex, int64_t *voxels, fv_error *error) {
    int64_t   y0 = hull->low[1], y1 = hull->high[1];
    row      *filled = fv__alloc((size_t)(y1 - y0 + 1) * sizeof *filled);
    size_t    enough = 0;
    fv_status status = FV_OK;
    *voxels = 0;
    for (int64_t z = hull->low[0]; z <= hull->high[0] && status == FV_OK; z++) {
        int64_t n = 0;
        for (int64_t y = y0; y <= y1; y++) filled[y - y0] = (row){ y, INT64_MIN, INT64_MAX };
        for (int64_t i = 0; i < faces_of(s); i++) cut_face(s, face_at(s, i), 2 * z, y0, y1, filled);
        for (int64_t k = 0; k <= y1 - y0; k++) {
            if (filled[k].first == INT64_MIN || filled[k].last == INT64_MAX || filled[k].first > filled[k].last) continue;
            *voxels += filled[k].last - filled[k].first + 1;
            filled[n++] = filled[k];
        }
        status = add_voxels(convex, &enough, z, filled, n, error);
    }
    free(filled);
    return status;
}

/* ---------------------------------------------------------------- diameters */

static double distance(const point *a, const point *b, const double *spacing) {
    double sum = 0;
    for (int d = 0; d < 3; d++) {
        double step = (double)(a->at[d] - b->at[d]) * spacing[d];
        sum += step * step;
    }
    return sum;
}

static double greatest(const point *p, int64_t n, const double *spacing) {
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = i + 1; k < n; k++) most = FV_MAX(most, distance(&p[i], &p[k], spacing));
    return sqrt(most) / 2;
}

static int by_place(const void *a, const void *b) {
    const point *x = a, *y = b;
    for (int d = 0; d < 3; d++)
        if (x->at[d] != y->at[d]) return x->at[d] < y->at[d] ? -1 : 1;
    return 0;
}

static __int128 turn(const point *a, const point *b, const point *c) {
    return (__int128)(b->at[1] - a->at[1]) * (c->at[2] - a->at[2]) - (__int128)(b->at[2] - a->at[2]) * (c->at[1] - a->at[1]);
}

/* The corners of a plane's hull, in order around it. */
static int64_t outline(point *p, int64_t n, point *out) {
    int64_t count = 0;
    qsort(p, (size_t)n, sizeof *p, by_place);
    for (int round = 0; round < 2; round++) {
        int64_t least = count + 1;
        for (int64_t k = 0; k < n; k++) {
            const point *next = &p[round ? n - 1 - k : k];
            while (count > least && turn(&out[count - 2], &out[count - 1], next) <= 0) count--;
            out[count++] = *next;
        }
        count--; /* where the other side begins */
    }
    return count;
}

/* Least distance of two parallels that the outline fits between: one of them lies along an edge. */
static double narrowest(const point *p, int64_t n, const double *spacing) {
    double least = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const point *a = &p[i], *b = &p[(i + 1) % n];
        double       dy = (double)(b->at[1] - a->at[1]) * spacing[1], dx = (double)(b->at[2] - a->at[2]) * spacing[2], most = 0;
        for (int64_t k = 0; k < n; k++) {
            double y = (double)(p[k].at[1] - a->at[1]) * spacing[1], x = (double)(p[k].at[2] - a->at[2]) * spacing[2];
            most = FV_MAX(most, fabs(dy * x - dx * y));
        }
        least = FV_MIN(least, most / sqrt(dy * dy + dx * dx));
    }
    return least / 2;
}

/* ---------------------------------------------------------------- objects */

void fv__hull_start(fv__hull *hull) {
    fv__bytes_clear(&hull->points);
    fv__bytes_clear(&hull->plane);
    hull->rows = 0;
    hull->enough = 0;
}

static fv_status end_plane(fv__hull *hull, fv_error *error) {
    const row *rows = (const row *)hull->plane.data;
    int64_t    n = (int64_t)(hull->plane.size / sizeof(row));
    FV_TRY(add_voxels(&hull->points, &hull->enough, hull->z, rows, n, error));
    fv__bytes_clear(&hull->plane);
    return FV_OK;
}

fv_status fv__hull_row(fv__hull *hull, int64_t z, int64_t y, int64_t first, int64_t last, fv_error *error) {
    int64_t low[3] = { z, y, first }, high[3] = { z, y, last };
    row     r = { y, first, last };
    for (int d = 0; d < 3; d++) {
        hull->low[d] = hull->rows ? FV_MIN(hull->low[d], low[d]) : low[d];
        hull->high[d] = hull->rows ? FV_MAX(hull->high[d], high[d]) : high[d];
    }
    if (hull->rows++ && hull->z != z) FV_TRY(end_plane(hull, error));
    hull->z = z;
    fv__bytes_append(&hull->plane, &r, sizeof r);
    return fv__memory_check(error);
}

static fv_status finish_plane(fv__hull *hull, const double *spacing, fv__hull_measures *m, fv_error *error) {
    int64_t  y0 = hull->low[1], y1 = hull->high[1];
    row     *filled;
    fv_bytes voxels = { 0 }, corners = { 0 };
    FV_TRY(FV_TAKE(filled, (size_t)(y1 - y0 + 1) * sizeof *filled, error));
    *m = (fv__hull_measures){ 0 };
    fill_plane((const row *)hull->plane.data, (int64_t)(hull->plane.size / sizeof(row)), y0, y1, filled);
    for (int64_t k = 0; k <= y1 - y0; k++) m->voxels += filled[k].last - filled[k].first + 1;
    add_plane(&voxels, 0, filled, y1 - y0 + 1);
    fv_status status = corners_of(&voxels, &corners, error);
    point    *p = (point *)corners.data, *around = NULL;
    int64_t   n = 0;
    for (size_t i = 0; i < corners.size / sizeof *p; i++)
        if (!p[i].at[0]) p[n++] = p[i]; /* those in the plane */
    if (status == FV_OK) status = FV_TAKE(around, (size_t)(2 * n + 2) * sizeof *around, error);
    if (status == FV_OK) {
        n = outline(p, n, around);
        m->feret_max = greatest(around, n, spacing);
        m->feret_min = narrowest(around, n, spacing);
    }
    free(around);
    free(filled);
    fv__bytes_release(&voxels);
    fv__bytes_release(&corners);
    return status;
}

static void as_doubles(const int64_t from[3], double to[3]) {
    for (int d = 0; d < 3; d++) to[d] = (double)from[d];
}

/* The edge of a face from corner k to the next. */
static fv__hull_edge edge_of(const solid *s, const face *f, int k) {
    const face   *other = face_at(s, f->beside[k]);
    int64_t       to = f->corner[(k + 1) % 3];
    const point  *a = &s->points[f->corner[k]], *third[2] = { &s->points[f->corner[(k + 2) % 3]], NULL };
    fv__hull_edge e = { 0 };
    for (int j = 0; j < 3; j++)
        if (other->corner[j] != f->corner[k] && other->corner[j] != to) third[1] = &s->points[other->corner[j]];
    as_doubles(a->at, e.at);
    as_doubles(f->normal, e.normal[0]);
    as_doubles(other->normal, e.normal[1]);
    for (int d = 0; d < 3; d++) {
        e.along[d] = (double)(s->points[to].at[d] - a->at[d]);
        for (int j = 0; j < 2; j++) e.beyond[j][d] = (double)(third[j]->at[d] - a->at[d]);
    }
    return e;
}

/* Whether the faces at an edge lie in one plane. */
static bool flat_edge(const solid *s, const face *f, int k) {
    const face *other = face_at(s, f->beside[k]);
    for (int j = 0; j < 3; j++)
        if (above(f, &s->points[other->corner[j]])) return false;
    return true;
}

/* The least width; used: which points are corners of faces. */
static fv_status width_of(const solid *s, const bool *used, const double *spacing, double *width, fv_error *error) {
    int64_t        nfaces = faces_of(s);
    fv__hull_shape shape = { 0 };
    double(*corner)[3] = NULL, (*normal)[3] = NULL, (*on)[3] = NULL;
    fv__hull_edge *edge = NULL;
    *width = NAN;
    fv_status status = FV_TAKE(corner, (size_t)s->npoints * sizeof *corner, error);
    if (status == FV_OK) status = FV_TAKE(normal, (size_t)nfaces * 2 * sizeof *normal, error);
    if (status == FV_OK) status = FV_TAKE(edge, (size_t)(nfaces * 3 / 2 + 1) * sizeof *edge, error);
    on = normal ? normal + nfaces : NULL;
    for (int64_t i = 0; i < s->npoints && status == FV_OK; i++)
        if (used[i]) as_doubles(s->points[i].at, corner[shape.corners++]);
    for (int64_t i = 0; i < nfaces && status == FV_OK; i++) {
        const face *f = face_at(s, i);
        if (f->gone) continue;
        as_doubles(s->points[f->corner[0]].at, on[shape.faces]);
        as_doubles(f->normal, normal[shape.faces++]);
        for (int k = 0; k < 3; k++)
            if (f->beside[k] > i && !flat_edge(s, f, k)) edge[shape.edges++] = edge_of(s, f, k);
    }
    shape.corner = (const double(*)[3])corner;
    shape.normal = (const double(*)[3])normal;
    shape.on = (const double(*)[3])on;
    shape.edge = edge;
    if (status == FV_OK) status = fv__hull_width(&shape, spacing, width, error);
    *width /= 2;
    free(corner);
    free(normal);
    free(edge);
    return status;
}

static fv_status measure_whole(const solid *whole, fv_bytes *points, const double *spacing, fv__hull_measures *m,
                               fv_error *error) {
    bool   *used;
    point  *p = (point *)points->data;
    int64_t n = 0;
    FV_TRY(find_used(whole, &used, error));
    fv_status status = width_of(whole, used, spacing, &m->feret_min, error);
    for (int64_t i = 0; i < whole->npoints; i++)
        if (used[i]) p[n++] = p[i];
    m->feret_max = greatest(p, n, spacing);
    free(used);
    return status;
}

static fv_status finish_space(fv__hull *hull, const double *spacing, fv__hull_measures *m, fv_error *error) {
    fv_bytes  corners = { 0 }, convex = { 0 }, of_convex = { 0 };
    solid     s = { 0 }, whole = { 0 };
    fv_status status = corners_of(&hull->points, &corners, error);
    if (status == FV_OK) status = solid_make(&s, &corners, error);
    if (status == FV_OK) status = fill_space(hull, &s, &convex, &m->voxels, error);
    solid_release(&s);
    fv__bytes_release(&corners);
    if (status == FV_OK) status = corners_of(&convex, &of_convex, error);
    if (status == FV_OK) status = solid_make(&whole, &of_convex, error);
    if (status == FV_OK) status = measure_whole(&whole, &of_convex, spacing, m, error);
    solid_release(&whole);
    fv__bytes_release(&convex);
    fv__bytes_release(&of_convex);
    return status;
}

fv_status fv__hull_finish(fv__hull *hull, const double spacing[3], bool plane, fv__hull_measures *measures, fv_error *error) {
    if (plane) return finish_plane(hull, spacing, measures, error);
    FV_TRY(end_plane(hull, error));
    return finish_space(hull, spacing, measures, error);
}

void fv__hull_release(fv__hull *hull) {
    fv__bytes_release(&hull->points);
    fv__bytes_release(&hull->plane);
}
