/* facts: numbers about an image that a text asks for by name, as a table of one row. Written in other operators. */
#include "op/op.h"
#include <ctype.h>
#include <stdio.h>

typedef struct {
    const char *names;
} facts;

static const fv_param params[] = {
    FV_PARAM(facts, names,
             .doc = "what to tell, such as \"mean std x y\" or any text that uses these words: mean, std, var, min, max, sum, "
                    "median; voxels; the names of the axes for their lengths; spacing_x and so on; type"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to tell about" }, FV_INPUT_END };

enum { MOST = 6 }; /* numbers that must be computed */

typedef struct {
    const fv_image_type *image;
    fv_bytes             values, names, given; /* arguments of row; what with adds */
    int                  count;
    fv_bytes             met; /* the words so far, with blanks around each */
} asking;

static bool is_word(const char *word, size_t length, const char *list) {
    for (const char *at = list; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == length && !strncmp(at, word, length)) return true;
    return false;
}

static int axis_of(const fv_image_type *image, const char *word, size_t length) {
    for (int d = 0; d < image->ndim; d++)
        if (strlen(image->axis[d]) == length && !strncmp(image->axis[d], word, length)) return d;
    return -1;
}

static fv_status unknown(const asking *a, const char *word, size_t length, fv_error *error) {
    fv_bytes axes = { 0 };
    for (int d = 0; d < a->image->ndim; d++) fv__bytes_printf(&axes, ", %s, spacing_%s", a->image->axis[d], a->image->axis[d]);
    fv_fail(
        error, FV_ERROR_USAGE,
        "%.*s is nothing that an image has; it has mean, std, var, min, max, sum, median, voxels, type%s, and in a collection "
        "item and path",
        (int)FV_MIN(length, 60), word, axes.data ? (char *)axes.data : "");
    fv__bytes_release(&axes);
    return FV_ERROR_USAGE;
}

static fv_status ask(asking *a, const char *word, size_t length, fv_error *error) {
    int  size = (int)length, axis = axis_of(a->image, word, length);
    bool spacing = length > 8 && !strncmp(word, "spacing_", 8);
    if (is_word(word, length, a->met.data ? (char *)a->met.data : "") || is_word(word, length, "and or not item path true false"))
        return FV_OK;
    fv__bytes_printf(&a->met, "%.*s ", size, word);
    if (spacing) axis = axis_of(a->image, word + 8, length - 8);
    if (is_word(word, length, "mean std var min max sum median")) {
        if (a->count++ == MOST)
            return fv_fail(error, FV_ERROR_USAGE, "at most %d different statistics of an image can be asked for at once", MOST);
        fv__bytes_printf(&a->values, "%.*s(image%s), ", is_word(word, length, "median") ? 8 : size,
                         is_word(word, length, "median") ? "quantile" : word, is_word(word, length, "median") ? ", 0.5" : "");
        fv__bytes_printf(&a->names, "%.*s ", size, word);
    } else if (is_word(word, length, "voxels"))
        fv__bytes_printf(&a->given, ", voxels = %lld", (long long)fv_image_type_voxels(a->image));
    else if (is_word(word, length, "type"))
        fv__bytes_printf(&a->given, ", type = '%s'", fv_dtype_name(a->image->dtype));
    else if (axis >= 0 && spacing)
        fv__bytes_printf(&a->given, ", %.*s = %.17g", size, word, a->image->spacing[axis]);
    else if (axis >= 0)
        fv__bytes_printf(&a->given, ", %.*s = %lld", size, word, (long long)a->image->shape[axis]);
    else
        return unknown(a, word, length, error);
    return FV_OK;
}

/* Words that are no function, and not in quotes. */
static fv_status ask_all(asking *a, const char *text, fv_error *error) {
    while (*text) {
        size_t length = 1;
        if (*text == '\'' || *text == '"') {
            const char *end = strchr(text + 1, *text);
            length = end ? (size_t)(end - text) + 1 : strlen(text);
        } else if (isalnum((unsigned char)*text) || *text == '_') {
            while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
            const char *after = text + length + strspn(text + length, " ");
            bool        number = isdigit((unsigned char)*text);
            if (!number && *after != '(') FV_TRY(ask(a, text, length, error));
        }
        text += length;
    }
    return FV_OK;
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    asking    a = { .image = &i->in[0]->image };
    fv_status status = ask_all(&a, ((facts *)i->params)->names, error);
    if (status == FV_OK && !a.count) {
        fv__bytes_printf(&a.values, "%lld, ", (long long)fv_image_type_voxels(a.image));
        fv__bytes_printf(&a.names, "size ");
    }
    if (status == FV_OK) {
        a.names.data[a.names.size - 1] = 0;
        fv__bytes_printf(text, "t = row(%snames = \"%s\")\n", (char *)a.values.data, (char *)a.names.data);
        if (a.given.size)
            fv__bytes_printf(text, "with(t, \"%s\")", (char *)a.given.data + 2);
        else
            fv__bytes_printf(text, "t");
    }
    fv__bytes_release(&a.values);
    fv__bytes_release(&a.names);
    fv__bytes_release(&a.given);
    fv__bytes_release(&a.met);
    return status;
}

static const fv_column_doc columns[] = {
    { "<names>", .doc = "what was asked for: statistics of the voxels, then lengths of axes and the like" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(facts) = {
    .name = "facts",
    .family = "table",
    .brief = "statistics and sizes of an image as a table of one row",
    .also = "describe, summary, imfinfo",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(facts),
    .result = FV_KIND_TABLE,
    .unroll = unroll,
    .doc = "Of a collection there is a row for each item, so that facts(c, \"mean std\") tells the odd ones. filter and sort of "
           "a collection go by the same words.",
    .example = "a = phantom(\"cells\", [200, 300])\nfacts(a, \"mean std max x y\")",
    .see = "filter_items sort_items row measure",
    .columns = columns,
};
