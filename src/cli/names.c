/* The operators, from what the library tells of itself. */
#include "names.h"
#include <cjson/cJSON.h>
#include <fovea/describe.h>
#include <stdio.h>
#include <stdlib.h>

void fv_names_each(fv_name_visit *visit, void *context) {
    char        *text = fv_describe_all(FV_FORM_JSON);
    cJSON       *all = cJSON_Parse(text);
    const cJSON *op;
    cJSON_ArrayForEach(op, cJSON_GetObjectItem(all, "operators")) visit(op, context);
    cJSON_Delete(all);
    free(text);
}

typedef struct {
    const char *between;
    int         count;
} printing;

static void print_one(const cJSON *op, void *context) {
    printing *p = context;
    printf("%s%s", p->count++ ? p->between : "", cJSON_GetStringValue(cJSON_GetObjectItem(op, "name")));
}

void fv_names_print(const char *between) {
    printing p = { between, 0 };
    fv_names_each(print_one, &p);
}
