/* Intervals of quantiles. */
#include "op/interval.h"
#include "support/test.h"
#include <math.h>

static double evenly(const fv_ranked *r, double part) {
    (void)r;
    return 1 + part;
}

/* Values lie closer to each other the larger they are. */
static double ever_denser(const fv_ranked *r, double part) {
    (void)r;
    return sqrt(part);
}

/* By how much the interval of a part of 0.4 to 0.6 grows. */
static double price(double (*at)(const fv_ranked *, double), const fv_sampling *chosen) {
    const fv_sample s = { .seen = 64, .population = 4096, .confidence = 0.95, .chosen = chosen };
    const fv_ranked r = { .at = at };
    fv_interval     e = { .value = 0.5, .low = 0.4, .high = 0.6 };
    double          below, above;
    CHECK(fv__interval_parts(&s, &r, 0.5, &e, &below, &above));
    CHECK(fabs((0.5 - below) - (above - 0.5)) < 1e-12);
    return (above - 0.5) / 0.1;
}

static bool is_one(double x) { return fabs(x - 1) < 1e-6; }

TEST(a_quantile_pays_where_its_own_place_decides_that_the_sample_ends) {
    const fv_sampling number = { .absolute = 0.1 }, part = { .error = 0.1 }, vague = { .error = 0.5 };
    CHECK(is_one(price(evenly, NULL)) && is_one(price(ever_denser, NULL)));
    CHECK(is_one(price(evenly, &number))); /* it would have ended at the same size everywhere */
    CHECK(is_one(price(evenly, &vague)));  /* and here as well, though it had gone on for too long */
    double dense = price(ever_denser, &part);
    CHECK(is_one(price(evenly, &part)) && dense > 1.05 && dense < 2);
}

TEST(a_quantile_whose_interval_leaves_the_values_is_not_known) {
    const fv_sample s = { .seen = 64, .population = 4096, .confidence = 0.95 };
    const fv_ranked r = { .at = evenly };
    fv_interval     e = { .value = 0.05, .low = -0.05, .high = 0.15 };
    double          below, above;
    CHECK(!fv__interval_parts(&s, &r, 0.05, &e, &below, &above) && isnan(e.low) && isnan(e.high));
}

TEST_MAIN
