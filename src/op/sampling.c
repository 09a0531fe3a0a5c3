/* How the chunks of a reduction are sampled. */
#include "op/sampling.h"
#include "base/math.h"
#include "op/random.h"
#include <stdio.h>
#include <stdlib.h>

const fv_param fv__sampling_params[] = {
    FV_PARAM(fv_sampling, error, .def = "", .above = true,
             .doc =
                 "stop when the interval reaches at most this part of the value to each side: 0.01 is 1 %; or absolute, or time"),
    FV_PARAM(fv_sampling, absolute, .def = "", .above = true, .doc = "the same as a number of the value's own unit"),
    FV_PARAM(fv_sampling, time, .def = "", .above = true, .unit = "s", .doc = "stop when this time is over"),
    FV_PARAM(fv_sampling, confidence, .def = "0.95", .above = true, .doc = "how sure the interval is, above 0 and below 1"),
    FV_PARAM(fv_sampling, seed, .def = "0", .doc = "another seed takes other chunks"),
    FV_PARAM(fv_sampling, joint, .def = "false",
             .doc = "of a table: all of its intervals hold at once with this confidence, and not each for itself"),
    FV_PARAM(fv_sampling, whole, .def = "false", .own = true, .doc = "time is that of the whole run"),
    FV_PARAM_END,
};
fv_status fv__sampling_check(const fv_sampling *p, fv_error *error) {
    const double       asked[] = { p->error, p->absolute, p->time };
    static const char *names[] = { "error", "absolute", "time" };
    int                given = 0;
    for (int k = 0; k < 3; k++) {
        if (asked[k] < 0 || !isfinite(asked[k]))
            return fv_fail(error, FV_ERROR_USAGE, "%s = %g: it must be above 0", names[k], asked[k]);
        given += asked[k] > 0;
    }
    if (given != 1)
        return fv_fail(
            error, FV_ERROR_USAGE,
            "%sgive one of error = 0.01 (until it is known to 1 %% of the value), absolute = 2 (to 2 to each side) and "
            "time = 5 (seconds)",
            given ? "" : "when is it known well enough? ");
    if (p->error >= 1)
        return fv_fail(error, FV_ERROR_USAGE, "error = %g: this is %g times the value itself; %g %% is written %g", p->error,
                       p->error, p->error, p->error / 100);
    if (p->confidence > 1 && p->confidence < 100)
        return fv_fail(error, FV_ERROR_USAGE, "confidence = %g: it must be below 1; %g %% is written %g", p->confidence,
                       p->confidence, p->confidence / 100);
    if (!(p->confidence > 0 && p->confidence < 1))
        return fv_fail(error, FV_ERROR_USAGE, "confidence = %g: it must be above 0 and below 1, as 0.95", p->confidence);
    return FV_OK;
}

int64_t *fv__sampling_order(uint64_t seed, int64_t count) {
    int64_t *order = fv__alloc((size_t)(count + 1) * sizeof *order);
    uint64_t hash = fv__place_hash(seed, 0, count, 0, 0);
    for (int64_t i = 0; i < count; i++) order[i] = i;
    for (int64_t i = 0; i + 1 < count; i++) {
        int64_t other = i + (int64_t)(fv__uniform(hash, (uint64_t)i) * (double)(count - i)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    return order;
}

enum { FIRST_LOOK = 16 }; /* chunks */

int64_t fv__sampling_next(int64_t size, int64_t count) {
    int64_t next = size < FIRST_LOOK ? FIRST_LOOK : size + size / 5;
    return FV_MIN(next, count);
}

/* An epoch is what lies between two sizes of which one is half as large again as the other. Epoch k of n takes 2 k / (n (n + 1))
 * of the doubt, little at first, because a small sample does not know yet how long the tails are. Within an epoch the bound is a
 * line that the sum of what was seen crosses at no time (Howard and others, theorem 1, with steps of 3/2): it is z deviations
 * wide. What is told is the confidence of a single look that is as wide, from the tail of the normal distribution (Mills' ratio).
 */
double fv__sampling_look(double confidence, int64_t size, int64_t count) {
    const double tails = 0.5, step = 1.5, wide = (sqrt(sqrt(step)) + 1 / sqrt(sqrt(step))) / sqrt(2);
    int64_t      epoch = 1, epochs = 1;
    for (int64_t n = FIRST_LOOK; n < count; n += n / 2, epochs++) epoch += size > n;
    double doubt = (1 - confidence) * (1 - tails) * 2 * (double)epoch / (double)(epochs * (epochs + 1));
    double z = wide * sqrt(fv__ln(2 / doubt));
    return 1 - 2 * fv__exp(-z * z / 2) / sqrt(2 * 3.14159265358979324) * z / (z * z + 1);
}

/* Where the width rests on few chunks, as of a mask with rare objects, others like them were probably not met yet. Of values with
 * a normal distribution it rests on about a third of all. And where few are left, what these few hold is no sum of many. */
bool fv__sampling_sound(const fv_interval *e) {
    bool many = e->informative >= FV_MAX(5, FV_MIN(20, (double)e->seen / 4));
    return many && e->population - e->seen >= FV_LEAST_SAMPLE && isfinite(e->high - e->low);
}

double fv__sampling_wanted(const fv_sampling *sampling, double value) {
    return FV_MAX(sampling->absolute, sampling->error * fabs(value));
}

bool fv__sampling_reached(const fv_sampling *sampling, const fv_interval *e) {
    double half = FV_MAX(e->high - e->value, e->value - e->low);
    return fv__sampling_sound(e) && half <= fv__sampling_wanted(sampling, e->value);
}

/* ---------------------------------------------------------------- tables */

void fv__estimates_init(fv_estimates *e, int64_t nrows, int nplain, int nvalues) {
    *e = (fv_estimates){ .nrows = nrows, .nplain = nplain, .nvalues = nvalues };
    e->plain = fv__calloc((size_t)(nrows * nplain + 1) * sizeof *e->plain);
    e->interval = fv__calloc((size_t)(nrows * nvalues + 1) * sizeof *e->interval);
}

void fv__estimates_release(fv_estimates *e) {
    free(e->plain);
    free(e->interval);
    fv__arena_release(&e->texts);
    *e = (fv_estimates){ 0 };
}

fv_status fv__sampling_table(const fv_table_type *exact, int plain, const char *units, fv_table_type *out, fv_error *error) {
    fv_column seen[] = {
        { "confidence", FV_COLUMN_REAL }, { "seen", FV_COLUMN_INTEGER }, { "", FV_COLUMN_INTEGER }, { "method", FV_COLUMN_TEXT }
    };
    snprintf(seen[2].name, sizeof seen[2].name, "%s", units);
    if (plain + 3 * (exact->ncolumns - plain) + FV_COUNT(seen) > FV_MAX_COLUMNS)
        return fv_fail(error, FV_ERROR_USAGE, "the table has too many columns to be estimated");
    *out = (fv_table_type){ 0 };
    for (int c = 0; c < exact->ncolumns; c++) {
        fv_column *column = &out->column[out->ncolumns++];
        *column = exact->column[c];
        if (c < plain) continue;
        column->kind = FV_COLUMN_REAL;
        for (int k = 0; k < 2; k++) {
            fv_column *end = &out->column[out->ncolumns++];
            end->kind = FV_COLUMN_REAL;
            snprintf(end->name, sizeof end->name, "%.*s%s", (int)sizeof end->name - 6, exact->column[c].name,
                     k ? "_high" : "_low");
        }
    }
    for (int c = 0; c < FV_COUNT(seen); c++) out->column[out->ncolumns++] = seen[c];
    return FV_OK;
}
