/* Finding engines. */
#include "run/engine.h"

extern const fv_engine *const fv__engines[]; /* made by the build */

int fv_engine_count(void) {
    int n = 0;
    while (fv__engines[n]) n++;
    return n;
}

const fv_engine *fv_engine_at(int index) { return fv__engines[index]; }

const fv_engine *fv_engine_find(const char *name) {
    for (int i = 0; fv__engines[i]; i++)
        if (!strcmp(fv__engines[i]->name, name)) return fv__engines[i];
    return NULL;
}

const char *fv_engine_default(void) {
    for (int i = 0; fv__engines[i]; i++)
        if (fv__engines[i]->launched && fv__engines[i]->launched()) return fv__engines[i]->name;
    return "threads";
}
