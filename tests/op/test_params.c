/* Parameters: literals, defaults, validation and their text. */
#include "op/params.h"
#include "support/test.h"

typedef struct {
    double          sigma, cut;
    int64_t         size, any;
    bool            flag;
    const char     *text;
    fv_choice       mode;
    fv_numbers      list;
    fv_dtype_choice dtype;
    fv_footprint    shape;
} sample;

static const fv_param params[] = {
    FV_PARAM(sample, sigma, .min = 0, .max = 100, .above = true),
    FV_PARAM(sample, cut, .def = "0.5", .min = 0.25),
    FV_PARAM(sample, size, .def = "3", .min = 1, .max = 9),
    FV_PARAM(sample, any, .def = ""),
    FV_PARAM(sample, flag, .def = "true"),
    FV_PARAM(sample, text, .def = "say \"so\""),
    FV_PARAM(sample, mode, .def = "wrap", .choices = "reflect|nearest|wrap"),
    FV_PARAM(sample, list, .def = "[1, 2.5]", .min = -4, .max = 4),
    FV_PARAM(sample, dtype, .def = ""),
    FV_PARAM(sample, shape, .def = "cross()"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE }, { "mask", FV_KIND_IMAGE, .optional = true }, FV_INPUT_END };
static const fv_op    op = { .name = "sample", .params = params, .params_size = sizeof(sample), .inputs = inputs };

static fv_arena arena;

static fv_literal literal(const char *text) {
    fv_literal value;
    if (!fv__literal_parse(text, &value, &arena)) abort();
    return value;
}

static fv_status set(sample *s, const char *name, const char *text, fv_error *error) {
    fv_literal value = literal(text);
    return fv__params_set(&op, fv__params_find(&op, name), s, &value, &arena, error);
}

TEST(literals_are_read) {
    CHECK(literal("3").kind == FV_LITERAL_NUMBER && literal("3").number == 3 && literal("3").integral);
    CHECK(literal(" -2.5e3 ").number == -2500 && !literal("-2.5e3").integral && literal(".5").number == 0.5);
    CHECK(literal("0.1").number == 0.1 && literal("9007199254740993").number == 9007199254740992.0);
    CHECK(literal("true").kind == FV_LITERAL_FLAG && literal("true").flag && !literal("false").flag);
    CHECK_TEXT(literal("word").text, "word");
    CHECK_TEXT(literal("\"3\"").text, "3");
    CHECK_TEXT(literal("3 px").text, "3 px");
    CHECK_TEXT(literal("nan").text, "nan");
    CHECK_TEXT(literal("").text, "");
    fv_literal list = literal("[1, -2,3.5 ]");
    CHECK(list.kind == FV_LITERAL_NUMBERS && list.numbers.count == 3 && list.numbers.value[1] == -2 &&
          list.numbers.value[2] == 3.5);
    CHECK(literal("[]").numbers.count == 0);
}

TEST(broken_lists_are_refused) {
    char too_long[4 * FV_MAX_NUMBERS] = "[0";
    for (int i = 0; i < FV_MAX_NUMBERS; i++) strcat(too_long, ",1");
    strcat(too_long, "]");
    const char *const broken[] = { "[", "[1", "[1,", "[1,]", "[1 2]", "[a]", "[1]x", "[1] 2", "[1,,2]", too_long };
    for (int i = 0; i < FV_COUNT(broken); i++) {
        fv_literal value;
        CHECK_MESSAGE(!fv__literal_parse(broken[i], &value, &arena), "%s was taken", broken[i]);
    }
}

TEST(defaults_are_filled_in) {
    sample s = { 0 };
    fv__params_default(&op, &s);
    CHECK(s.sigma == 0 && s.cut == 0.5 && s.size == 3 && s.any == 0 && s.flag && s.mode.index == 2 && s.dtype.dtype == -1);
    CHECK(s.list.count == 2 && s.list.value[1] == 2.5 && s.shape.shape == FV_FOOTPRINT_CROSS);
    CHECK_TEXT(s.text, "say \"so\"");
}

TEST(values_are_checked_against_the_description) {
    static const struct {
        const char *name, *text;
        bool        good;
        const char *says;
    } cases[] = {
        { "sigma", "2", true },
        { "sigma", "100", true },
        { "sigma", "0", false, "sigma = 0: must be between 0 and 100 (the lower end excluded)" },
        { "sigma", "101", false, "sigma = 101" },
        { "sigma", "1e999", false, "sigma" },
        { "sigma", "-1", false, "sigma = -1" },
        { "sigma", "\"wide\"", false, "sigma = \"wide\": expected a number" },
        { "sigma", "[1]", false, "sigma = [1]: expected a number" },
        { "cut", "0.25", true },
        { "cut", "0.2", false, "cut = 0.2: must be at least 0.25" },
        { "cut", "1e300", true },
        { "cut", "1e999", false, "cut" },
        { "size", "9", true },
        { "size", "9.5", false, "size = 9.5: expected a whole number" },
        { "size", "0", false, "size = 0" },
        { "any", "-4000000000", true },
        { "any", "1e300", false, "any" },
        { "any", "1e999", false, "any" },
        { "flag", "false", true },
        { "flag", "1", false, "flag = 1: expected true or false" },
        { "text", "\"x\"", true },
        { "text", "5", false, "text = 5" },
        { "mode", "nearest", true },
        { "mode", "near", false, "mode = \"near\": must be one of reflect|nearest|wrap" },
        { "mode", "reflect|nearest", false, "mode" },
        { "mode", "\"\"", false, "mode" },
        { "list", "1", true },
        { "list", "[1, 5]", false, "list = 5" },
        { "dtype", "float32", true },
        { "dtype", "float", false, "dtype = \"float\": no such type" },
        { "shape", "3", false, "shape = 3: expected a footprint" },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        sample    s = { 0 };
        fv_error  error = { 0 };
        fv_status status = set(&s, cases[i].name, cases[i].text, &error);
        CHECK_MESSAGE((status == FV_OK) == cases[i].good, "%s = %s gives %s", cases[i].name, cases[i].text,
                      fv_status_name(status));
        if (!cases[i].good)
            CHECK_MESSAGE(status == FV_ERROR_USAGE && strstr(error.message, cases[i].says), "%s = %s: %s", cases[i].name,
                          cases[i].text, error.message);
    }
}

TEST(parameters_are_written_as_text_that_tells_them_apart) {
    sample s = { 0 };
    fv__params_default(&op, &s);
    set(&s, "sigma", "0.1", NULL);
    set(&s, "dtype", "uint8", NULL);
    set(&s, "text", "\"a \\ \"b\"\"", NULL);
    s.shape = (fv_footprint){ .shape = FV_FOOTPRINT_BOX, .ndim = 2, .size = { 3, 5 } };
    fv_bytes text = { 0 };
    fv__params_format(&op, &s, &text);
    CHECK_TEXT((char *)text.data,
               "sigma = 0.1, cut = 0.5, size = 3, any = 0, flag = true, text = \"a \\\\ \\\"b\\\"\", mode = \"wrap\", "
               "list = [1, 2.5], dtype = \"uint8\", shape = box([3, 5])");
    fv__bytes_clear(&text);
    s.sigma = 0.1 + 1e-16;
    s.shape = (fv_footprint){ .shape = FV_FOOTPRINT_BALL, .radius = 2.5 };
    fv__params_format(&op, &s, &text);
    CHECK(!strstr((char *)text.data, "sigma = 0.1,") && strstr((char *)text.data, "shape = ball(2.5)"));
    fv__bytes_release(&text);
}

TEST(inputs_and_parameters_are_found_by_name) {
    CHECK(fv__params_find(&op, "mode") == &params[6] && !fv__params_find(&op, "mod") && !fv__params_find(&op, "image"));
    CHECK(fv__inputs_count(&op) == 2 && fv__inputs_find(&op, "mask") == 1 && fv__inputs_find(&op, "masks") == -1);
    fv_op none = { .name = "none" };
    CHECK(fv__inputs_count(&none) == 0 && fv__inputs_find(&none, "x") == -1 && !fv__params_find(&none, "x"));
}

TEST_MAIN
