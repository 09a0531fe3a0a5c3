/* Speed-up, efficiency, noise and Amdahl's fraction from made-up times with known answers. */
#include "support/test.h"
#include <fovea/scale.h>
#include <math.h>

static bool near(double a, double b) { return fabs(a - b) < 1e-9; }

TEST(strong_efficiency_is_t1_over_n_tn) {
    fv_scale_row rows[] = { { .workers = 1, .seconds = 80, .least = 79, .most = 81 },
                            { .workers = 4, .seconds = 25, .least = 20, .most = 30 } };
    fv_scaling   s = { .rows = rows, .nrows = 2 };
    fv_scaling_derive(&s);
    CHECK(near(rows[0].speedup, 1) && near(rows[0].efficiency, 1));
    CHECK(near(rows[1].speedup, 3.2) && near(rows[1].efficiency, 0.8));
    CHECK(near(s.noise, 0.4));
}

TEST(weak_efficiency_is_t1_over_tn) {
    fv_scale_row rows[] = { { .weak = true, .workers = 1, .seconds = 10 }, { .weak = true, .workers = 8, .seconds = 12.5 } };
    fv_scaling   s = { .rows = rows, .nrows = 2 };
    fv_scaling_derive(&s);
    CHECK(near(rows[1].efficiency, 0.8) && near(rows[1].speedup, 6.4));
    CHECK(!s.fitted);
}

TEST(each_kind_is_compared_with_its_own_run_on_one_worker) {
    fv_scale_row rows[] = { { .workers = 1, .seconds = 100 },
                            { .workers = 2, .seconds = 50 },
                            { .weak = true, .workers = 1, .seconds = 10 },
                            { .weak = true, .workers = 2, .seconds = 10 } };
    fv_scaling   s = { .rows = rows, .nrows = 4 };
    fv_scaling_derive(&s);
    for (int i = 0; i < 4; i++) CHECK(near(rows[i].efficiency, 1));
    CHECK(s.fitted && near(s.serial, 0) && near(s.serial_seconds, 100));
}

TEST(the_serial_fraction_of_strong_rows_is_found) {
    fv_scale_row rows[5];
    for (int i = 0; i < 5; i++) rows[i] = (fv_scale_row){ .workers = 1 << i, .seconds = 60 * (0.2 + 0.8 / (1 << i)) };
    fv_scaling s = { .rows = rows, .nrows = 5 };
    fv_scaling_derive(&s);
    CHECK(s.fitted && fabs(s.serial - 0.2) < 1e-6);
}

TEST(rows_without_a_run_on_one_worker_or_without_time_are_no_danger) {
    fv_scale_row rows[] = { { .workers = 2, .seconds = 5 }, { .weak = true, .workers = 1, .seconds = 0 } };
    fv_scaling   s = { .rows = rows, .nrows = 2 };
    fv_scaling_derive(&s);
    CHECK(rows[0].speedup == 0 && rows[1].speedup == 0);
}

TEST_MAIN
