/* Reading the record of a run: the logs of all its processes together. */
#include "base/file.h"
#include "record/record_log.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static fv_status visit_fact(fv__visitor *v, const fv__fact_slot *slot, fv_error *error) {
    if (slot->size > FV__FACT_TEXT) return FV_OK;
    if (slot->part == 0) {
        v->number = slot->number;
        v->part = 0;
        fv__bytes_clear(&v->text);
    }
    if (slot->number != v->number || slot->part != v->part) return FV_OK; /* one before it is lost */
    v->part++;
    fv__bytes_append(&v->text, slot->text, slot->size);
    if (v->part < slot->parts || slot->name > v->text.size) return FV_OK;
    char     *name = fv__sprintf("%.*s", (int)slot->name, (char *)v->text.data);
    char     *value = fv__sprintf("%.*s", (int)(v->text.size - slot->name), (char *)v->text.data + slot->name);
    fv_status status = v->fact(v, name, value, error);
    free(name);
    free(value);
    return status;
}

/* The small ones. */
static void visit_sums(fv__visitor *v, const char *worker, const void *slot, uint32_t kind) {
    const fv__memory_slot *memory = slot;
    const fv_spent        *spent = &((const fv__spent_slot *)slot)->spent;
    if (kind == FV__RESIDUAL && v->residuals)
        fv__bytes_append(v->residuals, &((const fv__residual_slot *)slot)->residual, sizeof(fv_residual));
    if (kind == FV__SPENT && v->spent) fv__spent_add(v->spent, &v->nspent, spent->op, spent->seconds);
    if (kind == FV__LEASE) {
        const fv_lease_facts *lent = &((const fv__lease_slot *)slot)->facts;
        v->leases.leases += lent->leases;
        v->leases.leased += lent->leased;
        v->leases.queued += lent->queued;
    }
    if (kind == FV__MEMORY && v->memory) v->memory(v, worker, memory->time, memory->resident);
    if (kind == FV__STAGE && v->stage) v->stage(v, &((const fv__stage_slot *)slot)->facts);
    if (kind == FV__NODE && v->node) v->node(v, &((const fv__node_slot *)slot)->spent);
}

static fv_status visit_piece(fv__visitor *v, const char *worker, const fv_bytes *piece, size_t *whole, fv_error *error) {
    fv_status status = FV_OK;
    *whole = 0;
    for (size_t i = 0; status == FV_OK && i < piece->size; i += FV_SLOT) {
        const fv__task_slot *slot = (const fv__task_slot *)(const void *)(piece->data + i);
        if (!fv__slot_valid(slot, FV__RECORD_MAGIC)) continue;
        *whole = i + FV_SLOT;
        if (slot->kind == FV__TASK && v->task)
            status = v->task(v, worker, slot, error);
        else if (slot->kind == FV__FACT && v->fact)
            status = visit_fact(v, (const fv__fact_slot *)(const void *)slot, error);
        else
            visit_sums(v, worker, slot, slot->kind);
    }
    return status;
}

fv_status fv__record_visit_log(const char *path, const char *worker, int64_t *at, fv__visitor *v, fv_error *error) {
    int fd;
    FV_TRY(fv__file_open_read(path, &fd, error));
    fv_bytes  piece = { 0 };
    fv_status status = FV_OK;
    if (!*at) v->part = UINT32_MAX;
    for (int64_t next = *at; status == FV_OK;) {
        int64_t begin = next;
        size_t  whole;
        status = fv__slots_read(fd, path, &next, INT64_MAX, &piece, error);
        if (piece.size == 0) break;
        if (status == FV_OK) status = visit_piece(v, worker, &piece, &whole, error);
        if (status == FV_OK && whole) *at = begin + (int64_t)whole;
    }
    fv__bytes_release(&piece);
    close(fd);
    return status;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

fv_status fv__record_logs(const char *folder, fv_arena *arena, char ***workers, size_t *count, fv_error *error) {
    DIR *dir = opendir(folder);
    *workers = NULL;
    *count = 0;
    if (!dir) return fv_fail(error, FV_ERROR_INPUT, "cannot list %s: %s", folder, strerror(errno));
    fv_bytes names = { 0 };
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (length < 9 || strncmp(entry->d_name, "task-", 5) || strcmp(entry->d_name + length - 4, ".log")) continue;
        char *worker = fv__arena_strndup(arena, entry->d_name + 5, length - 9);
        fv__bytes_append(&names, &worker, sizeof worker);
    }
    closedir(dir);
    *workers = (char **)(void *)names.data;
    *count = names.size / sizeof **workers;
    if (*count) qsort(*workers, *count, sizeof **workers, by_name);
    return FV_OK;
}

fv_status fv__record_visit(const char *folder, fv__visitor *v, fv_error *error) {
    fv_arena  arena = { 0 };
    char    **workers;
    size_t    count;
    fv_status status = fv__record_logs(folder, &arena, &workers, &count, error);
    for (size_t i = 0; status == FV_OK && i < count; i++) {
        int64_t at = 0;
        status = fv__record_visit_log(fv__arena_printf(&arena, "%s/task-%s.log", folder, workers[i]), workers[i], &at, v, error);
    }
    free(workers);
    fv__bytes_release(&v->text);
    fv__arena_release(&arena);
    return status;
}

static int by_iteration(const void *a, const void *b) {
    const fv_residual *x = a, *y = b;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    int call = memcmp(&x->call, &y->call, sizeof x->call);
    return call ? call : (x->iteration > y->iteration) - (x->iteration < y->iteration);
}

int64_t fv__residuals_once(fv_residual *all, int64_t count) {
    int64_t kept = 0;
    if (count) qsort(all, (size_t)count, sizeof *all, by_iteration);
    for (int64_t i = 0; i < count; i++)
        if (!kept || by_iteration(&all[kept - 1], &all[i])) all[kept++] = all[i];
    return kept;
}

fv_status fv__record_residuals(const char *folder, fv_residual **residuals, int64_t *count, fv_error *error) {
    fv_bytes    all = { 0 };
    fv__visitor v = { .residuals = &all };
    fv_status   status = fv__record_visit(folder, &v, error);
    *residuals = (fv_residual *)(void *)all.data;
    *count = fv__residuals_once(*residuals, (int64_t)(all.size / sizeof **residuals));
    return status;
}

fv_status fv__record_spent_all(const char *folder, fv_spent list[FV_MOST_SPENT], int *count, fv_error *error) {
    fv__visitor v = { .spent = list };
    fv_status   status = fv__record_visit(folder, &v, error);
    *count = v.nspent;
    return status;
}

/* ---------------------------------------------------------------- tasks */

typedef struct reader {
    void (*visit)(void *context, const char *process, const fv_task_facts *facts);
    void *context;
} reader;

static fv_status read_task(fv__visitor *v, const char *worker, const fv__task_slot *t, fv_error *error) {
    const reader *r = v->context;
    fv_task_facts facts = { t->key,  t->item,    t->stage, t->task,       t->worker,        t->start,  t->wait,
                            t->read, t->compute, t->write, t->bytes_read, t->bytes_written, t->memory, t->status };
    (void)error;
    r->visit(r->context, worker, &facts);
    return FV_OK;
}

fv_status fv__record_each(const char *folder, void (*visit)(void *context, const char *process, const fv_task_facts *facts),
                          void *context, fv_error *error) {
    reader      r = { visit, context };
    fv__visitor v = { .task = read_task, .context = &r };
    return fv__record_visit(folder, &v, error);
}

/* ---------------------------------------------------------------- counting */

typedef struct counts {
    int64_t  tasks;
    fv_bytes keys; /* of those that went well */
} counts;

static fv_status count_task(fv__visitor *v, const char *worker, const fv__task_slot *t, fv_error *error) {
    counts *c = v->context;
    (void)worker;
    (void)error;
    c->tasks++;
    if (t->status == FV_OK) fv__bytes_append(&c->keys, &t->key, sizeof t->key);
    return FV_OK;
}

static int by_key(const void *a, const void *b) {
    const fv_hash *x = a, *y = b;
    if (x->high != y->high) return x->high < y->high ? -1 : 1;
    return (x->low > y->low) - (x->low < y->low);
}

fv_status fv__record_count(const char *folder, int64_t *tasks, int64_t *repeated, fv_error *error) {
    counts      c = { 0 };
    fv__visitor v = { .task = count_task, .context = &c };
    fv_status   status = fv__record_visit(folder, &v, error);
    fv_hash    *keys = (fv_hash *)(void *)c.keys.data;
    size_t      count = c.keys.size / sizeof *keys;
    if (count) qsort(keys, count, sizeof *keys, by_key);
    *tasks = c.tasks;
    *repeated = 0;
    for (size_t i = 1; i < count; i++) /* once for each key, at its second line */
        if (fv__hash_equal(keys[i], keys[i - 1]) && (i < 2 || !fv__hash_equal(keys[i], keys[i - 2]))) ++*repeated;
    fv__bytes_release(&c.keys);
    return status;
}
