/* Numbers and their nouns in messages. */
#include "base/agreement.h"
#include "base/base.h"
#include "support/test.h"

static const char *say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *say(const char *format, ...) {
    static char text[256];
    va_list     arguments;
    va_start(arguments, format);
    fv__vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

TEST(one_thing_is_not_many) {
    CHECK_TEXT(say("%s takes at most %d arguments", "max", 1), "max takes at most 1 argument");
    CHECK_TEXT(say("%s takes at most %d arguments", "max", 2), "max takes at most 2 arguments");
    CHECK_TEXT(say("%s: %lld bytes are too few", "a", 1LL), "a: 1 byte is too few");
    CHECK_TEXT(say("%s: %lld bytes are too few", "a", 11LL), "a: 11 bytes are too few");
    CHECK_TEXT(say("%d indices, but the image has %d axes", 1, 1), "1 index, but the image has 1 axis");
    CHECK_TEXT(say("%d numbers; the image has %d spatial axes", 2, 1), "2 numbers; the image has 1 spatial axis");
    CHECK_TEXT(say("%zu rows (%ld columns)", (size_t)1, 1L), "1 row (1 column)");
    CHECK_TEXT(say("%u files", 1U), "1 file");
}

TEST(what_is_filled_in_and_other_words_stay) {
    CHECK_TEXT(say("%s has %d axes", "1 files.tif", 3), "1 files.tif has 3 axes");
    CHECK_TEXT(say("chunk %d does not fit its objects", 1), "chunk 1 does not fit its objects");
    CHECK_TEXT(say("slice %lld is there twice, 100 %% of %d files_x", 1LL, 1), "slice 1 is there twice, 100 % of 1 files_x");
    CHECK_TEXT(say("%d", 1), "1");
}

TEST(arguments_of_every_kind_are_passed_over) {
    CHECK_TEXT(say("%g %.3f %e|%c %x|%.*s|%-4s|%d files", 1.0, 1.0, 1.0, 'a', 1U, 2, "abc", "d", 1),
               "1 1.000 1.000000e+00|a 1|ab|d   |1 file");
}

TEST(errors_agree) {
    fv_error error = { 0 };
    fv_fail(&error, FV_ERROR_USAGE, "range has %d numbers; give two", 1);
    CHECK_TEXT(error.message, "range has 1 number; give two");
}

TEST_MAIN
