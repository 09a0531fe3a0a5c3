/* Slices, crops and strides of files in every format that can be written, followed by every operator that goes over an image in
 * several passes: the same bits as the same part of an array, on random lattices, with poison outside every declared region. */
#include "op/format.h"
#include "op/op.h"
#include "op/params.h"
#include "support/format.h"
#include "support/outcome.h"
#include "support/test.h"
#include <ctype.h>

#define CASES "tests/conformance/cut_cases.txt"
enum { MOST_CUTS = 10, MOST_CASES = 128 };

/* Under a sanitizer, which takes ten times as long, one combination of many: still every operator, format and kind of cut, and it
 * looks at memory, not at results. The plain program goes through all. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ONE_OF = 6 };
#else
enum { ONE_OF = 1 };
#endif

typedef struct {
    const char *name;
    fv_dtype    dtype;
    int         ndim;
    int64_t     shape[4];
    const char *axes;
    const char *cuts[MOST_CUTS];
} source;

static const source sources[] = {
    { "volume",
      FV_UINT16,
      3,
      { 6, 19, 26 },
      "zyx",
      { "[0]", "[-1]", "[0:1]", "[1:5, 3:-2, ::2]", "[::2]", "[:, 0]", "[:, :, 7]", "[::-1, ::-1, ::-1]", "[2:3, 4:9]" } },
    { "plane", FV_UINT8, 2, { 33, 40 }, "yx", { "[3:20]", "[::2, ::-3]", "[5]", "[:, -1]", "[-9:, 0:1]", "[0:1]" } },
    { "colour", FV_UINT8, 3, { 21, 25, 3 }, "yxc", { "[:, :, 0]", "[2:15, ::2]", "[::-1, :, ::2]", "[4]", "[:, :, -1:]" } },
    { "series",
      FV_FLOAT32,
      4,
      { 2, 4, 14, 15 },
      "tzyx",
      { "[0]", "[1, 0]", "[:, -1]", "[-1, ::2, 2:9]", "[:, :, 3]", "[::-1]" } },
};

static test_image pictures[FV_COUNT(sources)];

static void make_pictures(void) {
    for (int i = 0; i < FV_COUNT(sources); i++) {
        if (pictures[i].data) continue;
        pictures[i] = test_image_new(sources[i].dtype, sources[i].ndim, sources[i].shape);
        for (int d = 0; d < sources[i].ndim; d++) pictures[i].type.image.axis[d][0] = sources[i].axes[d];
        uint64_t state = (uint64_t)i + 5;
        for (int64_t v = 0; v < fv_image_type_voxels(&pictures[i].type.image); v++) {
            uint8_t value = (uint8_t)(test_random(&state) % 201);
            if (sources[i].dtype == FV_UINT8) ((uint8_t *)pictures[i].data)[v] = value;
            if (sources[i].dtype == FV_UINT16) ((uint16_t *)pictures[i].data)[v] = value;
            if (sources[i].dtype == FV_FLOAT32) ((float *)pictures[i].data)[v] = value;
        }
    }
}

static int cuts_of(int i) {
    int n = 0;
    while (n < MOST_CUTS && sources[i].cuts[n]) n++;
    return n;
}

/* Every failure is told; the frame keeps the first. */
#define FAIL(...)                                                                                                                \
    do {                                                                                                                         \
        test_fail(__FILE__, __LINE__, __VA_ARGS__);                                                                              \
        fprintf(stderr, __VA_ARGS__);                                                                                            \
        fputc('\n', stderr);                                                                                                     \
    } while (0)

/* ---------------------------------------------------------------- what is right */

typedef struct {
    bool         known, good;
    test_outcome outcome;
} answer;
static answer answers[FV_COUNT(sources)][MOST_CUTS][MOST_CASES];

static fv_pipeline *make(const char *x, const char *cut, const char *expression, int array, fv_error *error) {
    fv_pipeline *p = fv_pipeline_new();
    char        *text = fv__sprintf("x = %s%s\nresult = %s\n", x, cut, expression);
    if (array >= 0) fv_pipeline_array(p, "whole", &pictures[array].type.image, pictures[array].data, error);
    if (fv_pipeline_add(p, "case", text, error) != FV_OK) fv_fail(error, FV_ERROR_USAGE, "%s", fv_pipeline_messages(p));
    free(text);
    return p;
}

/* The same part of the array, computed whole. Not good: an operator that wants another number of axes. */
static const answer *right(int i, int cut, char **cases, int number) {
    answer *a = &answers[i][cut][number];
    if (a->known) return a;
    fv_error error = { 0 };
    a->good = test_outcome_take(make("whole", sources[i].cuts[cut], cases[number], i, &error),
                                &(test_setting){ .workers = 1, .poison = -1 }, &a->outcome, &error);
    if (!a->good && error.code != FV_ERROR_USAGE)
        FAIL("%s of an array%s: %s", cases[number], sources[i].cuts[cut], error.message);
    a->known = true;
    return a;
}

/* ---------------------------------------------------------------- files */

typedef struct {
    const fv_format *format;
    char            *label;                /* "tiff lzw" */
    char            *x[FV_COUNT(sources)]; /* how each source is read; NULL: the format does not hold it */
} kind;

enum { MOST_KINDS = 80 };
static kind kinds[MOST_KINDS];
static int  nkinds;

/* A file that names no axes, or other ones, is told them. */
static char *read_call(const fv_format *format, const char *path, int i) {
    fv_bytes text = { 0 };
    fv__bytes_printf(&text, "read(\"%s\", axes = \"", path);
    for (int d = 0; d < sources[i].ndim; d++) fv__bytes_printf(&text, "%s%c", d ? " " : "", sources[i].axes[d]);
    fv__bytes_printf(&text, "\"");
    if (!strcmp(format->name, "raw")) {
        fv__bytes_printf(&text, ", dtype = \"%s\", shape = [", fv_dtype_name(sources[i].dtype));
        for (int d = 0; d < sources[i].ndim; d++)
            fv__bytes_printf(&text, "%s%lld", d ? ", " : "", (long long)sources[i].shape[d]);
        fv__bytes_printf(&text, "]");
    }
    fv__bytes_printf(&text, ")");
    fv__bytes_append(&text, "", 1);
    return (char *)text.data;
}

/* Whether the file gives the image back as it was; some formats know fewer types or axes, and say so or change them. */
static bool holds(const fv_format *format, const char *path, const test_image *image) {
    test_image again = { 0 };
    fv_error   error = { 0 };
    if (!strcmp(format->name, "raw")) return true;
    bool same = test_read_file(path, &again, &error) == FV_OK && test_same_pixels(&again, image);
    if (again.data) test_image_free(&again);
    return same;
}

static void add_kind(const fv_format *format, const char *compression, const fv_write_options *options, const char *cut) {
    kind *k = &kinds[nkinds];
    int   held = 0, length = (int)strcspn(format->extensions, " ");
    k->format = format;
    k->label = fv__sprintf("%s%s%s%s", format->name, compression ? " " : "", compression ? compression : "", cut);
    for (int i = 0; i < FV_COUNT(sources); i++) {
        fv_error error = { 0 };
        char    *path = fv__sprintf("%s/%d-%s.%.*s", test_folder(), nkinds, sources[i].name, length, format->extensions);
        if (test_write_file(path, &pictures[i], options, 0, &error) == FV_OK && holds(format, path, &pictures[i]))
            k->x[i] = read_call(format, path, i);
        held += k->x[i] != NULL;
        free(path);
    }
    if (held)
        nkinds++;
    else
        free(k->label);
}

/* Every format and compression, and once in pieces so small that the image has many, where pieces can be chosen. */
static void write_files(void) {
    if (nkinds) return;
    make_pictures();
    for (int f = 0; f < fv__format_count(); f++) {
        const fv_format *format = fv__format_at(f);
        if (!format->layout) continue;
        char *list = fv__strdup(format->compressions ? format->compressions : ""), *rest = list, *name;
        add_kind(format, NULL, &(fv_write_options){ .chunk_ndim = 3, .chunk = { 2, 8, 16 } }, " in chunks");
        add_kind(format, NULL, &(fv_write_options){ .chunk_ndim = 2, .chunk = { 16, 16 } }, " in tiles");
        add_kind(format, NULL,
                 &(fv_write_options){ .chunk_ndim = 3, .chunk = { 2, 8, 8 }, .shard_ndim = 3, .shard = { 4, 16, 16 } },
                 " in shards");
        do {
            name = strsep(&rest, "|");
            add_kind(format, *name ? name : NULL, &(fv_write_options){ .compression = *name ? name : NULL }, "");
        } while (rest && nkinds < MOST_KINDS - 4);
        free(list);
    }
}

/* ---------------------------------------------------------------- comparing */

static bool compare(const kind *k, int i, int cut, char **cases, int number, const test_setting *setting) {
    const answer *a = right(i, cut, cases, number);
    if (!a->good) return false;
    fv_error     error = { 0 };
    test_outcome out = { 0 };
    if (!test_outcome_take(make(k->x[i], sources[i].cuts[cut], cases[number], -1, &error), setting, &out, &error))
        FAIL("%s of %s, %s%s (chunk %lldx%lldx%lld): %s", cases[number], k->label, sources[i].name, sources[i].cuts[cut],
             (long long)setting->chunk[0], (long long)setting->chunk[1], (long long)setting->chunk[2], error.message);
    else if (!test_outcome_same(&out, &a->outcome))
        FAIL("%s of %s, %s%s (chunk %lldx%lldx%lld): another result than of the array", cases[number], k->label, sources[i].name,
             sources[i].cuts[cut], (long long)setting->chunk[0], (long long)setting->chunk[1], (long long)setting->chunk[2]);
    test_outcome_release(&out);
    return true;
}

/* One cut after the other, of one source after the other, until there is one that the operator takes. */
static bool compare_one(const kind *k, char **cases, int number, uint64_t *state, const char *engine) {
    int first = (int)(test_random(state) % FV_COUNT(sources));
    for (int s = 0; s < FV_COUNT(sources); s++) {
        int i = (first + s) % FV_COUNT(sources), n = cuts_of(i), from = (int)(test_random(state) % (uint64_t)n);
        for (int c = 0; c < n && k->x[i]; c++) {
            test_setting setting = test_setting_random(state, engine);
            if (compare(k, i, (from + c) % n, cases, number, &setting)) return true;
        }
    }
    return false;
}

TEST(parts_of_files_in_every_format_give_what_parts_of_arrays_give) {
    int      ncases;
    char   **cases = test_lines(CASES, &ncases);
    uint64_t state = 3;
    CHECK(ncases > 30 && ncases <= MOST_CASES);
    write_files();
    CHECK(nkinds > 15);
    for (int first = 0, last, f = 0; first < nkinds; first = last, f++) { /* the kinds of a format follow each other */
        for (last = first; last < nkinds && kinds[last].format == kinds[first].format;) last++;
        for (int c = 0, turn = 0; c < ncases; c++)
            if ((c + f) % ONE_OF == 0) compare_one(&kinds[first + turn++ % (last - first)], cases, c, &state, NULL);
    }
    test_lines_free(cases, ncases);
}

TEST(every_way_to_cut_a_file_goes_with_every_operator_over_all_of_it) {
    int      ncases;
    char   **cases = test_lines(CASES, &ncases);
    uint64_t state = 7;
    write_files();
    CHECK(ncases > 30 && ncases <= MOST_CASES);
    for (int c = 0; c < ncases; c++) {
        int compared = 0;
        for (int i = 0; i < FV_COUNT(sources); i++)
            for (int cut = 0; cut < cuts_of(i); cut++) {
                if (compared && (c + i + cut) % ONE_OF) continue;
                int k = (int)(test_random(&state) % (uint64_t)nkinds);
                while (!kinds[k].x[i]) k = (k + 1) % nkinds;
                test_setting setting = { .workers = 2, .poison = 0x55 }; /* chunks as the plan likes */
                compared += compare(&kinds[k], i, cut, cases, c, &setting);
            }
        if (!compared) FAIL("%s: no cut of any file suits it", cases[c]);
    }
    test_lines_free(cases, ncases);
}

TEST(parts_of_files_are_the_same_on_processes) {
    if (!getenv("FOVEA")) SKIP("FOVEA does not name the fovea command");
    int      ncases;
    char   **cases = test_lines(CASES, &ncases);
    uint64_t state = 9;
    write_files();
    CHECK(ncases > 30 && ncases <= MOST_CASES);
    for (int k = 0; k < nkinds; k++) compare_one(&kinds[k], cases, (k * 7) % ncases, &state, "processes");
    test_lines_free(cases, ncases);
}

/* A word that stands alone and is followed by a bracket. */
static bool appears(const char *name, char **cases, int count) {
    size_t length = strlen(name);
    for (int c = 0; c < count; c++)
        for (const char *at = cases[c]; (at = strstr(at, name)); at++)
            if (at[length] == '(' && (at == cases[c] || !(isalnum((unsigned char)at[-1]) || at[-1] == '_'))) return true;
    return false;
}

TEST(no_operator_of_several_passes_is_left_out) {
    int    ncases;
    char **cases = test_lines(CASES, &ncases);
    for (int i = 0; i < fv__op_count(); i++) {
        const fv_op *op = fv__op_at(i);
        bool         finishes = false;
        for (const fv_pass *pass = op->passes; pass && pass->run; pass++) finishes = finishes || pass->finish;
        if (!finishes || !op->inputs || op->place_later || fv__params_file(op) || appears(op->name, cases, ncases)) continue;
        test_fail(__FILE__, __LINE__, "%s has no line in %s", op->name, CASES);
        fprintf(stderr, "%s has no line\n", op->name);
    }
    test_lines_free(cases, ncases);
}

TEST_MAIN
