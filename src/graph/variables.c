/* Variables by name. */
#include "graph/variables.h"

typedef struct wanted {
    const fv_variables *variables;
    const char         *name;
} wanted;

static bool is_wanted(const void *context, uint32_t number) {
    const wanted *w = context;
    return !strcmp(w->variables->all[number].name, w->name);
}

static uint64_t hash_of(const char *name) { return fv__hash_bytes(name, strlen(name)).low; }

static int64_t number_of(const fv_variables *v, const char *name) {
    return fv__hash_table_number(&v->table, hash_of(name), is_wanted, &(wanted){ v, name });
}

const value *fv__variables_find(const fv_variables *v, const char *name) {
    int64_t number = number_of(v, name);
    return number < 0 ? NULL : &v->all[number].value;
}

void fv__variables_set(fv_variables *v, const char *name, value of_name) {
    int64_t number = number_of(v, name);
    if (number < 0) {
        if (v->count == v->capacity) {
            v->capacity = FV_MAX(2 * v->capacity, 8);
            v->all = fv__realloc(v->all, (size_t)v->capacity * sizeof *v->all);
        }
        fv__hash_table_reserve(&v->table, 16, v->count + 1);
        fv__hash_table_add(&v->table, true, (uint32_t)hash_of(name), (uint32_t)v->count);
        number = v->count++;
    }
    v->all[number] = (variable){ name, of_name };
}

void fv__variables_clear(fv_variables *v) {
    v->count = 0;
    if (v->table.slot) memset(v->table.slot, 0, (size_t)(v->table.mask + 1) * 2 * sizeof *v->table.slot);
}

void fv__variables_release(fv_variables *v) {
    free(v->all);
    free(v->table.slot);
    *v = (fv_variables){ 0 };
}
