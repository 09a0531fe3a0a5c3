/* Pipeline texts become the right expressions. */
#include "lang/ast.h"
#include "support/test.h"
#include <locale.h>

/* An expression as text that shows how it was understood: (add a 1), x[0:100:_]. */
static void show(const fv_expr *e, fv_bytes *out) {
    switch (e->kind) {
    case FV_EXPR_NUMBER: fv__bytes_printf(out, e->integral ? "%.17g" : "%.17gf", e->number); break;
    case FV_EXPR_TEXT: fv__bytes_printf(out, "\"%s\"", e->text); break;
    case FV_EXPR_FLAG: fv__bytes_printf(out, e->flag ? "true" : "false"); break;
    case FV_EXPR_NAME: fv__bytes_printf(out, "%s", e->text); break;
    case FV_EXPR_LIST:
    case FV_EXPR_CALL:
        fv__bytes_printf(out, e->kind == FV_EXPR_CALL ? "(%s" : "[", e->text);
        for (int i = 0; i < e->nargs; i++) {
            if (i || e->kind == FV_EXPR_CALL) fv__bytes_printf(out, " ");
            if (e->args[i].name) fv__bytes_printf(out, "%s=", e->args[i].name);
            show(e->args[i].value, out);
        }
        fv__bytes_printf(out, e->kind == FV_EXPR_CALL ? ")" : "]");
        break;
    case FV_EXPR_SLICE:
        show(e->args[0].value, out);
        for (int i = 0; i < e->nindices; i++) {
            const fv_expr *parts[] = { e->indices[i].start, e->indices[i].stop, e->indices[i].step };
            fv__bytes_printf(out, i ? ", " : "[");
            for (int k = 0; k < (e->indices[i].single ? 1 : 3); k++) {
                if (k) fv__bytes_printf(out, ":");
                if (parts[k])
                    show(parts[k], out);
                else
                    fv__bytes_printf(out, "_");
            }
        }
        fv__bytes_printf(out, "]");
        break;
    }
}

/* The whole program, statements separated by "; "; errors instead if there are any. The caller frees. */
static char *understood(const char *text) {
    fv_diagnostics diagnostics = { 0 };
    fv_program    *program = fv__program_parse("test.fov", text, &diagnostics);
    fv_bytes       out = { 0 };
    fv__bytes_printf(&out, "%s", "");
    for (int i = 0; i < program->nstatements && !diagnostics.count; i++) {
        const fv_statement *s = &program->statements[i];
        if (i) fv__bytes_printf(&out, "; ");
        if (s->kind == FV_STATEMENT_PARAM) fv__bytes_printf(&out, "param ");
        if (s->name) fv__bytes_printf(&out, "%s = ", s->name);
        show(s->value, &out);
    }
    if (diagnostics.count) fv__diagnostics_format(&diagnostics, "test.fov", program->text, &out);
    fv__diagnostics_release(&diagnostics);
    fv__program_free(program);
    return (char *)out.data;
}

typedef struct {
    const char *text, *meaning;
} sample;

static void check(const sample *samples, int count) {
    for (int i = 0; i < count; i++) {
        char *meaning = understood(samples[i].text);
        if (strcmp(meaning, samples[i].meaning))
            test_fail(__FILE__, __LINE__, "%s is %s, not %s", samples[i].text, meaning, samples[i].meaning);
        free(meaning);
    }
}
#define CHECK_SAMPLES(samples) check(samples, FV_COUNT(samples))

TEST(operators_bind_as_in_python) {
    static const sample samples[] = {
        { "a = 1 + 2 * 3", "a = (add 1 (multiply 2 3))" },
        { "a = 1 - 2 - 3", "a = (subtract (subtract 1 2) 3)" },
        { "a = 8 / 4 * 2 % 3", "a = (remainder (multiply (divide 8 4) 2) 3)" },
        { "a = 2 ** 3 ** 4", "a = (power 2 (power 3 4))" },
        { "a = -x ** 2", "a = (negative (power x 2))" },
        { "a = -2 ** 2", "a = (negative (power 2 2))" },
        { "a = 2 ** -1", "a = (power 2 -1)" },
        { "a = 2 ** -x * 3", "a = (multiply (power 2 (negative x)) 3)" },
        { "a = -x * y", "a = (multiply (negative x) y)" },
        { "a = x - -y", "a = (subtract x (negative y))" },
        { "a = (1 + 2) * 3", "a = (multiply (add 1 2) 3)" },
        { "a = x > 1 & y < 2 | !z", "a = (or (and (greater x 1) (less y 2)) (not z))" },
        { "a = a | b & c | d", "a = (or (or a (and b c)) d)" },
        { "a = x + 1 == y * 2", "a = (equal (add x 1) (multiply y 2))" },
        { "a = x != y", "a = (not_equal x y)" },
        { "a = x <= y", "a = (less_equal x y)" },
        { "a = x >= y", "a = (greater_equal x y)" },
        { "a = !x == y", "a = (equal (not x) y)" },
        { "a = !!x", "a = (not (not x))" },
        { "a = +x + +1", "a = (add x 1)" },
        { "a = x[0] ** 2", "a = (power x[0] 2)" },
        { "a = -f(x)[1]", "a = (negative (f x)[1])" },
    };
    CHECK_SAMPLES(samples);
}

TEST(pipes_put_the_value_first) {
    static const sample samples[] = {
        { "x |> f", "(f x)" },
        { "x |> f()", "(f x)" },
        { "x |> f(1, k = 2)", "(f x 1 k=2)" },
        { "read(\"in.png\") |> median(5) |> write(\"out.png\")", "(write (median (read \"in.png\") 5) \"out.png\")" },
        { "a = x + 1 |> f", "a = (f (add x 1))" },
        { "a = x > 3 | y |> f", "a = (f (or (greater x 3) y))" },
        { "a = (x |> f) + 1", "a = (add (f x) 1)" },
        { "a = x |> f[50]", "a = (f x)[50]" },
        { "a = x |> f(2)[50, :] |> g", "a = (g (f x 2)[50, _:_:_])" },
        { "write(x |> f, \"a\")", "(write (f x) \"a\")" },
        { "g(k = x |> f)", "(g k=(f x))" },
    };
    CHECK_SAMPLES(samples);
}

TEST(slices_keep_their_parts) {
    static const sample samples[] = {
        { "a = x[50]", "a = x[50]" },
        { "a = x[-1]", "a = x[-1]" },
        { "a = x[0:100, :, ::2]", "a = x[0:100:_, _:_:_, _:_:2]" },
        { "a = x[-10:]", "a = x[-10:_:_]" },
        { "a = x[:-10]", "a = x[_:-10:_]" },
        { "a = x[1:9:-2,]", "a = x[1:9:-2]" },
        { "a = x[::]", "a = x[_:_:_]" },
        { "a = x[1][2]", "a = x[1][2]" },
        { "a = x[n / 2 : n]", "a = x[(divide n 2):n:_]" },
    };
    CHECK_SAMPLES(samples);
}

TEST(numbers_have_many_spellings) {
    static const sample samples[] = {
        { "a = 1", "a = 1" },
        { "a = 2.5", "a = 2.5f" },
        { "a = 1e-3", "a = 0.001f" },
        { "a = .5", "a = 0.5f" },
        { "a = 5.", "a = 5f" },
        { "a = 0x1f", "a = 31" },
        { "a = 0XFF", "a = 255" },
        { "a = 1_000", "a = 1000" },
        { "a = 1_0.2_5", "a = 10.25f" },
        { "a = 1E+2", "a = 100f" },
        { "a = 007", "a = 7" },
        { "a = -3", "a = -3" },
        { "a = - -3", "a = 3" },
        { "a = 9007199254740991", "a = 9007199254740991" },
        { "a = 0xff_ff", "a = 65535" },
        { "a = 1e3", "a = 1000f" },
    };
    CHECK_SAMPLES(samples);
}

TEST(numbers_do_not_follow_the_locale) {
    static const char *const comma[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8" };
    bool                     found = false;
    for (int i = 0; i < FV_COUNT(comma); i++) found = found || setlocale(LC_NUMERIC, comma[i]);
    if (!found) SKIP("no locale with a decimal comma here");
    char *meaning = understood("f(2.5 > x)");
    setlocale(LC_NUMERIC, "C");
    CHECK_TEXT(meaning, "(f (greater 2.5f x))");
    free(meaning);
}

TEST(texts_have_escapes_and_two_kinds_of_quotes) {
    static const sample samples[] = {
        { "f(\"a b\")", "(f \"a b\")" },
        { "f('a \"b\"')", "(f \"a \"b\"\")" },
        { "f(\"it's\")", "(f \"it's\")" },
        { "f(\"a\\n\\t\\\\\\\"\\'\")", "(f \"a\n\t\\\"'\")" },
        { "f(\"\\u00b5m \\u2192\")", "(f \"\xc2\xb5m \xe2\x86\x92\")" },
        { "f(\"\xc2\xb5m # no comment\")", "(f \"\xc2\xb5m # no comment\")" },
        { "f(\"\")", "(f \"\")" },
        { "f(\"bubbles-{radius}.zarr\")", "(f \"bubbles-{radius}.zarr\")" },
    };
    CHECK_SAMPLES(samples);
}

TEST(lists_flags_and_calls_nest) {
    static const sample samples[] = {
        { "a = [3, 6, 6]", "a = [3 6 6]" },
        { "a = [-1, .5,]", "a = [-1 0.5f]" },
        { "a = []", "a = []" },
        { "a = [[1], [2, 3]]", "a = [[1] [2 3]]" },
        { "f(true, x = false)", "(f true x=false)" },
        { "f(g(h()), k = [1, 2],)", "(f (g (h)) k=[1 2])" },
        { "param r = 12", "param r = 12" },
        { "param r = -1.5", "param r = -1.5f" },
        { "param names = [\"a\", 'b']", "param names = [\"a\" \"b\"]" },
        { "param on = true", "param on = true" },
        { "truth = trueish", "truth = trueish" },
    };
    CHECK_SAMPLES(samples);
}

TEST(lines_go_on_where_they_must) {
    static const sample samples[] = {
        { "", "" },
        { "\n\n  # only a comment", "" },
        { "a = 1\nb = 2", "a = 1; b = 2" },
        { "a = 1\r\nb = 2\r\n", "a = 1; b = 2" },
        { "\xef\xbb\xbf"
          "a = 1",
          "a = 1" },
        { "a = 1; b = 2;; c = 3;", "a = 1; b = 2; c = 3" },
        { "a = f(\n  x, # first\n\n  k = 2,\n)\nb = 1", "a = (f x k=2); b = 1" },
        { "a = x\n  |> f\n\n  # then\n  |> g(2)\nb = 1", "a = (g (f x) 2); b = 1" },
        { "a = x |>\n f", "a = (f x)" },
        { "a = x +\n\n  # more\n  y\nb = 1", "a = (add x y); b = 1" },
        { "a =\n  f(x)", "a = (f x)" },
        { "a = !\nx", "a = (not x)" },
        { "a = x[\n1,\n2\n]", "a = x[1, 2]" },
        { "a = (x\n+ y\n> 2)", "a = (greater (add x y) 2)" },
    };
    CHECK_SAMPLES(samples);
}

TEST(the_example_of_the_design_parses) {
    char *meaning = understood("# foam.fov: how big are the bubbles?\n"
                               "param radius = 12\n"
                               "\n"
                               "foam    = read(\"foam.tif\")\n"
                               "walls   = gaussian(1 - foam / 255, sigma = [3, 6, 6])\n"
                               "bubbles = label(erode(walls > 0.9, ball(radius)))\n"
                               "\n"
                               "write(bubbles, \"bubbles-{radius}.zarr\")\n"
                               "write(measure(bubbles, foam), \"bubbles.db\", table = \"bubbles\")\n");
    CHECK_TEXT(meaning, "param radius = 12; foam = (read \"foam.tif\"); "
                        "walls = (gaussian (subtract 1 (divide foam 255)) sigma=[3 6 6]); "
                        "bubbles = (label (erode (greater walls 0.90000000000000002f) (ball radius))); "
                        "(write bubbles \"bubbles-{radius}.zarr\"); "
                        "(write (measure bubbles foam) \"bubbles.db\" table=\"bubbles\")");
    free(meaning);
}

static bool span_is(fv_span span, int line, int column, int length) {
    return span.line == line && span.column == column && span.length == length;
}

TEST(expressions_know_their_place) {
    fv_diagnostics diagnostics = { 0 };
    fv_program    *program = fv__program_parse("-e", "# \xc2\xb5\nab = f('\xc2\xb5', k = (x + 1))\n  |> g[2, 3:4]", &diagnostics);
    CHECK_INT(diagnostics.count, 0);
    const fv_statement *s = &program->statements[0];
    CHECK(span_is(s->name_span, 2, 1, 2));
    CHECK(span_is(s->value->span, 2, 6, 34));
    CHECK(span_is(s->value->indices[0].span, 3, 8, 1));
    CHECK(span_is(s->value->indices[1].span, 3, 11, 3));
    const fv_expr *g = s->value->args[0].value, *f = g->args[0].value, *sum = f->args[1].value;
    CHECK(span_is(g->text_span, 3, 6, 1));
    CHECK(span_is(f->span, 2, 6, 19));
    CHECK(span_is(f->text_span, 2, 6, 1));
    CHECK(span_is(f->args[0].value->span, 2, 8, 3));
    CHECK(span_is(f->args[1].name_span, 2, 13, 1));
    CHECK(span_is(sum->span, 2, 17, 7));
    CHECK(span_is(sum->text_span, 2, 20, 1));
    fv__program_free(program);
    fv__diagnostics_release(&diagnostics);
}

TEST(names_outlive_the_text_they_came_from) {
    char           text[] = "result = f(other)";
    fv_diagnostics diagnostics = { 0 };
    fv_program    *program = fv__program_parse("-e", text, &diagnostics);
    memset(text, 'z', sizeof text - 1);
    CHECK_TEXT(program->statements[0].name, "result");
    CHECK_TEXT(program->text, "result = f(other)");
    fv__program_free(program);
}

TEST_MAIN
