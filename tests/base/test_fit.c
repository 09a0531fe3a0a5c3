/* Lines and Amdahl's law through made-up points with known answers. */
#include "base/fit.h"
#include "support/test.h"
#include <math.h>

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * (1 + fabs(b)); }

TEST(a_line_is_found_exactly) {
    double  x[] = { 1, 2, 5, 10 }, y[] = { 5, 8, 17, 32 };
    fv_line line = fv__fit_line(x, y, 4);
    CHECK(near(line.fixed, 2) && near(line.slope, 3));
    CHECK(line.spread < 1e-9 && fv__line_error(&line, 100) < 1e-7);
    CHECK(near(fv__line_at(&line, 100), 302));
}

TEST(a_noisy_line_tells_its_error_which_grows_away_from_the_points) {
    double   x[200], y[200];
    uint64_t seed = 7;
    for (int i = 0; i < 200; i++) {
        double noise = 0;
        for (int k = 0; k < 12; k++) noise += (double)(test_random(&seed) >> 11) * 0x1p-53;
        x[i] = i;
        y[i] = 100 + 2 * i + 10 * (noise - 6); /* deviation 10 */
    }
    fv_line line = fv__fit_line(x, y, 200);
    CHECK(fabs(line.spread - 10) < 2);
    CHECK(fabs(fv__line_at(&line, 100) - 300) < 4 * fv__line_error(&line, 100));
    CHECK(fabs(fv__line_at(&line, 1000) - 2100) < 4 * fv__line_error(&line, 1000));
    CHECK(fv__line_error(&line, 1000) > 5 * fv__line_error(&line, 100));
}

TEST(times_never_shrink_with_size_and_never_start_below_zero) {
    double  x[] = { 1, 2, 3 }, falling[] = { 9, 6, 3 }, steep[] = { 0, 10, 20 };
    fv_line line = fv__fit_line(x, falling, 3);
    CHECK(line.slope == 0 && near(line.fixed, 6));
    line = fv__fit_line(x, steep, 3);
    CHECK(line.fixed == 0 && near(line.slope, 80.0 / 14));
}

TEST(items_of_one_size_are_proportional) {
    double  x[] = { 100, 101, 99, 100 }, y[] = { 2, 1, 3, 2 };
    fv_line line = fv__fit_line(x, y, 4);
    CHECK(line.fixed == 0 && fabs(fv__line_at(&line, 200) - 4) < 0.02);
}

TEST(items_without_a_size_have_a_constant_cost) {
    double  x[] = { 0, 0, 0 }, y[] = { 2, 3, 4 };
    fv_line line = fv__fit_line(x, y, 3);
    CHECK(line.slope == 0 && near(line.fixed, 3));
}

TEST(one_point_and_no_point_are_no_danger) {
    double  x[] = { 4 }, y[] = { 8 };
    fv_line line = fv__fit_line(x, y, 1), none = fv__fit_line(x, y, 0);
    CHECK(near(fv__line_at(&line, 8), 16));
    CHECK(fv__line_at(&none, 8) == 0 && fv__line_error(&none, 8) == 0);
}

TEST(amdahl_finds_the_serial_fraction) {
    double workers[] = { 1, 2, 4, 8, 16 }, seconds[5];
    for (int i = 0; i < 5; i++) seconds[i] = 120 * (0.1 + 0.9 / workers[i]);
    fv_amdahl fit = fv__fit_amdahl(workers, seconds, 5);
    CHECK(near(fit.serial, 0.1) && near(fit.seconds, 120) && fit.spread < 1e-9);
}

TEST(amdahl_of_perfect_scaling_and_of_none) {
    double    workers[] = { 1, 2, 4 }, perfect[] = { 8, 4, 2 }, none[] = { 8, 8, 8 };
    fv_amdahl fit = fv__fit_amdahl(workers, perfect, 3);
    CHECK(fabs(fit.serial) < 1e-9 && near(fit.seconds, 8));
    fit = fv__fit_amdahl(workers, none, 3);
    CHECK(near(fit.serial, 1) && near(fit.seconds, 8));
}

TEST(amdahl_of_one_measurement_takes_all_as_parallel) {
    double    workers[] = { 1 }, seconds[] = { 3 };
    fv_amdahl fit = fv__fit_amdahl(workers, seconds, 1);
    CHECK(near(fit.seconds, 3) && fit.serial == 0);
}

TEST(median_of_odd_and_even_numbers) {
    double odd[] = { 9, 1, 5 }, even[] = { 4, 1, 3, 2 };
    CHECK(fv__median(odd, 3) == 5 && fv__median(even, 4) == 2.5 && fv__median(odd, 0) == 0);
}

TEST_MAIN
