/* Properties that other operators compute; see delegated.h. */
#include "ops/measurement/delegated.h"
#include <stdio.h>
#include <stdlib.h>

static const char *const of_hulls[] = { "convex_volume", "solidity", "feret_max", "feret_min" };
enum { HULLS = FV_COUNT(of_hulls), MOST = 160 };
static const char separators[] = " ,\t\n";

static int hull_property(const char *word) {
    for (int k = 0; k < HULLS; k++)
        if (!strcmp(word, of_hulls[k])) return k;
    return -1;
}

/* 0 .. 100; -1: it is none. */
static int percentile(const char *word) {
    static const char start[] = "percentile_";
    size_t            n = sizeof start - 1;
    if (!strcmp(word, "median")) return 50;
    if (strncmp(word, start, n) || !word[n] || strlen(word) > n + 3 || word[n + strspn(word + n, "0123456789")]) return -1;
    int number = atoi(word + n);
    return number <= 100 ? number : -1;
}

/* The next word; false behind the last. */
static bool next_word(const char **at, char word[40]) {
    *at += strspn(*at, separators);
    size_t n = strcspn(*at, separators);
    snprintf(word, 40, "%.*s", (int)FV_MIN(n, 39), *at);
    *at += n;
    return n > 0;
}

bool fv__split_needed(const char *properties) {
    char word[40];
    if (!properties) return false;
    for (const char *at = properties; next_word(&at, word);)
        if (!strcmp(word, "all") || hull_property(word) >= 0 || percentile(word) >= 0) return true;
    return false;
}

/* What was asked for, each word once. */
typedef struct {
    int      count;
    char     word[MOST][40];
    fv_bytes own, percentiles;   /* words that measure itself knows; numbers */
    bool     hulls, wanted[101]; /* by percentile */
} request;

static fv_status add_word(request *q, const char *word, fv_error *error) {
    if (!strcmp(word, "label")) return FV_OK;
    for (int k = 0; k < q->count; k++)
        if (!strcmp(q->word[k], word)) return fv_fail(error, FV_ERROR_USAGE, "properties: %s is named twice", word);
    if (q->count == MOST) return fv_fail(error, FV_ERROR_USAGE, "properties: too many words");
    snprintf(q->word[q->count++], 40, "%s", word);
    if (hull_property(word) >= 0)
        q->hulls = true;
    else if (percentile(word) >= 0) {
        if (!q->wanted[percentile(word)])
            fv__bytes_printf(&q->percentiles, "%s%d", q->percentiles.size ? ", " : "", percentile(word));
        q->wanted[percentile(word)] = true;
    } else
        fv__bytes_printf(&q->own, "%s%s", q->own.size ? " " : "", word);
    return FV_OK;
}

static fv_status objection(const fv_type *labels, const char *word, fv_error *error) {
    int spatial[FV_MAX_DIMS], n = fv_image_type_spatial(&labels->image, spatial);
    if (n != labels->image.ndim || n < 2 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE,
                       "properties: %s cannot be measured here: it needs labels with two or three axes z, y, x and no others; "
                       "per = \"t\" takes times apart",
                       word);
    return FV_OK;
}

/* All that there are of these images. Medians and percentiles are not among them: of several images they would be more columns
 * than a table can have. */
static fv_status add_all(request *q, const fv_type *const *in, const fv__views *views, fv_error *error) {
    fv__properties own;
    FV_TRY(fv__properties_parse(&own, "all", &in[0]->image, views, error));
    for (int k = 0; k < own.count; k++) FV_TRY(add_word(q, fv__property_name(own.which[k]), error));
    for (int k = 0; k < HULLS; k++) {
        fv_error none = { 0 };
        if (objection(in[0], of_hulls[k], &none) == FV_OK) FV_TRY(add_word(q, of_hulls[k], error));
    }
    return FV_OK;
}

static fv_status parse(const char *properties, const fv_type *const *in, const fv__views *views, request *q, fv_error *error) {
    char word[40];
    for (const char *at = properties; next_word(&at, word);) {
        if (!strcmp(word, "all")) {
            FV_TRY(add_all(q, in, views, error));
            continue;
        }
        if (hull_property(word) >= 0) FV_TRY(objection(in[0], word, error));
        if (percentile(word) >= 0 && !views->count)
            return fv_fail(error, FV_ERROR_USAGE,
                           "properties: %s cannot be measured here: it needs an intensity image, measure(labels, image)", word);
        FV_TRY(add_word(q, word, error));
    }
    return FV_OK;
}

/* The names of the columns in the order of the words. */
static fv_status list_columns(const request *q, const fv_type *const *in, const fv__views *views, fv_bytes *list,
                              fv_error *error) {
    fv__properties own;
    int            place = 0;
    FV_TRY(fv__properties_parse(&own, q->own.size ? (const char *)q->own.data : "voxels", &in[0]->image, views, error));
    fv__bytes_printf(list, "label");
    for (int k = 0; k < views->naxes; k++) fv__bytes_printf(list, ", %s", views->axis[k]);
    for (int k = 0; k < q->count; k++) {
        fv_table_type table = { 0 };
        if (hull_property(q->word[k]) >= 0)
            fv__bytes_printf(list, ", %s", q->word[k]);
        else if (percentile(q->word[k]) >= 0)
            for (int v = 0; v < views->count; v++)
                fv__bytes_printf(list, ", percentile_%d%s as %s%s", percentile(q->word[k]), views->view[v].suffix, q->word[k],
                                 views->view[v].suffix);
        else {
            FV_TRY(fv__property_columns(&own, place++, in, views, &table, error));
            for (int c = 0; c < table.ncolumns; c++) fv__bytes_printf(list, ", %s", table.column[c].name);
        }
    }
    return FV_OK;
}

static void write_text(const request *q, const char *per, const fv_type *const *in, const fv__views *views, const char *columns,
                       fv_bytes *text) {
    static const char *const names[] = { "labels", "intensity", "intensity_2", "intensity_3", "intensity_4" };
    char                     images[80] = "", key[64] = "label", apart[40] = "";
    for (int k = 1; k < FV_COUNT(names) && in[k]->kind == FV_KIND_IMAGE; k++)
        snprintf(images + strlen(images), sizeof images - strlen(images), ", %s", names[k]);
    if (per && *per) snprintf(apart, sizeof apart, ", per = \"%s\"", per);
    fv__bytes_printf(text, "_all = measure(labels%s, properties = \"%s\"%s)\n", images,
                     q->own.size ? (const char *)q->own.data : "voxels", apart);
    const char *left = "_all";
    if (q->hulls) {
        fv__bytes_printf(text, "_with_hulls = join(%s, hulls(labels%s), on = \"label%s%s\")\n", left, apart, *apart ? ", " : "",
                         *apart ? per : "");
        left = "_with_hulls";
    }
    for (int k = 0; k < views->naxes; k++) snprintf(key + strlen(key), sizeof key - strlen(key), ", %s", views->axis[k]);
    if (q->percentiles.size) {
        fv__bytes_printf(text, "_with_percentiles = join(%s, percentiles(labels%s, percentiles = [%s]%s), on = \"%s\")\n", left,
                         images, (const char *)q->percentiles.data, apart, key);
        left = "_with_percentiles";
    }
    fv__bytes_printf(text, "select(%s, \"%s\")\n", left, columns);
}

fv_status fv__split(const char *properties, const char *per, const fv_type *const *in, const fv__views *views, fv_bytes *text,
                    fv_error *error) {
    request  *q = fv__calloc(sizeof *q);
    fv_bytes  columns = { 0 };
    fv_status status = parse(properties, in, views, q, error);
    if (status == FV_OK) status = list_columns(q, in, views, &columns, error);
    if (status == FV_OK && (q->hulls || q->percentiles.size)) write_text(q, per, in, views, (const char *)columns.data, text);
    fv__bytes_release(&columns);
    fv__bytes_release(&q->own);
    fv__bytes_release(&q->percentiles);
    free(q);
    return status;
}
