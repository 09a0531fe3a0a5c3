/* Sizes and near words as people write them. */
#include "base/base.h"
#include "support/test.h"

TEST(sizes_are_written_for_people) {
    static const struct {
        int64_t     bytes;
        const char *text;
    } samples[] = {
        { 0, "0 B" },           { 1023, "1023 B" },     { 1024, "1.0 KiB" },      { 1536, "1.5 KiB" },
        { 1048575, "1.0 MiB" }, { 1 << 20, "1.0 MiB" }, { 5ll << 40, "5.0 TiB" }, { INT64_MAX, "8.0 EiB" },
    };
    for (int i = 0; i < FV_COUNT(samples); i++) {
        char text[24];
        fv_size_format(samples[i].bytes, text);
        CHECK_TEXT(text, samples[i].text);
    }
}

TEST(sizes_are_read_in_many_spellings) {
    static const struct {
        const char *text;
        int64_t     bytes;
    } samples[] = {
        { "0", 0 },          { "4096", 4096 },       { "1K", 1024 },       { "1.5k", 1536 }, { "512M", 512ll << 20 },
        { "4G", 4ll << 30 }, { "2 GiB", 2ll << 30 }, { "2GB", 2ll << 30 }, { "100B", 100 },  { "1T", 1ll << 40 },
    };
    static const char *const wrong[] = { "", "x", "-1", "4Q", "G", "4 G 2", "1e30", "nan", "inf", "4Gx", "99999999E" };
    int64_t                  bytes;
    for (int i = 0; i < FV_COUNT(samples); i++) {
        CHECK_MESSAGE(fv_size_parse(samples[i].text, &bytes), "%s is refused", samples[i].text);
        CHECK_INT(bytes, samples[i].bytes);
    }
    for (int i = 0; i < FV_COUNT(wrong); i++) CHECK_MESSAGE(!fv_size_parse(wrong[i], &bytes), "%s is taken", wrong[i]);
}

TEST(errors_tell_addresses_without_their_query) {
    static const struct {
        const char *text, *told;
    } samples[] = {
        { "https://h/a.h5?X-Signature=ab:cd&e=f: no HDF5", "https://h/a.h5: no HDF5" },
        { "read(\"s3://b/k?v=1\") and s3://b/l?v=2", "read(\"s3://b/k\") and s3://b/l" },
        { "is it http://h/a? or b.tif?", "is it http://h/a? or b.tif?" },
        { "a?b=c and 1 :// 2", "a?b=c and 1 :// 2" },
    };
    for (int i = 0; i < FV_COUNT(samples); i++) {
        fv_error error;
        fv_fail(&error, FV_ERROR_INPUT, "%s", samples[i].text);
        CHECK_TEXT(error.message, samples[i].told);
    }
}

TEST(a_near_word_is_found_and_a_far_one_is_not) {
    static const char *const words[] = { "gaussian", "median", "label" };
    CHECK_TEXT(fv_nearest_word("gausian", words, 3), "gaussian");
    CHECK_TEXT(fv_nearest_word("lable", words, 3), "label");
    CHECK(fv_nearest_word("watershed", words, 3) == NULL);
    CHECK(fv_nearest_word("x", words, 0) == NULL);
    CHECK(fv_nearest_word("b", (const char *const[]){ "a", "ab" }, 2) == NULL);
    CHECK_TEXT(fv_nearest_word("boz", (const char *const[]){ "a", "box" }, 2), "box");
}

TEST(text_is_broken_between_words) {
    static const struct {
        const char *text;
        int         indent;
        const char *wrapped;
    } samples[] = {
        { "", 2, "" },
        { "one two three four", 0, "one two\nthree four" },
        { "one two three", 4, "one two\n    three" },
        { "  a   b\n\nc d", 2, "a b\n\n  c d" },
        { "averyveryverylongword x", 0, "averyveryverylongword\nx" },
        { "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4\xc3\xa4", 2,
          "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4\xc3\xa4" },
        { "red\x1b[31m", 0, "red?[31m" },
    };
    for (int i = 0; i < FV_COUNT(samples); i++) {
        char *wrapped = fv_text_wrap(samples[i].text, samples[i].indent, 11);
        CHECK_TEXT(wrapped, samples[i].wrapped);
        free(wrapped);
    }
}

TEST_MAIN
