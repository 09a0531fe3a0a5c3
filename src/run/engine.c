/* Finding engines. */
#include "run/engine.h"
#include <assert.h>

extern const fv_engine *const fv__engines[]; /* made by the build */

static const fv_engine *added[8]; /* of the process, by the program that it runs */
static int              nadded;

void fv__engine_add(const fv_engine *engine) {
    assert(nadded < FV_COUNT(added) && !fv__engine_find(engine->name));
    added[nadded++] = engine;
}

static int nfound(void) {
    int n = 0;
    while (fv__engines[n]) n++;
    return n;
}

int fv__engine_count(void) { return nfound() + nadded; }

const fv_engine *fv__engine_at(int index) { return index < nfound() ? fv__engines[index] : added[index - nfound()]; }

const fv_engine *fv__engine_find(const char *name) {
    for (int i = 0; i < fv__engine_count(); i++)
        if (!strcmp(fv__engine_at(i)->name, name)) return fv__engine_at(i);
    return NULL;
}

fv_status fv__engine_named(const char *name, const fv_engine **engine, fv_error *error) {
    *engine = fv__engine_find(name);
    if (*engine) return FV_OK;
    fv_bytes names = { 0 };
    for (int i = 0; i < fv__engine_count(); i++) fv__bytes_printf(&names, " %s", fv__engine_at(i)->name);
    fv_fail(error, FV_ERROR_USAGE, "--engine %s: there is no such engine here; known:%s, and slurm, spark and dask in fovea run",
            name, (char *)names.data);
    fv__bytes_release(&names);
    return FV_ERROR_USAGE;
}

const char *fv__engine_default(void) {
    for (int i = 0; i < fv__engine_count(); i++)
        if (fv__engine_at(i)->launched && fv__engine_at(i)->launched()) return fv__engine_at(i)->name;
    return "threads";
}

fv_sharers fv__engine_sharers(const fv_engine *engine, int workers, int ranks, const fv_bindings *bindings) {
    return (fv_sharers){ .children = engine->children ? workers : 0,
                         .ranks = engine->ranks ? FV_MAX(ranks, 1) : 0,
                         .driver = fv__budget_driver(bindings) };
}
