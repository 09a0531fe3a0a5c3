/* Patterns of file names as text; what they find on disk is tested with the command. */
#include "base/file_pattern.h"
#include "support/test.h"

TEST(patterns_fit_what_they_mean) {
    static const struct {
        const char *pattern, *path;
        bool        fits;
    } samples[] = {
        { "*.tif", "a.tif", true },
        { "*.tif", ".a.tif", false },
        { ".*.tif", ".a.tif", true },
        { "*.tif", "b/a.tif", false },
        { "*/*.tif", "b/a.tif", true },
        { "**/*.tif", "a.tif", true },
        { "**/*.tif", "c/b/a.tif", true },
        { "**/*.tif", ".c/b/a.tif", false },
        { "x/**/y/*.tif", "x/1/2/y/a.tif", true },
        { "x/**/y/*.tif", "x/y/a.tif", true },
        { "x/**/y/*.tif", "x/a.tif", false },
        { "a?.tif", "aé.tif", true },
        { "a[0-9].tif", "a7.tif", true },
        { "a[!0-9].tif", "a7.tif", false },
        { "a[]].tif", "a].tif", true },
        { "a[", "a[", true },
        { "a\\*", "a*", true },
        { "a\\*", "ab", false },
        { "{a,b*}.tif", "bcd.tif", true },
        { "{a,b*}.tif", "cd.tif", false },
        { "{a}.tif", "{a}.tif", true },
        { "{x/a,y/b}.tif", "y/b.tif", true },
        { "{a,{b,c}d}", "cd", true },
        { "{a,{b,c}d}", "c", false },
        { "./a*", "ab", true },
        { "a*", "./ab", true },
        { "*a*b*c", "xaybzc", true },
        { "*a*b*c", "xaybz", false },
        { "[[:digit:]]*", "1a", true },
        { "[[:digit:]]*", "a1", false },
    };
    for (int i = 0; i < FV_COUNT(samples); i++)
        CHECK_MESSAGE(fv__pattern_fits(samples[i].pattern, samples[i].path) == samples[i].fits, "%s and %s", samples[i].pattern,
                      samples[i].path);
}

TEST(numbers_in_names_are_in_order_of_value) {
    static const char *const ordered[] = {
        "a/z2.tif", "a1.tif", "a2.tif", "a02.tif", "a10.tif", "a10b.tif", "b", "b99999999999999999999", "b100000000000000000000"
    };
    for (int i = 0; i < FV_COUNT(ordered); i++)
        for (int k = 0; k < FV_COUNT(ordered); k++) {
            int  order = fv__natural_order(ordered[i], ordered[k]);
            bool tie = (i == 2 && k == 3) || (i == 3 && k == 2); /* the same number: either, but always the same */
            if (tie)
                CHECK_MESSAGE(order && order == -fv__natural_order(ordered[k], ordered[i]), "%s", ordered[i]);
            else
                CHECK_MESSAGE((order > 0) - (order < 0) == (i > k) - (i < k), "%s and %s", ordered[i], ordered[k]);
        }
}

TEST(names_with_wildcards_are_patterns) {
    static const char *const patterns[] = { "*.tif", "a?", "[ab]", "{a,b}.tif", "{well}_1.tif", "x/**/y" };
    static const char *const names[] = { "a.tif", "a[", "{}.tif", "{1}.tif", "\\{well}.tif", "a\\*", "https://host/a?b=*", "" };
    for (int i = 0; i < FV_COUNT(patterns); i++) CHECK_MESSAGE(fv__pattern_is(patterns[i]), "%s", patterns[i]);
    for (int i = 0; i < FV_COUNT(names); i++) CHECK_MESSAGE(!fv__pattern_is(names[i]), "%s", names[i]);
}

TEST_MAIN
