/* Parameters: defaults, validation, and their text. */
#include "op/params.h"
#include "base/number.h"
#include <stdio.h>
#include <stdlib.h>

const char *fv__kind_name(fv_kind kind) {
    static const char *const names[] = {
        "nothing", "image", "scalar", "table", "footprint", "list", "geometry", "list of files"
    };
    return names[kind];
}

const fv_param *fv__params_find(const fv_op *op, const char *name) {
    for (const fv_param *p = op->params; p && p->name; p++)
        if (!strcmp(p->name, name)) return p;
    return NULL;
}

const fv_param *fv__params_file(const fv_op *op) {
    const fv_param *p = op->params;
    while (p && p->name && !p->file) p++;
    return p && p->name ? p : NULL;
}

const fv_param *fv__params_joining(const fv_op *op) {
    const fv_param *p = op->params;
    while (p && p->name && !p->joins) p++;
    return p && p->name ? p : NULL;
}

const fv_param *fv__params_of_values(const fv_op *op) {
    const fv_param *p = op->params;
    while (p && p->name && !p->values) p++;
    return p && p->name ? p : NULL;
}

int fv__inputs_count(const fv_op *op) {
    int n = 0;
    while (op->inputs && op->inputs[n].name) n++;
    return n;
}

int fv__inputs_find(const fv_op *op, const char *name) {
    for (int i = 0; op->inputs && op->inputs[i].name; i++)
        if (!strcmp(op->inputs[i].name, name)) return i;
    return -1;
}

/* ---------------------------------------------------------------- literals */

static bool parse_number(const char **p, double *number, bool *integral) {
    char *end;
    *number = strtod(*p, &end);
    if (end == *p) return false;
    *integral = true;
    for (const char *c = *p; c < end; c++)
        if (*c == '.' || *c == 'e' || *c == 'E' || *c == 'n' || *c == 'i') *integral = false;
    *p = end;
    return true;
}

static bool parse_list(const char *p, fv_literal *literal) {
    bool integral;
    *literal = (fv_literal){ .kind = FV_LITERAL_NUMBERS };
    for (p++;; p++) {
        p += strspn(p, " ");
        if (*p == ']' && !literal->numbers.count) break;
        if (literal->numbers.count == FV_MAX_NUMBERS) return false;
        if (!parse_number(&p, &literal->numbers.value[literal->numbers.count++], &integral)) return false;
        p += strspn(p, " ");
        if (*p == ']') break;
        if (*p != ',') return false;
    }
    return !p[1 + strspn(p + 1, " ")];
}

bool fv__literal_parse(const char *text, fv_literal *literal, fv_arena *arena) {
    const char *p = text + strspn(text, " ");
    *literal = (fv_literal){ .kind = FV_LITERAL_NUMBER };
    if (*p == '[') return parse_list(p, literal);
    if (!strcmp(p, "true") || !strcmp(p, "false")) {
        literal->kind = FV_LITERAL_FLAG;
        literal->flag = *p == 't';
        return true;
    }
    if (*p >= '0' && *p <= '9' ? true : (*p == '-' || *p == '+' || *p == '.') && p[1] >= '0' && p[1] <= '9') {
        const char *end = p;
        if (parse_number(&end, &literal->number, &literal->integral) && !end[strspn(end, " ")]) return true;
    }
    literal->kind = FV_LITERAL_TEXT;
    size_t length = strlen(p);
    if (length >= 2 && *p == '"' && p[length - 1] == '"') {
        p++;
        length -= 2;
    }
    literal->text = fv__arena_strndup(arena, p, length);
    return true;
}

static void format_number(double number, fv_bytes *out) {
    char text[FV_NUMBER_SIZE];
    fv__real_format(number, text);
    fv__bytes_printf(out, "%s", text);
}

static void format_numbers(const fv_numbers *numbers, fv_bytes *out) {
    fv__bytes_printf(out, "[");
    for (int i = 0; i < numbers->count; i++) {
        if (i) fv__bytes_printf(out, ", ");
        format_number(numbers->value[i], out);
    }
    fv__bytes_printf(out, "]");
}

static void format_list(const fv_list *list, fv_bytes *out) {
    fv__bytes_printf(out, "[");
    for (int64_t i = 0; i < list->count; i++) {
        if (i) fv__bytes_printf(out, ", ");
        format_number(list->value[i], out);
    }
    fv__bytes_printf(out, "]");
}

static void format_footprint(const fv_footprint *footprint, fv_bytes *out) {
    switch (footprint->shape) {
    case FV_FOOTPRINT_NONE: fv__bytes_printf(out, "none"); break;
    case FV_FOOTPRINT_CROSS: fv__bytes_printf(out, "cross()"); break;
    case FV_FOOTPRINT_BALL:
    case FV_FOOTPRINT_DISK:
        fv__bytes_printf(out, footprint->shape == FV_FOOTPRINT_BALL ? "ball(" : "disk(");
        format_number(footprint->radius, out);
        fv__bytes_printf(out, ")");
        break;
    case FV_FOOTPRINT_BOX:
        fv__bytes_printf(out, "box([");
        for (int d = 0; d < footprint->ndim; d++) fv__bytes_printf(out, "%s%lld", d ? ", " : "", (long long)footprint->size[d]);
        fv__bytes_printf(out, "])");
        break;
    case FV_FOOTPRINT_PATTERN:
        fv__bytes_printf(out, "pattern(");
        format_list(&footprint->values, out);
        for (int d = 0; d < footprint->ndim; d++)
            fv__bytes_printf(out, "%s%lld", d ? ", " : ", shape = [", (long long)footprint->size[d]);
        fv__bytes_printf(out, footprint->ndim ? "])" : ")");
        break;
    }
}

static void format_geometry(const fv_geometry *g, fv_bytes *out) {
    if (g->beam == FV_GEOMETRY_NONE) {
        fv__bytes_printf(out, "none");
        return;
    }
    fv__bytes_printf(out, g->beam == FV_GEOMETRY_CONE ? "cone(angles = " : "parallel(angles = ");
    format_list(&g->angles, out);
    fv__bytes_printf(out, ", unit = \"%s\"", g->radians ? "rad" : "deg");
    if (g->center.count) {
        fv__bytes_printf(out, ", center = ");
        format_list(&g->center, out);
    }
    const double             rest[] = { g->source, g->detector, g->pitch, g->offset };
    static const char *const names[] = { "source", "detector", "pitch", "offset" };
    for (int k = 0; k < 4 && g->beam == FV_GEOMETRY_CONE; k++) {
        fv__bytes_printf(out, ", %s = ", names[k]);
        format_number(rest[k], out);
    }
    fv__bytes_printf(out, ")");
}

static void format_text(const char *text, fv_bytes *out) {
    fv__bytes_printf(out, "\"");
    for (const char *c = text; *c; c++) fv__bytes_printf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    fv__bytes_printf(out, "\"");
}

void fv__literal_format(const fv_literal *literal, fv_bytes *out) {
    switch (literal->kind) {
    case FV_LITERAL_NUMBER: format_number(literal->number, out); break;
    case FV_LITERAL_TEXT: format_text(literal->text, out); break;
    case FV_LITERAL_FILES: fv__bytes_printf(out, "%s", literal->text); break;
    case FV_LITERAL_FLAG: fv__bytes_printf(out, literal->flag ? "true" : "false"); break;
    case FV_LITERAL_NUMBERS: format_numbers(&literal->numbers, out); break;
    case FV_LITERAL_FOOTPRINT: format_footprint(&literal->footprint, out); break;
    case FV_LITERAL_LIST: format_list(&literal->list, out); break;
    case FV_LITERAL_GEOMETRY: format_geometry(&literal->geometry, out); break;
    }
}

/* ---------------------------------------------------------------- fields */

static int choice_index(const char *choices, const char *word) {
    size_t length = strlen(word);
    int    index = 0;
    for (const char *p = choices; *p; index++) {
        size_t n = strcspn(p, "|");
        if (n == length && !strncmp(p, word, n)) return index;
        p += n + (p[n] == '|');
    }
    return -1;
}

enum { VALUE_SHOWN = 64 }; /* bytes of a value in a message */

static const char *expected(const fv_param *param) {
    switch (param->kind) {
    case FV_PARAM_NUMBER: return "a number";
    case FV_PARAM_INTEGER: return "a whole number";
    case FV_PARAM_FLAG: return "true or false";
    case FV_PARAM_TEXT: return "a text in quotes";
    case FV_PARAM_CHOICE: return "one of its words in quotes";
    case FV_PARAM_NUMBERS: return "a number or a list of numbers";
    case FV_PARAM_DTYPE: return "a type in quotes, such as \"uint8\" or \"float32\"";
    case FV_PARAM_FOOTPRINT: return "a footprint: box(n), ball(r), disk(r), cross() or pattern([...])";
    case FV_PARAM_LIST: return "a number or a list of numbers";
    case FV_PARAM_GEOMETRY: return "a geometry: parallel(angles) or cone(angles, source, detector)";
    }
    return "";
}

static fv_status check_number(const fv_param *param, double value, fv_error *error) {
    bool any = param->min == 0 && param->max == 0 && !param->above;
    if (value != value && param->blank) return FV_OK;
    if (value != value) return fv_fail(error, FV_ERROR_USAGE, "%s is not a number", param->name);
    if (any) return FV_OK;
    bool open = param->max == 0 && param->min >= 0; /* no upper end given */
    if (param->above ? value > param->min : value >= param->min)
        if (open ? isfinite(value) : value <= param->max) return FV_OK;
    if (open)
        return fv_fail(error, FV_ERROR_USAGE, "%s = %g: must be %s %g%s", param->name, value, param->above ? "above" : "at least",
                       param->min, isinf(value) ? " and finite" : "");
    return fv_fail(error, FV_ERROR_USAGE, "%s = %g: must be between %g and %g%s", param->name, value, param->min, param->max,
                   param->above ? " (the lower end excluded)" : "");
}

/* Of a number that was written as a text, with a sign or unit behind it, how to write it. */
static void as_number(const fv_param *param, const fv_literal *value, char *out, size_t size) {
    char       *rest;
    const char *text = value->kind == FV_LITERAL_TEXT ? value->text : NULL;
    double      number = text ? strtod(text, &rest) : 0;
    *out = 0;
    if (!text || rest == text || param->kind == FV_PARAM_TEXT || param->kind == FV_PARAM_CHOICE) return;
    rest += strspn(rest, " ");
    if (!strcmp(rest, "%"))
        snprintf(out, size, ", as %g", number / 100);
    else if (!*rest || (param->unit && !strcmp(rest, param->unit)))
        snprintf(out, size, ", as %g", number);
    else if (param->unit)
        snprintf(out, size, " in %s", param->unit);
}

static fv_status wrong_kind(const fv_param *param, const fv_literal *value, fv_error *error) {
    fv_bytes text = { 0 };
    char     shown[VALUE_SHOWN], as[64];
    fv__literal_format(value, &text);
    fv_text_cut((char *)text.data, shown, sizeof shown);
    as_number(param, value, as, sizeof as);
    fv_fail(error, FV_ERROR_USAGE, "%s = %s: expected %s%s", param->name, shown, expected(param), as);
    fv__bytes_release(&text);
    return FV_ERROR_USAGE;
}

static fv_status set_word(const fv_param *param, void *field, const char *word, fv_arena *arena, fv_error *error) {
    fv_dtype dtype;
    int      index;
    char     shown[VALUE_SHOWN];
    fv_text_cut(word, shown, sizeof shown);
    switch (param->kind) {
    case FV_PARAM_TEXT: *(const char **)field = fv__arena_strdup(arena, word); return FV_OK;
    case FV_PARAM_CHOICE:
        index = choice_index(param->choices, word);
        if (index < 0)
            return fv_fail(error, FV_ERROR_USAGE, "%s = \"%s\": must be one of %s", param->name, shown, param->choices);
        ((fv_choice *)field)->index = index;
        return FV_OK;
    default:
        if (!fv_dtype_parse(word, &dtype))
            return fv_fail(error, FV_ERROR_USAGE,
                           "%s = \"%s\": no such type; types are bool, uint8, int8, uint16, int16, uint32, "
                           "int32, uint64, int64, float32, float64, complex64, complex128",
                           param->name, shown);
        ((fv_dtype_choice *)field)->dtype = (int)dtype;
        return FV_OK;
    }
}

static fv_status set_list(const fv_param *param, fv_list *field, const fv_literal *value, fv_arena *arena, fv_error *error) {
    const double *from = value->kind == FV_LITERAL_NUMBER    ? &value->number
                         : value->kind == FV_LITERAL_NUMBERS ? value->numbers.value
                                                             : value->list.value;
    int64_t       count = value->kind == FV_LITERAL_NUMBER    ? 1
                          : value->kind == FV_LITERAL_NUMBERS ? value->numbers.count
                                                              : value->list.count;
    double       *copy = fv__arena_alloc(arena, (size_t)FV_MAX(count, 1) * sizeof *copy);
    for (int64_t i = 0; i < count; i++) {
        FV_TRY(check_number(param, from[i], error));
        copy[i] = from[i];
    }
    *field = (fv_list){ count, copy };
    return FV_OK;
}

fv_status fv__params_set(const fv_op *op, const fv_param *param, void *params, const fv_literal *value, fv_arena *arena,
                         fv_error *error) {
    (void)op;
    void *field = (char *)params + param->offset;
    bool  is_number = value->kind == FV_LITERAL_NUMBER, is_text = value->kind == FV_LITERAL_TEXT;
    switch (param->kind) {
    case FV_PARAM_NUMBER:
        if (!is_number) return wrong_kind(param, value, error);
        *(double *)field = value->number;
        return check_number(param, value->number, error);
    case FV_PARAM_INTEGER:
        if (!is_number || value->number != floor(value->number) || fabs(value->number) > 0x1p53)
            return wrong_kind(param, value, error);
        *(int64_t *)field = (int64_t)value->number;
        return check_number(param, value->number, error);
    case FV_PARAM_FLAG:
        if (value->kind != FV_LITERAL_FLAG) return wrong_kind(param, value, error);
        *(bool *)field = value->flag;
        return FV_OK;
    case FV_PARAM_NUMBERS:
        if (value->kind == FV_LITERAL_LIST)
            return fv_fail(error, FV_ERROR_USAGE, "%s has %lld numbers; it takes at most %d", param->name,
                           (long long)value->list.count, FV_MAX_NUMBERS);
        if (!is_number && value->kind != FV_LITERAL_NUMBERS) return wrong_kind(param, value, error);
        *(fv_numbers *)field = is_number ? (fv_numbers){ 1, { value->number } } : value->numbers;
        for (int i = 0; i < ((fv_numbers *)field)->count; i++)
            FV_TRY(check_number(param, ((fv_numbers *)field)->value[i], error));
        return FV_OK;
    case FV_PARAM_TEXT:
    case FV_PARAM_CHOICE:
    case FV_PARAM_DTYPE:
        if (!is_text) return wrong_kind(param, value, error);
        return set_word(param, field, value->text, arena, error);
    case FV_PARAM_FOOTPRINT:
        if (value->kind != FV_LITERAL_FOOTPRINT) return wrong_kind(param, value, error);
        *(fv_footprint *)field = value->footprint;
        return FV_OK;
    case FV_PARAM_LIST:
        if (!is_number && value->kind != FV_LITERAL_NUMBERS && value->kind != FV_LITERAL_LIST)
            return wrong_kind(param, value, error);
        return set_list(param, field, value, arena, error);
    case FV_PARAM_GEOMETRY:
        if (value->kind != FV_LITERAL_GEOMETRY) return wrong_kind(param, value, error);
        *(fv_geometry *)field = value->geometry;
        return FV_OK;
    }
    return FV_ERROR_INTERNAL;
}

void fv__params_default(const fv_op *op, void *params) {
    for (const fv_param *p = op->params; p && p->name; p++) {
        void *field = (char *)params + p->offset;
        if (p->kind == FV_PARAM_DTYPE) ((fv_dtype_choice *)field)->dtype = -1;
        if (!p->def || !*p->def) continue;
        if (p->kind == FV_PARAM_TEXT) {
            *(const char **)field = p->def;
            continue;
        }
        fv_arena   arena = { 0 };
        fv_literal literal;
        fv__literal_parse(p->def, &literal, &arena);
        if (p->kind == FV_PARAM_FOOTPRINT) { /* the only sensible default */
            ((fv_footprint *)field)->shape = FV_FOOTPRINT_CROSS;
        } else if (fv__params_set(op, p, params, &literal, &arena, NULL) != FV_OK) {
            fprintf(stderr, "fovea: operator %s: bad default %s for %s\n", op->name, p->def, p->name);
            abort();
        }
        fv__arena_release(&arena);
    }
}

static void format_field(const fv_param *p, const void *field, fv_bytes *out) {
    switch (p->kind) {
    case FV_PARAM_NUMBER: format_number(*(const double *)field, out); break;
    case FV_PARAM_INTEGER: fv__bytes_printf(out, "%lld", (long long)*(const int64_t *)field); break;
    case FV_PARAM_FLAG: fv__bytes_printf(out, *(const bool *)field ? "true" : "false"); break;
    case FV_PARAM_TEXT: format_text(*(const char *const *)field ? *(const char *const *)field : "", out); break;
    case FV_PARAM_NUMBERS: format_numbers(field, out); break;
    case FV_PARAM_FOOTPRINT: format_footprint(field, out); break;
    case FV_PARAM_LIST: format_list(field, out); break;
    case FV_PARAM_GEOMETRY: format_geometry(field, out); break;
    case FV_PARAM_DTYPE: {
        int dtype = ((const fv_dtype_choice *)field)->dtype;
        format_text(dtype < 0 ? "" : fv_dtype_name((fv_dtype)dtype), out);
        break;
    }
    case FV_PARAM_CHOICE: {
        const char *word = p->choices;
        for (int i = ((const fv_choice *)field)->index; i > 0; i--) word = strchr(word, '|') + 1;
        fv__bytes_printf(out, "\"%.*s\"", (int)strcspn(word, "|"), word);
        break;
    }
    }
}

void fv__params_format(const fv_op *op, const void *params, fv_bytes *out) {
    for (const fv_param *p = op->params; p && p->name; p++) {
        if (p != op->params) fv__bytes_printf(out, ", ");
        fv__bytes_printf(out, "%s = ", p->name);
        format_field(p, (const char *)params + p->offset, out);
    }
}
