/* Parameters of sweeps, and what else is resolved once per run. */
#include "graph/items.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- parameters */

int fv__bindings_choice(const fv_bindings *bindings, int combination, int parameter) {
    for (int p = bindings->nparameters - 1; p > parameter; p--) combination /= bindings->parameters[p].count;
    return combination % bindings->parameters[parameter].count;
}

static bool add_value(fv_bindings *bindings, fv_parameter *parameter, const char *text, size_t length) {
    int n = parameter->count++;
    parameter->values = fv__realloc(parameter->values, (size_t)parameter->count * sizeof *parameter->values);
    parameter->texts = fv__realloc(parameter->texts, (size_t)parameter->count * sizeof *parameter->texts);
    parameter->texts[n] = fv__arena_strndup(&bindings->arena, text, length);
    if (!fv__literal_parse(parameter->texts[n], &parameter->values[n], &bindings->arena)) return false;
    if (parameter->values[n].kind == FV_LITERAL_TEXT) /* without its quotes */
        parameter->texts[n] = fv__arena_strdup(&bindings->arena, parameter->values[n].text);
    return true;
}

/* "0..11" or "0..1:0.25": whole text, both ends included as far as the steps reach them. */
static bool is_range(const char *text, size_t length, double *first, double *last, double *step) {
    enum { LONGEST = 96 };
    char copy[LONGEST], *end, *dots;
    if (length >= LONGEST) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    dots = strstr(copy, "..");
    if (!dots) return false;
    *dots = 0;
    *first = strtod(copy, &end);
    if (end == copy || *end) return false;
    *last = strtod(dots + 2, &end);
    *step = *last < *first ? -1 : 1;
    if (end == dots + 2 || (*end && *end != ':')) return false;
    if (!*end) return true;
    const char *digits = end + 1;
    *step = strtod(digits, &end);
    return end > digits && !*end;
}

enum { MOST_COMBINATIONS = 10000 };

static fv_status add_range(fv_bindings *bindings, fv_parameter *parameter, const char *assignment, double first, double last,
                           double step, fv_error *error) {
    double count = floor((last - first) / step + 1e-9) + 1;
    if (!(count >= 1) || !isfinite(count))
        return fv_fail(error, FV_ERROR_USAGE, "--set %s: a step of %g does not lead from %g to %g", assignment, step, first,
                       last);
    if (count > MOST_COMBINATIONS)
        return fv_fail(error, FV_ERROR_USAGE, "--set %s: %.0f values are more than the %d possible", assignment, count,
                       MOST_COMBINATIONS);
    for (int i = 0; i < (int)count; i++) {
        char text[FV_NUMBER_SIZE];
        int  length = snprintf(text, sizeof text, "%.12g", first + i * step);
        add_value(bindings, parameter, text, (size_t)length);
    }
    return FV_OK;
}

/* The end of a value: a comma that is neither in brackets nor in a quoted text, or the end of the text. */
static const char *end_of_value(const char *start) {
    const char *p = start, *quoted = *start == '"' ? strchr(start + 1, '"') : NULL;
    if (quoted) p = quoted;
    for (int depth = 0; *p && (*p != ',' || depth > 0); p++) depth += *p == '[' ? 1 : *p == ']' ? -1 : 0;
    return p;
}

fv_status fv__bindings_set(fv_bindings *bindings, const char *assignment, fv_error *error) {
    const char *equal = strchr(assignment, '=');
    if (!equal || equal == assignment || !equal[1])
        return fv_fail(error, FV_ERROR_USAGE, "--set %s: expected name=value or name=value,value,...", assignment);
    bindings->parameters = fv__realloc(bindings->parameters, (size_t)(bindings->nparameters + 1) * sizeof *bindings->parameters);
    fv_parameter *parameter = &bindings->parameters[bindings->nparameters++];
    *parameter = (fv_parameter){ .name = fv__arena_strndup(&bindings->arena, assignment, (size_t)(equal - assignment)) };
    for (int p = 0; p + 1 < bindings->nparameters; p++)
        if (!strcmp(bindings->parameters[p].name, parameter->name))
            return fv_fail(error, FV_ERROR_USAGE, "--set %s is given twice", parameter->name);
    for (const char *start = equal + 1, *end;; start = end + 1) {
        double first, last, step;
        end = end_of_value(start);
        if (end == start) return fv_fail(error, FV_ERROR_USAGE, "--set %s: an empty value", assignment);
        if (is_range(start, (size_t)(end - start), &first, &last, &step))
            FV_TRY(add_range(bindings, parameter, assignment, first, last, step, error));
        else if (!add_value(bindings, parameter, start, (size_t)(end - start)))
            return fv_fail(error, FV_ERROR_USAGE, "--set %s: a list is written [1, 2.5, 3], with at most %d numbers", assignment,
                           FV_MAX_NUMBERS);
        if (!*end) break;
    }
    int64_t combinations = 1;
    for (int p = 0; p < bindings->nparameters; p++) combinations *= bindings->parameters[p].count;
    if (combinations > MOST_COMBINATIONS)
        return fv_fail(error, FV_ERROR_USAGE, "--set: %lld combinations are more than the %d possible", (long long)combinations,
                       MOST_COMBINATIONS);
    bindings->ncombinations = (int)combinations;
    return FV_OK;
}

static void check_parameters(const fv_bindings *bindings, const fv_program *program, fv_diagnostics *diagnostics) {
    const char *known[64];
    int         count = 0;
    for (int s = 0; s < program->nstatements && count < 64; s++)
        if (program->statements[s].kind == FV_STATEMENT_PARAM) known[count++] = program->statements[s].name;
    for (int p = 0; p < bindings->nparameters; p++) {
        bool found = false;
        for (int k = 0; k < count; k++) found = found || !strcmp(known[k], bindings->parameters[p].name);
        if (found) continue;
        const char *near = fv_nearest_word(bindings->parameters[p].name, known, count);
        char       *hint = near ? fv__sprintf("did you mean %s?", near) : NULL;
        fv__diagnose(diagnostics, (fv_span){ 1, 1, 1 }, hint, "--set %s: the pipeline has no `param %s = ...` line",
                     bindings->parameters[p].name, bindings->parameters[p].name);
        free(hint);
    }
}

/* A value that was set is of the kind that the text has: in the place of a text it is one, and a text is no number. */
static void check_kind(const fv_statement *statement, const fv_literal *there, fv_parameter *parameter,
                       fv_diagnostics *diagnostics) {
    bool        flag = there->kind == FV_LITERAL_FLAG, number = there->kind == FV_LITERAL_NUMBER;
    const char *expected = flag ? "true or false" : number ? "a number" : "a list of numbers";
    for (int n = 0; n < parameter->count; n++) {
        fv_literal *value = &parameter->values[n];
        if (there->kind == FV_LITERAL_TEXT)
            *value = (fv_literal){ .kind = FV_LITERAL_TEXT, .text = parameter->texts[n] };
        else if (value->kind == FV_LITERAL_TEXT)
            fv__diagnose(diagnostics, statement->value->span, NULL, "--set %s=%s: expected %s, as there is in the text",
                         statement->name, parameter->texts[n], expected);
    }
}

static void check_once(const fv_program *program, int statement, fv_diagnostics *diagnostics) {
    const fv_statement *this = &program->statements[statement];
    for (int s = 0; s < statement; s++)
        if (program->statements[s].kind == FV_STATEMENT_PARAM && !strcmp(program->statements[s].name, this->name)) {
            fv__diagnose(diagnostics, this->name_span, "give the new value another name",
                         "%s has a value already; a name is given once", this->name);
            return;
        }
}

/* Parameters of the text that nobody set take the value written there. */
static void add_defaults(fv_bindings *bindings, const fv_program *program, fv_diagnostics *diagnostics) {
    for (int s = 0; s < program->nstatements; s++) {
        const fv_statement *statement = &program->statements[s];
        fv_parameter       *set = NULL;
        fv_literal          literal;
        if (statement->kind != FV_STATEMENT_PARAM) continue;
        check_once(program, s, diagnostics);
        for (int p = 0; p < bindings->nparameters && !set; p++)
            if (!strcmp(bindings->parameters[p].name, statement->name)) set = &bindings->parameters[p];
        if (!fv__expr_literal(statement->value, &literal, &bindings->arena)) {
            fv__diagnose(diagnostics, statement->value->span, NULL,
                         "param %s needs a plain value: a number, a text, true, false or a list of numbers", statement->name);
            continue;
        }
        if (set) {
            check_kind(statement, &literal, set, diagnostics);
            continue;
        }
        fv_bytes text = { 0 };
        if (literal.kind == FV_LITERAL_TEXT)
            fv__bytes_printf(&text, "%s", literal.text);
        else
            fv__literal_format(&literal, &text);
        bindings->parameters =
            fv__realloc(bindings->parameters, (size_t)(bindings->nparameters + 1) * sizeof *bindings->parameters);
        fv_parameter *parameter = &bindings->parameters[bindings->nparameters++];
        *parameter = (fv_parameter){ .name = fv__arena_strdup(&bindings->arena, statement->name) };
        add_value(bindings, parameter, (char *)text.data, text.size);
        parameter->values[0] = literal;
        fv__bytes_release(&text);
    }
}

/* ---------------------------------------------------------------- arrays */

void fv__arrays_hash(fv_bindings *bindings) {
    for (int a = 0; a < bindings->narrays; a++) {
        fv_array *array = &bindings->arrays[a];
        if (array->data) array->content = fv__hash_bytes(array->data, (size_t)fv_image_type_bytes(&array->type));
    }
}

/* ---------------------------------------------------------------- all of it */

fv_status fv__bindings_resolve(fv_bindings *bindings, const fv_program *program, fv_diagnostics *diagnostics, fv_error *error) {
    if (!bindings->ncombinations) bindings->ncombinations = 1;
    check_parameters(bindings, program, diagnostics);
    add_defaults(bindings, program, diagnostics);
    fv_status status = diagnostics->count ? FV_ERROR_USAGE : FV_OK;
    fv_status found = fv__find_items(bindings, program, diagnostics);
    if (status == FV_OK) status = found;
    fv__bindings_arrange(bindings, program);
    return status == FV_OK ? FV_OK : fv_fail(error, status, "the pipeline has mistakes");
}

void fv__bindings_release(fv_bindings *bindings) {
    for (int p = 0; p < bindings->nparameters; p++) {
        free(bindings->parameters[p].values);
        free(bindings->parameters[p].texts);
    }
    free(bindings->parameters);
    free(bindings->lists);
    free(bindings->segments);
    free(bindings->shared);
    free(bindings->arrays);
    free(bindings->keeps);
    fv__arena_release(&bindings->arena);
    *bindings = (fv_bindings){ 0 };
}
