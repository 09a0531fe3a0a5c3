/* Inputs of a run that runs have written. */
#include "run/own_inputs.h"
#include "base/file.h"
#include "base/file_pattern.h"
#include "base/remote.h"
#include "run/ledger.h"
#include "run/outputs.h"
#include <stdlib.h>
#include <sys/stat.h>

/* ---------------------------------------------------------------- results of earlier runs */

struct fv_made {
    const char *const *folders;
    int                nfolders;
    fv_ledger        **ledgers; /* NULL: nobody has asked yet, as few texts do */
    int                count;
};

fv_made *fv__made_open(const char *const *folders, int nfolders) {
    fv_made *made = fv__calloc(sizeof *made);
    *made = (fv_made){ .folders = folders, .nfolders = nfolders };
    return made;
}

static void open_ledgers(fv_made *made) {
    made->ledgers = fv__calloc((size_t)(made->nfolders + 1) * sizeof(fv_ledger *));
    for (int i = 0; i < made->nfolders; i++) {
        char *path = fv__sprintf("%s/outputs.log", made->folders[i]);
        if (fv__file_exists(path) && fv__ledger_open(path, &made->ledgers[made->count], NULL) == FV_OK) made->count++;
        free(path);
    }
}

bool fv__made_find(void *context, const char *path, const char *pattern) {
    fv_made *made = context;
    fv_hash  file, key;
    bool     found = false;
    if (!made->ledgers) open_ledgers(made);
    if (!made->count || !fv__outputs_recognise(path, pattern, &file)) return false;
    for (int i = 0; i < made->count && !found; i++) found = fv__ledger_find(made->ledgers[i], file, &key);
    return found;
}

void fv__made_close(fv_made *made) {
    for (int i = 0; i < made->count; i++) fv__ledger_close(made->ledgers[i]);
    free(made->ledgers);
    free(made);
}

/* ---------------------------------------------------------------- outputs that are inputs */

typedef struct place { /* of an output that is there already */
    dev_t device;
    ino_t inode;
} place;

typedef struct checking {
    place    *places; /* sorted */
    int64_t   count;
    fv_error *error;
} checking;

static int by_place(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

static bool among(const checking *c, const struct stat *s) {
    place p = { s->st_dev, s->st_ino };
    return bsearch(&p, c->places, (size_t)c->count, sizeof *c->places, by_place) != NULL;
}

static fv_status check_input(const checking *c, const char *path) {
    struct stat s;
    if (!c->count || fv__is_remote(path)) return FV_OK;
    bool own = (!lstat(path, &s) && among(c, &s)) || (!stat(path, &s) && among(c, &s));
    if (!own) return FV_OK;
    return fv_fail(c->error, FV_ERROR_USAGE,
                   "the run would write over its own input %s; let the results go to another folder or have other names, or let "
                   "the pattern not match it",
                   path);
}

static fv_status check_slices(const char *pattern, char *const *outputs, int64_t noutputs, fv_error *error) {
    for (int64_t i = 0; i < noutputs; i++)
        if (fv__pattern_fits(pattern, outputs[i]))
            return fv_fail(error, FV_ERROR_USAGE,
                           "the result %s would match \"%s\" and be one of the slices of the next run; let it go to another "
                           "folder or have another name",
                           outputs[i], pattern);
    return FV_OK;
}

fv_status fv__check_own_inputs(const fv_context *context, const fv_graph *graph, char *const *outputs, int64_t noutputs,
                               fv_error *error) {
    const fv_bindings *bindings = context->bindings;
    checking           c = { .places = fv__alloc((size_t)(noutputs + 1) * sizeof *c.places), .error = error };
    fv_status          status = FV_OK;
    for (int64_t i = 0; i < noutputs; i++) {
        struct stat s;
        if (!fv__is_remote(outputs[i]) && !lstat(outputs[i], &s)) c.places[c.count++] = (place){ s.st_dev, s.st_ino };
    }
    qsort(c.places, (size_t)c.count, sizeof *c.places, by_place);
    for (int l = 0; l < bindings->nlists; l++)
        for (int64_t i = 0; i < bindings->lists[l].count && status == FV_OK; i++)
            status = fv__pattern_is(bindings->lists[l].paths[i])
                         ? check_slices(bindings->lists[l].paths[i], outputs, noutputs, error)
                         : check_input(&c, bindings->lists[l].paths[i]);
    for (int n = 0; n < graph->nnodes && status == FV_OK; n++) {
        const fv_op    *op = graph->nodes[n]->op;
        const fv_param *param = op && op->identity ? fv__params_file(op) : NULL;
        const char     *file = param ? *(char *const *)((const char *)graph->nodes[n]->params + param->offset) : NULL;
        if (!file) continue;
        status = fv__pattern_is(file) ? check_slices(file, outputs, noutputs, error) : check_input(&c, file);
    }
    free(c.places);
    return status;
}
