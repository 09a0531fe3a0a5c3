/* Every operator and format of the build can be described, as text and as JSON, and the two agree with its descriptor. */
#include "op/format.h"
#include "op/op.h"
#include "op/params.h"
#include "support/test.h"
#include <cjson/cJSON.h>
#include <fovea/describe.h>

static const char *text_of(const cJSON *json, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(json, key));
    return text ? text : "";
}

static void check_widths(const char *name, const char *text) {
    const char *example = strstr(text, "\nexample\n"); /* stays on one line, to be copied */
    for (const char *p = text; *p && p != example;) {
        size_t n = strcspn(p, "\n");
        CHECK_MESSAGE(n <= 100, "%s: a line of %zu bytes", name, n);
        p += n + (p[n] == '\n');
    }
}

TEST(every_operator_has_what_a_reader_needs) {
    for (int i = 0; i < fv__op_count(); i++) {
        const fv_op *op = fv__op_at(i);
        char        *text;
        fv_error     error = { 0 };
        CHECK(fv_describe_name(op->name, FV_FORM_TEXT, &text, &error) == FV_OK);
        CHECK_MESSAGE(op->brief && op->version > 0, "%s has no brief or no version", op->name);
        CHECK_MESSAGE(!strncmp(text, op->name, strlen(op->name)), "%s: %s", op->name, text);
        for (const fv_input *in = op->inputs; in && in->name; in++)
            CHECK_MESSAGE(in->doc && strstr(text, in->name), "%s: input %s is not explained", op->name, in->name);
        for (const fv_param *p = op->params; p && p->name; p++)
            CHECK_MESSAGE(p->doc && (p->own || strstr(text, p->name)), "%s: parameter %s is not explained", op->name, p->name);
        check_widths(op->name, text);
        free(text);
    }
}

TEST(the_json_of_an_operator_agrees_with_its_descriptor) {
    char  *text = fv_describe_all(FV_FORM_JSON);
    cJSON *all = cJSON_Parse(text);
    CHECK(all != NULL);
    cJSON *ops = cJSON_GetObjectItem(all, "operators");
    CHECK_INT(cJSON_GetArraySize(ops), fv__op_count());
    CHECK_INT(cJSON_GetArraySize(cJSON_GetObjectItem(all, "formats")), fv__format_count());
    CHECK_INT(cJSON_GetArraySize(cJSON_GetObjectItem(all, "tables")), fv__table_format_count());
    CHECK_TEXT(text_of(all, "version"), fv_version());
    for (int i = 0; i < fv__op_count(); i++) {
        const fv_op *op = fv__op_at(i);
        const cJSON *json = cJSON_GetArrayItem(ops, i), *params = cJSON_GetObjectItem(json, "parameters");
        int          count = 0;
        CHECK_TEXT(text_of(json, "name"), op->name);
        CHECK_INT(cJSON_GetArraySize(cJSON_GetObjectItem(json, "inputs")), fv__inputs_count(op));
        for (const fv_param *p = op->params; p && p->name; p++) {
            if (p->own) continue; /* not for users */
            const cJSON *param = cJSON_GetArrayItem(params, count++);
            CHECK_TEXT(text_of(param, "name"), p->name);
            CHECK_INT(cJSON_IsTrue(cJSON_GetObjectItem(param, "required")), p->def == NULL);
        }
        CHECK_INT(cJSON_GetArraySize(params), count);
    }
    cJSON_Delete(all);
    free(text);
}

TEST(every_format_can_be_asked_for_by_name) {
    for (int i = 0; i < fv__format_count(); i++) {
        char    *text;
        fv_error error = { 0 };
        CHECK(fv_describe_name(fv__format_at(i)->name, FV_FORM_TEXT, &text, &error) == FV_OK);
        CHECK(strstr(text, fv__format_at(i)->brief) || strlen(fv__format_at(i)->brief) > 80);
        free(text);
    }
}

TEST(unknown_names_and_files_fail_with_a_sentence) {
    char    *text;
    fv_error error = { 0 };
    CHECK(fv_describe_name("zerso", FV_FORM_TEXT, &text, &error) == FV_ERROR_USAGE);
    CHECK(!text);
    CHECK_TEXT(error.message, "zerso: no such operator, family or format; did you mean zeros?");
    CHECK(fv_describe_file("/nosuch/file.png", NULL, FV_FORM_TEXT, &text, &error) != FV_OK);
    CHECK(!text && strstr(error.message, "/nosuch/file.png"));
    CHECK(fv_describe_file("/nosuch/file.png", NULL, FV_FORM_JSON, &text, NULL) != FV_OK);
    cJSON *json = cJSON_Parse(text);
    CHECK_TEXT(text_of(json, "file"), "/nosuch/file.png");
    CHECK(*text_of(json, "error"));
    cJSON_Delete(json);
    free(text);
}

TEST_MAIN
