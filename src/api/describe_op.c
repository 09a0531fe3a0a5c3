/* One operator as help text and as JSON, from its descriptor. */
#include "api/describe_ops.h"
#include "api/paragraph.h"
#include "lang/ast.h"
#include "op/params.h"
#include "op/sampling.h"
#include <stdio.h>
#include <stdlib.h>

static const char *const numerics_names[] = { "exact", "same-cpu", "device", "by-chunks" };
static const char *const numerics_docs[] = {
    "exact: the same bits on every processor, for every chunking and engine",
    "same-cpu: the same bits for every chunking and engine on processors of one kind",
    "device: within a stated tolerance between devices",
    "by-chunks: the same bits on every processor and engine with the same chunks; an estimate from others differs",
};

static int numerics_of(const fv_op *op) { return fv__op_samples(op) ? FV_COUNT(numerics_names) - 1 : (int)op->numerics; }

/* Words for people and for programs. */
static const char *const kind_docs[] = {
    "number",         "whole number",     "true or false", "text",           "one of the words below",
    "number or list", "type of elements", "footprint",     "number or list", "geometry"
};
static const char *const kind_names[] = { "number",  "integer", "flag",      "text", "choice",
                                          "numbers", "dtype",   "footprint", "list", "geometry" };

static const char *input_kind(const fv_op *op, const fv_input *input) {
    if (input->kind == FV_KIND_NONE) return op->sink ? "image, table or scalar" : "image or scalar";
    return fv__kind_name(input->kind);
}

/* A point-wise operator gives what its inputs are. */
static const char *result_kind(const fv_op *op) {
    if (op->sink) return "file";
    return op->result == FV_KIND_NONE ? "image or scalar" : fv__kind_name(op->result);
}

/* ---------------------------------------------------------------- text */

static bool quoted(const fv_param *param) {
    return param->kind == FV_PARAM_TEXT || param->kind == FV_PARAM_CHOICE || param->kind == FV_PARAM_DTYPE;
}

static void put_default(const fv_param *param, fv_bytes *out) {
    if (!*param->def)
        fv__bytes_printf(out, "...");
    else
        fv__bytes_printf(out, quoted(param) ? "\"%s\"" : "%s", param->def);
}

/* "image, sigma, mode = "reflect")", to follow the name and an opening bracket. */
static void put_signature(const fv_op *op, fv_bytes *out) {
    const char *separator = "";
    for (const fv_input *i = op->inputs; i && i->name; i++, separator = ", ")
        fv__bytes_printf(out, i->optional ? "%s%s = ..." : "%s%s", separator, i->name);
    for (const fv_param *p = op->params; p && p->name && !p->own; p++, separator = ", ") {
        fv__bytes_printf(out, "%s%s", separator, p->name);
        if (!p->def) continue;
        fv__bytes_printf(out, " = ");
        put_default(p, out);
    }
    fv__bytes_printf(out, ")");
}

/* As fv__params_set checks it: no bounds at all, only a lower one, or both. */
static bool is_bounded(const fv_param *p) { return p->min != 0 || p->max != 0 || p->above; }
static bool is_open(const fv_param *p) { return p->max == 0 && p->min >= 0; }
static bool has_numbers(const fv_param *p) {
    return p->kind == FV_PARAM_NUMBER || p->kind == FV_PARAM_INTEGER || p->kind == FV_PARAM_NUMBERS || p->kind == FV_PARAM_LIST;
}

static void put_facts(const fv_param *p, fv_bytes *out) {
    fv__bytes_printf(out, "%s, ", kind_docs[p->kind]);
    if (!p->def)
        fv__bytes_printf(out, "required");
    else if (!*p->def)
        fv__bytes_printf(out, "may be left out");
    else {
        fv__bytes_printf(out, "default ");
        put_default(p, out);
    }
    if (has_numbers(p) && is_bounded(p)) {
        fv__bytes_printf(out, ", %s %.10g", p->above ? "above" : is_open(p) ? "at least" : "from", p->min);
        if (!is_open(p)) fv__bytes_printf(out, " %s %.10g", p->above ? "and at most" : "to", p->max);
    }
    if (p->unit) fv__bytes_printf(out, ", in %s", p->unit);
}

/* "  name    facts", then the doc and the choices below. */
static void put_item(fv_bytes *out, const char *name, int width, const char *facts, const char *doc, const char *choices) {
    fv_bytes words = { 0 };
    fv__put_entry(out, name, width, facts);
    if (doc) fv__put_entry(out, "", width, doc);
    if (choices) {
        fv__put_words(&words, choices, '|');
        fv__put_entry(out, "", width, (char *)words.data);
    }
    fv__bytes_release(&words);
}

/* Whether the name of a column tells the property: the same word, or the word with _AXIS or _N. */
static bool tells_property(const fv_column_doc *c) {
    size_t length = strlen(c->property);
    return !strncmp(c->name, c->property, length) &&
           (!c->name[length] || !strcmp(c->name + length, "_AXIS") || !strcmp(c->name + length, "_N"));
}

static void put_column(const fv_column_doc *c, int width, int unit_width, fv_bytes *out) {
    char    *left = fv__sprintf("%-*s %c %-*s", width, c->name, c->usual ? '*' : ' ', unit_width, c->unit ? c->unit : "");
    fv_bytes text = { 0 };
    fv__bytes_printf(&text, "%s", c->doc);
    if (c->property && !tells_property(c)) fv__bytes_printf(&text, " (property %s)", c->property);
    fv__put_entry(out, left, (int)strlen(left), (char *)text.data);
    fv__bytes_release(&text);
    free(left);
}

static void put_columns(const fv_op *op, fv_bytes *out) {
    int  width = 0, unit_width = 0;
    bool usual = false, lengths = false;
    if (!op->columns) return;
    for (const fv_column_doc *c = op->columns; c->name; c++) {
        width = FV_MAX(width, (int)strlen(c->name));
        if (c->unit) unit_width = FV_MAX(unit_width, (int)strlen(c->unit));
        usual |= c->usual;
        lengths |= c->unit && (!strcmp(c->unit, "length") || !strcmp(c->unit, "area") || !strcmp(c->unit, "volume"));
    }
    fv__bytes_printf(out, "\ncolumns of the table\n");
    for (const fv_column_doc *c = op->columns; c->name; c++) put_column(c, width, unit_width, out);
    if (usual) fv__bytes_printf(out, "  * measured by default\n");
    if (lengths) fv__bytes_printf(out, "  length, area and volume are in units of the image's spacing\n");
}

static void put_example(const char *example, fv_bytes *out) {
    fv__bytes_printf(out, "\nexample\n");
    while (*example) {
        int length = (int)strcspn(example, "\n");
        fv__bytes_printf(out, "  %.*s\n", length, example);
        example += length + (example[length] == '\n');
    }
}

static int name_width(const fv_op *op) {
    int width = 9;
    for (const fv_input *i = op->inputs; i && i->name; i++) width = FV_MAX(width, (int)strlen(i->name));
    for (const fv_param *p = op->params; p && p->name && !p->own; p++) width = FV_MAX(width, (int)strlen(p->name));
    return width;
}

static void put_values(const fv_op *op, int width, fv_bytes *out) {
    fv_bytes facts = { 0 };
    if (op->inputs && op->inputs->name) fv__bytes_printf(out, "\ninputs\n");
    for (const fv_input *i = op->inputs; i && i->name; i++) {
        fv__bytes_clear(&facts);
        fv__bytes_printf(&facts, "%s%s", input_kind(op, i), i->optional ? ", may be left out" : "");
        put_item(out, i->name, width, (char *)facts.data, i->doc, NULL);
    }
    if (op->params && op->params->name) fv__bytes_printf(out, "\nparameters\n");
    for (const fv_param *p = op->params; p && p->name && !p->own; p++) {
        fv__bytes_clear(&facts);
        put_facts(p, &facts);
        put_item(out, p->name, width, (char *)facts.data, p->doc, p->choices);
    }
    fv__bytes_release(&facts);
}

void fv__op_text(const fv_op *op, fv_bytes *out) {
    int         width = name_width(op);
    const char *sign = op->sign;
    char        version[16];
    fv_bytes    signature = { 0 };
    put_signature(op, &signature);
    fv__bytes_printf(out, "%s(", op->name);
    fv__put_wrapped(out, (char *)signature.data, (int)strlen(op->name) + 1);
    fv__bytes_release(&signature);
    if (sign && fv__inputs_count(op) == 1)
        fv__bytes_printf(out, "%s%s\n", sign, op->inputs[0].name);
    else if (sign && fv__inputs_count(op) == 2)
        fv__bytes_printf(out, "%s %s %s\n", op->inputs[0].name, sign, op->inputs[1].name);
    fv__bytes_printf(out, "\n");
    fv__put_wrapped(out, op->brief, 0);
    if (op->doc) {
        fv__bytes_printf(out, "\n");
        fv__put_wrapped(out, op->doc, 0);
    }
    put_values(op, width, out);
    put_columns(op, out);
    fv__bytes_printf(out, "\nfacts\n");
    fv__put_entry(out, "gives", width, result_kind(op));
    if (op->expands) fv__put_entry(out, "same as", width, op->expands);
    fv__put_entry(out, "numerics", width, numerics_docs[numerics_of(op)]);
    fv__put_entry(out, "family", width, op->family);
    snprintf(version, sizeof version, "%d", op->version);
    fv__put_entry(out, "version", width, version);
    if (op->citation) fv__put_entry(out, "reference", width, op->citation);
    if (op->see) fv__put_entry(out, "see also", width, op->see);
    if (op->also) {
        fv__bytes_printf(out, "\nalso known as\n  ");
        fv__put_wrapped(out, op->also, 2);
    }
    if (op->example) put_example(op->example, out);
}

/* ---------------------------------------------------------------- JSON */

cJSON *fv__words_json(const char *words, char separator) {
    cJSON *list = cJSON_CreateArray();
    for (const char *p = words; *p;) {
        const char *end = strchrnul(p, separator);
        char       *word = fv__sprintf("%.*s", (int)(end - p), p);
        cJSON_AddItemToArray(list, cJSON_CreateString(word));
        free(word);
        p = end + (*end == separator);
    }
    return list;
}

static cJSON *default_json(const fv_param *p) {
    fv_arena   arena = { 0 };
    fv_literal value;
    cJSON     *json = NULL;
    if (quoted(p) || p->kind == FV_PARAM_FOOTPRINT || !fv__literal_parse(p->def, &value, &arena))
        return cJSON_CreateString(p->def);
    switch (value.kind) {
    case FV_LITERAL_NUMBER: json = cJSON_CreateNumber(value.number); break;
    case FV_LITERAL_FLAG: json = cJSON_CreateBool(value.flag); break;
    case FV_LITERAL_NUMBERS: json = cJSON_CreateDoubleArray(value.numbers.value, value.numbers.count); break;
    default: json = cJSON_CreateString(p->def); break;
    }
    fv__arena_release(&arena);
    return json;
}

static cJSON *param_json(const fv_param *p) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", p->name);
    cJSON_AddStringToObject(json, "kind", kind_names[p->kind]);
    cJSON_AddBoolToObject(json, "required", !p->def);
    if (p->file) cJSON_AddBoolToObject(json, "file", true);
    if (p->def && *p->def) cJSON_AddItemToObject(json, "default", default_json(p));
    if (has_numbers(p) && is_bounded(p)) {
        cJSON_AddNumberToObject(json, p->above ? "above" : "minimum", p->min);
        if (!is_open(p)) cJSON_AddNumberToObject(json, "maximum", p->max);
    }
    if (p->choices) cJSON_AddItemToObject(json, "choices", fv__words_json(p->choices, '|'));
    if (p->unit) cJSON_AddStringToObject(json, "unit", p->unit);
    if (p->doc) cJSON_AddStringToObject(json, "doc", p->doc);
    return json;
}

static cJSON *input_json(const fv_op *op, const fv_input *i) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", i->name);
    cJSON_AddStringToObject(json, "kind", input_kind(op, i));
    cJSON_AddBoolToObject(json, "required", !i->optional);
    if (i->doc) cJSON_AddStringToObject(json, "doc", i->doc);
    return json;
}

static cJSON *column_json(const fv_column_doc *c) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", c->name);
    if (c->unit) cJSON_AddStringToObject(json, "unit", c->unit);
    if (c->property) {
        cJSON_AddStringToObject(json, "property", c->property);
        cJSON_AddBoolToObject(json, "usual", c->usual);
    }
    cJSON_AddStringToObject(json, "doc", c->doc);
    return json;
}

cJSON *fv__op_json(const fv_op *op) {
    cJSON      *json = cJSON_CreateObject(), *inputs = cJSON_CreateArray(), *params = cJSON_CreateArray();
    fv_bytes    signature = { 0 };
    const char *sign = op->sign;
    fv__bytes_printf(&signature, "%s(", op->name);
    put_signature(op, &signature);
    cJSON_AddStringToObject(json, "name", op->name);
    cJSON_AddStringToObject(json, "family", op->family);
    cJSON_AddStringToObject(json, "brief", op->brief);
    cJSON_AddStringToObject(json, "signature", (char *)signature.data);
    if (sign) cJSON_AddStringToObject(json, "sign", sign);
    for (const fv_input *i = op->inputs; i && i->name; i++) cJSON_AddItemToArray(inputs, input_json(op, i));
    for (const fv_param *p = op->params; p && p->name && !p->own; p++) cJSON_AddItemToArray(params, param_json(p));
    cJSON_AddItemToObject(json, "inputs", inputs);
    cJSON_AddItemToObject(json, "parameters", params);
    cJSON_AddStringToObject(json, "result", result_kind(op));
    if (op->place_later) cJSON_AddBoolToObject(json, "place_later", true);
    if (op->columns) {
        cJSON *columns = cJSON_AddArrayToObject(json, "columns");
        for (const fv_column_doc *c = op->columns; c->name; c++) cJSON_AddItemToArray(columns, column_json(c));
    }
    cJSON_AddStringToObject(json, "numerics", numerics_names[numerics_of(op)]);
    cJSON_AddNumberToObject(json, "version", op->version);
    if (op->doc) cJSON_AddStringToObject(json, "doc", op->doc);
    if (op->expands) cJSON_AddStringToObject(json, "expands", op->expands);
    if (op->see) cJSON_AddItemToObject(json, "see", fv__words_json(op->see, ' '));
    if (op->example) cJSON_AddStringToObject(json, "example", op->example);
    if (op->citation) cJSON_AddStringToObject(json, "citation", op->citation);
    if (op->also) cJSON_AddStringToObject(json, "also", op->also);
    fv__bytes_release(&signature);
    return json;
}
