/* Forgetting what finished items needed on the way. */
#include "run/retired_items.h"
#include <stdlib.h>

enum {
    MANY = 400, /* more than wait for their names at a time */
    SOME = 32,  /* added before it is worth looking which are settled */
};

typedef struct left { /* by one item */
    struct left *next;
    fv_bytes     keys;    /* fv_hash: to be forgotten */
    fv_bytes     results; /* fv_hash: must be committed before */
    fv_output  **outputs; /* must have got their names before */
    int          noutputs;
} left;

struct fv_retired_items {
    fv_store       *store;
    pthread_mutex_t mutex;
    left           *first;
    int             count;
};

fv_retired_items *fv__retired_items_new(fv_store *store) {
    fv_retired_items *l = fv__calloc(sizeof *l);
    l->store = store;
    pthread_mutex_init(&l->mutex, NULL);
    return l;
}

static void free_all(left *item) {
    while (item) {
        left *next = item->next;
        fv__bytes_release(&item->keys);
        fv__bytes_release(&item->results);
        for (int k = 0; k < item->noutputs; k++) fv__output_leave(item->outputs[k]);
        free(item->outputs);
        free(item);
        item = next;
    }
}

void fv__retired_items_free(fv_retired_items *l) {
    if (!l) return;
    free_all(l->first);
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

static bool settled(const fv_retired_items *l, const left *item) {
    for (int k = 0; k < item->noutputs; k++)
        if (item->outputs[k]->state == FV_OUTPUT_COMPLETE) return false;
    const fv_hash *results = (const fv_hash *)(const void *)item->results.data;
    for (size_t i = 0; i < item->results.size / sizeof *results; i++)
        if (!fv__store_committed(l->store, results[i])) return false;
    return true;
}

static void forget(fv_retired_items *l) {
    left *gone = NULL;
    pthread_mutex_lock(&l->mutex);
    for (left **i = &l->first; *i;) {
        left *item = *i;
        if (!settled(l, item)) {
            i = &item->next;
            continue;
        }
        *i = item->next;
        item->next = gone;
        gone = item;
        l->count--;
    }
    pthread_mutex_unlock(&l->mutex);
    for (const left *item = gone; item; item = item->next) {
        const fv_hash *keys = (const fv_hash *)(const void *)item->keys.data;
        for (size_t i = 0; i < item->keys.size / sizeof *keys; i++) fv__store_drop(l->store, keys[i], true);
    }
    free_all(gone);
}

void fv__retired_items_add(fv_retired_items *l, const fv_instance *instance, const bool *needed) {
    left *item = fv__calloc(sizeof *item);
    for (int k = 0; k < instance->plan->nstages; k++)
        if (needed[k]) fv__stage_leaves(instance, &instance->plan->stages[k], &item->keys, &item->results);
    item->outputs = fv__calloc((size_t)(instance->plan->nfiles + 1) * sizeof(fv_output *));
    for (int k = 0; k < instance->plan->nfiles; k++)
        if (fv__output_made(instance->outputs[k])) item->outputs[item->noutputs++] = fv__output_use(instance->outputs[k]);
    pthread_mutex_lock(&l->mutex);
    item->next = l->first;
    l->first = item;
    bool many = ++l->count > MANY, some = l->count % SOME == 0;
    pthread_mutex_unlock(&l->mutex);
    if (many)
        fv__retired_items_settle(l);
    else if (some)
        forget(l);
}

void fv__retired_items_settle(fv_retired_items *l) {
    fv__store_flush(l->store, NULL); /* what could not be written is tried again at the end of the run */
    fv__store_refresh(l->store, NULL);
    forget(l);
    pthread_mutex_lock(&l->mutex);
    left *rest = l->first; /* workers elsewhere have not committed it yet: it stays in the store */
    l->first = NULL;
    l->count = 0;
    pthread_mutex_unlock(&l->mutex);
    free_all(rest);
}
