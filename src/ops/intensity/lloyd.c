/* k-means of points of several dimensions. */
#include "ops/intensity/lloyd.h"
#include "base/base.h"
#include "base/take.h"
#include "op/random.h"
#include <math.h>
#include <stdlib.h>

enum { STARTS = 3, MOST_STEPS = 300 };

static double apart(const double *a, const double *b, int dimensions) {
    double sum = 0;
    for (int d = 0; d < dimensions; d++) sum += (a[d] - b[d]) * (a[d] - b[d]);
    return sum;
}

/* k-means++: each next centre is a point, more likely one that is far from those before. Gives how many were found. */
static int choose_starts(const fv__lloyd *j, uint64_t hash, double *distance, double *centre) {
    int64_t at = (int64_t)(fv__uniform(hash, 0) * (double)j->count);
    for (int k = 0;; k++) {
        double total = 0, sum = 0;
        for (int d = 0; d < j->dimensions; d++) centre[k * j->dimensions + d] = j->point[at * j->dimensions + d];
        if (k + 1 == j->classes) return j->classes;
        for (int64_t i = 0; i < j->count; i++) {
            double new = apart(j->point + i * j->dimensions, centre + k * j->dimensions, j->dimensions);
            distance[i] = k && distance[i] <= new ? distance[i] : new;
            total += distance[i];
        }
        if (!(total > 0)) return k + 1;
        double wanted = fv__uniform(hash, (uint64_t)k + 1) * total;
        for (at = 0; at < j->count; at++) {
            sum += distance[at];
            if (distance[at] > 0 && sum >= wanted) break;
        }
        while (at >= j->count || !(distance[at] > 0))
            at--; /* the last that is not a centre itself, where rounding went past it */
    }
}

/* The class of each point; whether any has changed. */
static bool assign(const fv__lloyd *j, const double *centre, uint8_t *class, double *inertia) {
    bool changed = false;
    *inertia = 0;
    for (int64_t i = 0; i < j->count; i++) {
        double best = INFINITY;
        int    at = 0;
        for (int k = 0; k < j->classes; k++) {
            double distance = apart(j->point + i * j->dimensions, centre + k * j->dimensions, j->dimensions);
            if (distance < best) best = distance, at = k;
        }
        changed = changed || class[i] != at;
        class[i] = (uint8_t)at;
        *inertia += best;
    }
    return changed;
}

/* The means of the classes; a class that lost all its points keeps its centre. */
static void move(const fv__lloyd *j, const uint8_t *class, double *sum, double *centre) {
    int width = j->dimensions + 1;
    memset(sum, 0, (size_t)(j->classes * width) * sizeof *sum);
    for (int64_t i = 0; i < j->count; i++) {
        double *to = sum + class[i] * width;
        to[j->dimensions]++;
        for (int d = 0; d < j->dimensions; d++) to[d] += j->point[i * j->dimensions + d];
    }
    for (int k = 0; k < j->classes; k++)
        for (int d = 0; d < j->dimensions && sum[k * width + j->dimensions] > 0; d++)
            centre[k * j->dimensions + d] = sum[k * width + d] / sum[k * width + j->dimensions];
}

static double brightness(const double *centre, int dimensions) {
    double sum = 0;
    for (int d = 0; d < dimensions; d++) sum += centre[d];
    return sum;
}

static void sort_centres(const fv__lloyd *j, double *centre) {
    int n = j->dimensions;
    for (int k = 1; k < j->classes; k++)
        for (int i = k; i > 0 && brightness(centre + i * n, n) < brightness(centre + (i - 1) * n, n); i--)
            for (int d = 0; d < n; d++) {
                double kept = centre[i * n + d];
                centre[i * n + d] = centre[(i - 1) * n + d];
                centre[(i - 1) * n + d] = kept;
            }
}

fv_status fv__lloyd_find(const fv__lloyd *j, double *centre, int64_t *count, fv_error *error) {
    size_t  numbers = (size_t)(j->classes * j->dimensions), bytes = (2 * numbers + (size_t)j->classes + (size_t)j->count) * 8;
    double *distance, best = INFINITY;
    FV_TRY(FV_TAKE_ZEROED(distance, bytes + (size_t)j->count, error));
    double *trial = distance + j->count, *sum = trial + numbers;
    uint8_t *class = (uint8_t *)distance + bytes;
    int64_t found = j->classes;
    for (int64_t i = 0; i < j->count * j->dimensions && found > 0; i++)
        if (!isfinite(j->point[i])) found = -1;
    for (int start = 0; start < STARTS && found == j->classes; start++) {
        double inertia;
        found = choose_starts(j, fv__place_hash(j->seed, 2, 0, 0, start), distance, trial);
        if (found < j->classes) break;
        assign(j, trial, class, &inertia);
        for (int step = 0; step < MOST_STEPS; step++) {
            move(j, class, sum, trial);
            if (!assign(j, trial, class, &inertia)) break;
        }
        if (inertia < best) best = inertia, memcpy(centre, trial, numbers * sizeof *centre);
    }
    if (found == j->classes) sort_centres(j, centre);
    free(distance);
    *count = found;
    return FV_OK;
}
