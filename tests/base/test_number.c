/* Numbers as text: every double reads back the same, and no shorter text would. */
#include "base/number.h"
#include "support/test.h"
#include <math.h>

static const char *text(double value) {
    static char buffer[FV_NUMBER_SIZE];
    fv__real_format(value, buffer);
    return buffer;
}

TEST(familiar_numbers_look_familiar) {
    CHECK_TEXT(text(0), "0");
    CHECK_TEXT(text(-0.0), "-0");
    CHECK_TEXT(text(1), "1");
    CHECK_TEXT(text(-12.5), "-12.5");
    CHECK_TEXT(text(0.1), "0.1");
    CHECK_TEXT(text(0.1 + 0.2), "0.30000000000000004");
    CHECK_TEXT(text(1.0 / 3), "0.3333333333333333");
    CHECK_TEXT(text(1e-5), "0.00001");
    CHECK_TEXT(text(9007199254740991.0), "9007199254740991");
    CHECK_TEXT(text(2251799813685249.5), "2251799813685249.5");
    CHECK_TEXT(text(1e300), "1e+300");
    CHECK_TEXT(text(5e-324), "5e-324");
    CHECK_TEXT(text(NAN), "nan");
    CHECK_TEXT(text(-NAN), "nan");
    CHECK_TEXT(text(INFINITY), "inf");
    CHECK_TEXT(text(-INFINITY), "-inf");
}

TEST(integers_up_to_the_ends) {
    char buffer[FV_NUMBER_SIZE];
    CHECK(fv__integer_format(INT64_MIN, buffer) == 20);
    CHECK_TEXT(buffer, "-9223372036854775808");
    CHECK(fv__integer_format(INT64_MAX, buffer) == 19);
    CHECK_TEXT(buffer, "9223372036854775807");
    CHECK(fv__integer_format(0, buffer) == 1);
}

static bool round_trips(double value) {
    char buffer[FV_NUMBER_SIZE];
    int  length = fv__real_format(value, buffer);
    return length == (int)strlen(buffer) && strtod(buffer, NULL) == value;
}

/* The number of significant digits in a fixed-point text. */
static int significant(const char *p) {
    int n = 0, zeros = 0; /* zeros: at the end */
    for (; *p; p++) {
        if (*p == '.' || (*p == '0' && !n)) continue;
        n++;
        zeros = *p == '0' ? zeros + 1 : 0;
    }
    return n - zeros;
}

TEST(every_real_reads_back_and_is_as_short_as_can_be) {
    uint64_t state = 5;
    for (int i = 0; i < 80000; i++) {
        uint64_t bits = test_random(&state);
        double   any, near = (double)(int64_t)(bits >> 11) * 0x1p-53 * pow(10, (double)(i % 18) - 4);
        memcpy(&any, &bits, sizeof any);
        CHECK_MESSAGE(any != any || round_trips(any), "%.17g becomes %s", any, text(any));
        CHECK_MESSAGE(round_trips(near), "%.17g becomes %s", near, text(near));
        if (near < 1e-5 || near >= 0x1p53) continue;
        char shorter[400];
        int  digits = significant(text(near));
        if (digits < 2) continue;
        snprintf(shorter, sizeof shorter, "%.*g", digits - 1, near);
        CHECK_MESSAGE(strtod(shorter, NULL) != near, "%s could be %s", text(near), shorter);
    }
}

TEST(powers_of_two_and_their_neighbours_read_back) {
    for (int e = -1074; e <= 1023; e++) {
        double v = ldexp(1, e);
        CHECK(round_trips(v) && round_trips(nextafter(v, 0)) && round_trips(nextafter(v, INFINITY)) && round_trips(-v));
    }
}

TEST_MAIN
