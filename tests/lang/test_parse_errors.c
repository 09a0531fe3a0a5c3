/* What is wrong in a text is said exactly, all of it in one go, and no text can crash the parser. */
#include "lang/ast.h"
#include "support/test.h"
#include <time.h>

static char *errors_of(const char *text) {
    fv_diagnostics diagnostics = { 0 };
    fv_program    *program = fv__program_parse("a.fov", text, &diagnostics);
    fv_bytes       out = { 0 };
    fv__bytes_printf(&out, "%s", "");
    fv__diagnostics_format(&diagnostics, program->file, program->text, &out);
    fv__bytes_append(&out, "", 1);
    fv__diagnostics_release(&diagnostics);
    fv__program_free(program);
    return (char *)out.data;
}

typedef struct {
    const char *text, *errors;
} sample;

static const sample samples[] = {
    /* unclosed brackets point at the bracket */
    { "a = read(\"x.png\"\nb = gaussian(a, 2)\nwrite(b, \"y.png\"", "a.fov:1:9: error: '(' is never closed; expected ')'\n"
                                                                    "  1 | a = read(\"x.png\"\n"
                                                                    "    |         ^\n"
                                                                    "a.fov:3:6: error: '(' is never closed; expected ')'\n"
                                                                    "  3 | write(b, \"y.png\"\n"
                                                                    "    |      ^\n" },
    { "a = f(g(h(1\nb = (\nc = 4", "a.fov:1:10: error: '(' is never closed, nor are 2 before it; expected ')'\n"
                                   "  1 | a = f(g(h(1\n"
                                   "    |          ^\n"
                                   "a.fov:2:5: error: '(' is never closed; expected ')'\n"
                                   "  2 | b = (\n"
                                   "    |     ^\n" },
    { "a = f([1, 2)", "a.fov:1:7: error: '[' is not closed; expected ']' before the ')' at line 1, column 12\n"
                      "  1 | a = f([1, 2)\n"
                      "    |       ^\n" },
    { "a = f(1, 2]", "a.fov:1:6: error: '(' is not closed; expected ')' before the ']' at line 1, column 11\n"
                     "  1 | a = f(1, 2]\n"
                     "    |      ^\n" },
    { "a = 3)\nb = 2]", "a.fov:1:6: error: ')' has no opening bracket before it\n"
                        "  1 | a = 3)\n"
                        "    |      ^\n"
                        "a.fov:2:6: error: ']' has no opening bracket before it\n"
                        "  2 | b = 2]\n"
                        "    |      ^\n" },
    /* texts and numbers */
    { "a = read(\"foo.tif)\nb = a +", "a.fov:1:10: error: the text is not closed; expected \" before the end of the line\n"
                                      "  1 | a = read(\"foo.tif)\n"
                                      "    |          ^~~~~~~~~\n"
                                      "a.fov:2:8: error: expected a value after '+', found the end of the line\n"
                                      "  2 | b = a +\n"
                                      "    |        ^\n" },
    { "a = \"C:\\data\"",
      "a.fov:1:8: error: '\\d' stands for nothing in a text; expected \\n, \\t, \\r, \\\\, \\\", \\' or \\uXXXX\n"
      "  1 | a = \"C:\\data\"\n"
      "    |        ^~\n"
      "  hint: write \\\\ for a backslash\n" },
    { "a = 3px + 1.2.3 + 1e999 + 9007199254740993",
      "a.fov:1:5: error: '3px' is not a number; expected one such as 12, 2.5, 1e-3, 1_000 or 0x1f\n"
      "  1 | a = 3px + 1.2.3 + 1e999 + 9007199254740993\n"
      "    |     ^~~\n"
      "  hint: numbers have no unit (5s is written 5), and a name cannot start with a digit\n"
      "a.fov:1:11: error: '1.2.3' is not a number; expected one such as 12, 2.5, 1e-3, 1_000 or 0x1f\n"
      "  1 | a = 3px + 1.2.3 + 1e999 + 9007199254740993\n"
      "    |           ^~~~~\n"
      "a.fov:1:19: error: the number is too large; the largest is about 1.8e308\n"
      "  1 | a = 3px + 1.2.3 + 1e999 + 9007199254740993\n"
      "    |                   ^~~~~\n"
      "a.fov:1:27: error: whole numbers in a text are exact up to 9007199254740991 (2^53 - 1), and this one is larger\n"
      "  1 | a = 3px + 1.2.3 + 1e999 + 9007199254740993\n"
      "    |                           ^~~~~~~~~~~~~~~~\n"
      "  hint: write it with a point or an exponent if the nearest number that fits will do\n" },
    { "a = \"\\u00\" + \"\\",
      "a.fov:1:6: error: '\\u' stands for nothing in a text; expected \\n, \\t, \\r, \\\\, \\\", \\' or \\uXXXX\n"
      "  1 | a = \"\\u00\" + \"\\\n"
      "    |      ^~\n"
      "  hint: write \\\\ for a backslash\n"
      "a.fov:1:14: error: the text is not closed; expected \" before the end of the line\n"
      "  1 | a = \"\\u00\" + \"\\\n"
      "    |              ^~\n"
      "a.fov:1:15: error: '\\' stands for nothing in a text; expected \\n, \\t, \\r, \\\\, \\\", \\' or \\uXXXX\n"
      "  1 | a = \"\\u00\" + \"\\\n"
      "    |               ^\n"
      "  hint: write \\\\ for a backslash\n" },
    /* signs and letters from elsewhere */
    { "a = b &&  c || ~d ^ 2", "a.fov:1:7: error: '&&' means nothing here\n"
                               "  1 | a = b &&  c || ~d ^ 2\n"
                               "    |       ^~\n"
                               "  hint: write & for and\n"
                               "a.fov:1:13: error: '||' means nothing here\n"
                               "  1 | a = b &&  c || ~d ^ 2\n"
                               "    |             ^~\n"
                               "  hint: write | for or\n"
                               "a.fov:1:16: error: '~' means nothing here\n"
                               "  1 | a = b &&  c || ~d ^ 2\n"
                               "    |                ^\n"
                               "  hint: write ! for not\n"
                               "a.fov:1:19: error: '^' means nothing here\n"
                               "  1 | a = b &&  c || ~d ^ 2\n"
                               "    |                   ^\n"
                               "  hint: write ** for a power\n" },
    { "a = b.gaussian(2)",
      "a.fov:1:6: error: '.' means nothing here\n"
      "  1 | a = b.gaussian(2)\n"
      "    |      ^\n"
      "  hint: write image |> gaussian(2) where others write image.gaussian(2), and sqrt(image) for np.sqrt(image)\n" },
    { "a = \xe2\x80\x9cx\xe2\x80\x9d", "a.fov:1:5: error: '\xe2\x80\x9c' means nothing here\n"
                                       "  1 | a = \xe2\x80\x9cx\xe2\x80\x9d\n"
                                       "    |     ^\n"
                                       "  hint: use plain quotes, \"like this\"\n"
                                       "a.fov:1:7: error: '\xe2\x80\x9d' means nothing here\n"
                                       "  1 | a = \xe2\x80\x9cx\xe2\x80\x9d\n"
                                       "    |       ^\n"
                                       "  hint: use plain quotes, \"like this\"\n" },
    { "a = {1}", "a.fov:1:5: error: '{' means nothing here\n"
                 "  1 | a = {1}\n"
                 "    |     ^\n"
                 "  hint: a list is written [1, 2, 3]\n"
                 "a.fov:1:7: error: '}' means nothing here\n"
                 "  1 | a = {1}\n"
                 "    |       ^\n"
                 "  hint: a list is written [1, 2, 3]\n" },
    { "a = \xc2\xb5", "a.fov:1:5: error: '\xc2\xb5' means nothing here\n"
                      "  1 | a = \xc2\xb5\n"
                      "    |     ^\n"
                      "  hint: names are made of a-z, A-Z, 0-9 and _\n" },
    { "\ta = \t$@\n", "a.fov:1:7: error: '$' means nothing here\n"
                      "  1 | \ta = \t$@\n"
                      "    | \t    \t^~\n" },
    { "a = b\xc2\xa0+ c", "a.fov:1:6: error: '\xc2\xa0' means nothing here\n"
                          "  1 | a = b\xc2\xa0+ c\n"
                          "    |      ^\n"
                          "  hint: this is a no-break space; use a plain one\n" },
    { "a = 1 // 2 \\",
      "a.fov:1:7: error: '//' means nothing here\n"
      "  1 | a = 1 // 2 \\\n"
      "    |       ^~\n"
      "  hint: write / to divide, and # to begin a comment\n"
      "a.fov:1:12: error: '\\' means nothing here\n"
      "  1 | a = 1 // 2 \\\n"
      "    |            ^\n"
      "  hint: a line goes on by itself inside brackets, after an operator, or when the next one starts with |>\n" },
    /* what other languages begin with */
    { "if mean(a) > 3", "a.fov:1:4: error: expected an operator or the end of the line, found 'mean'\n"
                        "  1 | if mean(a) > 3\n"
                        "    |    ^~~~\n"
                        "  hint: there is no if: where(condition, this, that) chooses for each voxel\n" },
    { "import numpy", "a.fov:1:8: error: expected an operator or the end of the line, found 'numpy'\n"
                      "  1 | import numpy\n"
                      "    |        ^~~~~\n"
                      "  hint: nothing has to be imported: fovea ops lists the operators\n" },
    /* bytes that are no text */
    { "a = \xff\xfe\x80", "a.fov:1:5: error: the byte 0xff is not UTF-8 text\n"
                          "  1 | a = ???\n"
                          "    |     ^~~\n"
                          "  hint: save the file as UTF-8\n" },
    { "a = \x01\x1b[31m", "a.fov:1:5: error: a control character (0x01) means nothing here\n"
                          "  1 | a = ??[31m\n"
                          "    |     ^~\n"
                          "a.fov:1:7: error: '[' is never closed; expected ']'\n"
                          "  1 | a = ??[31m\n"
                          "    |       ^\n"
                          "a.fov:1:8: error: '31m' is not a number; expected one such as 12, 2.5, 1e-3, 1_000 or 0x1f\n"
                          "  1 | a = ??[31m\n"
                          "    |        ^~~\n"
                          "  hint: numbers have no unit (5s is written 5), and a name cannot start with a digit\n" },
    { "f(\"\xc3(\")", "a.fov:1:4: error: the byte 0xc3 is not UTF-8 text\n"
                      "  1 | f(\"?(\")\n"
                      "    |    ^\n"
                      "  hint: save the file as UTF-8\n" },
    /* operators */
    { "a = 1 < x < 2", "a.fov:1:11: error: comparisons cannot be chained; expected '&' between two of them\n"
                       "  1 | a = 1 < x < 2\n"
                       "    |           ^\n"
                       "  hint: write a < b & b < c\n" },
    { "a = a and b", "a.fov:1:7: error: expected an operator or the end of the line, found 'and'\n"
                     "  1 | a = a and b\n"
                     "    |       ^~~\n"
                     "  hint: write & for and\n" },
    { "a = not b", "a.fov:1:9: error: expected an operator or the end of the line, found 'b'\n"
                   "  1 | a = not b\n"
                   "    |         ^\n"
                   "  hint: write ! for not\n" },
    { "a = b +\nc = 3", "a.fov:2:3: error: expected an operator or the end of the line, found '='\n"
                        "  2 | c = 3\n"
                        "    |   ^\n"
                        "  hint: the line before ends with an operator, so this one belongs to it\n" },
    { "+ b\n|> f", "a.fov:1:1: error: a statement cannot start with '+'; expected name = value or a call\n"
                   "  1 | + b\n"
                   "    | ^\n"
                   "  hint: end the line before with it, or put all in brackets\n" },
    { "a = 3\n- b", "a.fov:2:1: error: a statement cannot start with '-'; expected name = value or a call\n"
                    "  2 | - b\n"
                    "    | ^\n"
                    "  hint: if it goes on from the line before, end that line with -; a value of its own stands in brackets\n" },
    { "a = f(x,,y)", "a.fov:1:9: error: expected a value after ',', found ','\n"
                     "  1 | a = f(x,,y)\n"
                     "    |         ^\n" },
    { "a = ", "a.fov:1:4: error: expected a value after '=', found the end of the line\n"
              "  1 | a = \n"
              "    |    ^\n" },
    { "a = b c", "a.fov:1:7: error: expected an operator or the end of the line, found 'c'\n"
                 "  1 | a = b c\n"
                 "    |       ^\n" },
    /* pipes */
    { "a = x |> f > 3", "a.fov:1:12: error: expected one call after '|>', found '>' behind it\n"
                        "  1 | a = x |> f > 3\n"
                        "    |            ^\n"
                        "  hint: '|>' binds loosest; put brackets around what comes before '>'\n" },
    { "a = x |> 3", "a.fov:1:10: error: expected the name of an operator after '|>', found a number\n"
                    "  1 | a = x |> 3\n"
                    "    |          ^\n" },
    { "a = x |> true", "a.fov:1:10: error: expected the name of an operator after '|>', found 'true'\n"
                       "  1 | a = x |> true\n"
                       "    |          ^~~~\n" },
    /* statements */
    { "param r = 2 * 3",
      "a.fov:1:11: error: a parameter must be a plain value; expected a number, a text, true, false or a list of these\n"
      "  1 | param r = 2 * 3\n"
      "    |           ^~~~~\n"
      "  hint: drop the word 'param' to give a name to a computed value\n" },
    { "param r = [[1]]",
      "a.fov:1:11: error: a parameter must be a plain value; expected a number, a text, true, false or a list of these\n"
      "  1 | param r = [[1]]\n"
      "    |           ^~~~~\n"
      "  hint: drop the word 'param' to give a name to a computed value\n" },
    { "param = 3", "a.fov:1:7: error: expected a name after 'param', found '='\n"
                   "  1 | param = 3\n"
                   "    |       ^\n" },
    { "param r", "a.fov:1:8: error: expected '=' after the name, found the end of the line\n"
                 "  1 | param r\n"
                 "    |        ^\n" },
    { "true = 3", "a.fov:1:1: error: expected a name before '=', found 'true'\n"
                  "  1 | true = 3\n"
                  "    | ^~~~\n" },
    { "f(x) = 3", "a.fov:1:6: error: only a plain name can stand before '='\n"
                  "  1 | f(x) = 3\n"
                  "    |      ^\n"
                  "  hint: write == to compare\n" },
    { "for i in x", "a.fov:1:5: error: expected an operator or the end of the line, found 'i'\n"
                    "  1 | for i in x\n"
                    "    |     ^\n"
                    "  hint: there are no loops: an operator works on whole images, read(\"*.tif\") on many; --set sigma=1,2 "
                    "tries two values\n" },
    { "a = True", "a.fov:1:5: error: 'True' means nothing here; expected true\n"
                  "  1 | a = True\n"
                  "    |     ^~~~\n" },
    { ", a", "a.fov:1:1: error: expected name = value or a call, found ','\n"
             "  1 | , a\n"
             "    | ^\n" },
    /* calls, lists and slices */
    { "a = gaussian(foam sigma = 3)", "a.fov:1:19: error: expected ',' or ')' after the argument, found 'sigma'\n"
                                      "  1 | a = gaussian(foam sigma = 3)\n"
                                      "    |                   ^~~~~\n" },
    { "a = f(k = 1, 2)", "a.fov:1:14: error: a value by position follows one by name; expected name = value\n"
                         "  1 | a = f(k = 1, 2)\n"
                         "    |              ^\n"
                         "  hint: values by position come first\n" },
    { "a = f(k = 1, k = 2)", "a.fov:1:14: error: 'k' is given twice in one call\n"
                             "  1 | a = f(k = 1, k = 2)\n"
                             "    |              ^\n" },
    { "a = f(1 = 2)", "a.fov:1:9: error: only a plain name can stand before '='\n"
                      "  1 | a = f(1 = 2)\n"
                      "    |         ^\n"
                      "  hint: write == to compare\n" },
    { "a = f(x)(y)", "a.fov:1:9: error: expected an operator or the end of the line, found '('\n"
                     "  1 | a = f(x)(y)\n"
                     "    |         ^\n"
                     "  hint: the result of a call is a value and cannot be called\n" },
    { "a = f(a; b)", "a.fov:1:8: error: expected ',' or ')' after the argument, found ';'\n"
                     "  1 | a = f(a; b)\n"
                     "    |        ^\n" },
    { "a = [1 2]", "a.fov:1:8: error: expected ',' or ']' after the entry of the list, found a number\n"
                   "  1 | a = [1 2]\n"
                   "    |        ^\n" },
    { "a = (1, 2)", "a.fov:1:7: error: expected an operator or ')', found ','\n"
                    "  1 | a = (1, 2)\n"
                    "    |       ^\n"
                    "  hint: a list is written [1, 2, 3]\n" },
    { "a = x[]", "a.fov:1:7: error: expected an index such as 5, 0:100, : or ::2, found ']'\n"
                 "  1 | a = x[]\n"
                 "    |       ^\n" },
    { "a = x[1 2]", "a.fov:1:9: error: expected ':', ',' or ']' after the index, found a number\n"
                    "  1 | a = x[1 2]\n"
                    "    |         ^\n" },
    { "a = x[1:2:3:4]", "a.fov:1:12: error: expected ',' or ']' after the index, found ':'\n"
                        "  1 | a = x[1:2:3:4]\n"
                        "    |            ^\n" },
    { "write(a, \"x\" \"y\")", "a.fov:1:14: error: expected ',' or ')' after the argument, found a text\n"
                               "  1 | write(a, \"x\" \"y\")\n"
                               "    |              ^~~\n" },
    { "a = param", "a.fov:1:5: error: expected a value, found 'param'\n"
                   "  1 | a = param\n"
                   "    |     ^~~~~\n" },
};

TEST(every_mistake_gets_its_exact_message) {
    for (int i = 0; i < FV_COUNT(samples); i++) {
        char *errors = errors_of(samples[i].text);
        if (strcmp(errors, samples[i].errors))
            test_fail(__FILE__, __LINE__, "%s\ngives\n%snot\n%s", samples[i].text, errors, samples[i].errors);
        free(errors);
    }
}

TEST(errors_are_sorted_and_said_once) {
    fv_diagnostics diagnostics = { 0 };
    fv_bytes       out = { 0 };
    fv__diagnose(&diagnostics, (fv_span){ 2, 5, 1 }, NULL, "second");
    fv__diagnose(&diagnostics, (fv_span){ 1, 3, 1 }, "like this", "first");
    fv__diagnose(&diagnostics, (fv_span){ 2, 5, 1 }, NULL, "second");
    fv__diagnostics_format(&diagnostics, "-e", "ab c\nde fg", &out);
    CHECK_TEXT((char *)out.data, "-e:1:3: error: first\n  1 | ab c\n    |   ^\n  hint: like this\n"
                                 "-e:2:5: error: second\n  2 | de fg\n    |     ^\n");
    fv__bytes_release(&out);
    fv__diagnostics_release(&diagnostics);
}

/* `open` n times, `middle`, `close` n times. */
static char *repeated(int n, const char *open, const char *middle, const char *close) {
    fv_bytes text = { 0 };
    fv__bytes_printf(&text, "a = ");
    for (int i = 0; i < n; i++) fv__bytes_append(&text, open, strlen(open));
    fv__bytes_printf(&text, "%s", middle);
    for (int i = 0; i < n; i++) fv__bytes_append(&text, close, strlen(close));
    fv__bytes_append(&text, "", 1);
    return (char *)text.data;
}

TEST(a_long_line_is_shown_around_the_caret) {
    char *text = repeated(100, "abc + ", "$ + ", "def + "), *errors = errors_of(text);
    CHECK_TEXT(errors,
               "a.fov:1:605: error: '$' means nothing here\n"
               "  1 | ...abc + abc + abc + abc + abc + abc + abc + abc + abc + abc + $ + def + def + def + def + def + def + "
               "def + def + def + def + def + def + def + def + def + def + ...\n"
               "    |                                                                ^\n");
    free(text);
    free(errors);
}

TEST(nesting_without_end_is_an_error_and_no_crash) {
    static const struct {
        const char *open, *middle, *close;
    } shapes[] = {
        { "(", "1", ")" },  { "[", "1", "]" },      { "f(", "1", ")" },    { "-", "x", "" },          { "!", "x", "" },
        { "+", "x", "" },   { "x ** ", "x", "" },   { "x + ", "x", "" },   { "x |> f |> ", "g", "" }, { "", "x", "[0]" },
        { "x[", "1", "]" }, { "f(k = ", "1", ")" }, { "(x + ", "1", ")" },
    };
    for (int i = 0; i < FV_COUNT(shapes); i++) {
        char *deep = repeated(100000, shapes[i].open, shapes[i].middle, shapes[i].close), *errors = errors_of(deep);
        CHECK_MESSAGE(strstr(errors, "error: the expression is too deep; expected at most 500 levels"), "%s: %s", shapes[i].open,
                      errors);
        CHECK(strstr(errors, "hint: give parts of it names"));
        free(deep);
        free(errors);
        deep = repeated(200, shapes[i].open, shapes[i].middle, shapes[i].close);
        errors = errors_of(deep);
        CHECK_TEXT(errors, "");
        free(deep);
        free(errors);
    }
}

TEST(many_errors_of_a_line_are_counted) {
    char       *errors = errors_of("a = [$ $ $ $ $ $ $ $]\nb = $\n");
    const char *more = strstr(errors, "  3 more in this line\n");
    CHECK(more && strstr(more, "a.fov:2:5: error"));
    free(errors);
}

TEST(noise_gives_a_bounded_number_of_errors) {
    char *noise = repeated(150000, "$ ", "", "( ] "), *errors = errors_of(noise);
    CHECK(strlen(errors) < 200 * 1000);
    CHECK(strstr(errors, "a.fov: too many errors; only the first 200 are shown\n"));
    free(noise);
    free(errors);
}

TEST(a_text_without_end_is_refused) {
    char *text = repeated(300000, "1 + ", "1", " + 1"), *errors = errors_of(text);
    CHECK(strstr(errors, "expected a pipeline of at most 1048576"));
    free(text);
    free(errors);
}

/* Work grows with the text and not with its square: these shapes tempt one to look back. */
TEST(large_texts_take_linear_time) {
    static const char *const lines[] = { "a = (\n",   "a = [)\n", "((((",  "a = f(\n1)\n", "f(k = 1, ",
                                         "a = \"x\n", "[1, ",     "x[1, ", "\n|> f" };
    for (int i = 0; i < FV_COUNT(lines); i++) {
        char   *text = repeated(100000, lines[i], "x", "");
        clock_t start = clock();
        free(errors_of(text));
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC; /* of the processor */
        CHECK_MESSAGE(seconds < 5, "%s took %.1f s", lines[i], seconds);
        free(text);
    }
}

static const char *const seeds[] = {
    "param radius = 12\nfoam = read(\"foam.tif\")\nwalls = gaussian(1 - foam / 255, sigma = [3, 6, 6])\n",
    "bubbles = label(erode(walls > 0.9, ball(radius)))\nwrite(bubbles, \"bubbles-{radius}.zarr\")\n",
    "a = x[0:100, :, ::2] ** -2 |> f\n  |> g(k = 'y') # comment\nb = !a & x <= 1e-3 | 0x1f == 1_000\n",
};

TEST(mutated_and_random_texts_never_crash) {
    static const char *const pieces[] = { "(",  ")",    "[",  "]",     "\"", "'",        "\n",       "|>",   "=",  "param ",
                                          "\\", "#",    ":",  ",",     "**", "\xc2\xb5", "\xe2\x80", "\xff", "1e", "0x",
                                          ";",  "true", "\t", "\\u00", "-",  "\r\n",     "...",      "_" };
    uint64_t                 random = 7;
    char                     text[1024];
    for (int round = 0; round < 20000; round++) {
        if (round % 4 == 0) { /* random bytes */
            size_t n = test_random(&random) % 200;
            for (size_t i = 0; i < n; i++) text[i] = (char)(1 + test_random(&random) % 255);
            text[n] = 0;
        } else {
            snprintf(text, sizeof text, "%s", seeds[test_random(&random) % FV_COUNT(seeds)]);
            for (int edits = (int)(test_random(&random) % 8); edits >= 0; edits--) {
                const char *piece = pieces[test_random(&random) % FV_COUNT(pieces)];
                size_t      length = strlen(text), place = test_random(&random) % (length + 1);
                size_t      cut = test_random(&random) % 4, put = strlen(piece);
                if (cut > length - place) cut = length - place;
                memmove(text + place + put, text + place + cut, length - place - cut + 1);
                memcpy(text + place, piece, put);
            }
        }
        char *exact = fv__strdup(text); /* on the heap, so that reading past its end is noticed */
        free(errors_of(exact));
        free(exact);
    }
}

TEST_MAIN
