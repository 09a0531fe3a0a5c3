/* The record of a run: one log of slots per process, and the SQLite file made from all of them.
 *
 * A task is one slot, and so are a residual and what an operator has spent since the last one. A fact is cut into as many as its
 * text needs; they follow each other in the log, and one that lacks a part is left out.
 */
#include "record/record.h"
#include "base/file.h"
#include "base/slots.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAGIC 0x31545646u /* "FVT1" */
enum { TASK = 1, FACT = 2, RESIDUAL = 3, SPENT = 4, TEXT = 88, BUFFER = 1 << 16 };

typedef struct task_slot {
    uint32_t magic, kind;
    fv_hash  key;
    int64_t  item, stage, task;
    double   start, wait, read, compute, write;
    int64_t  bytes_read, bytes_written, memory;
    int32_t  worker, status;
    uint64_t check;
} task_slot;
typedef struct fact_slot {
    uint32_t magic, kind;
    uint64_t number; /* of the fact in its log; all its slots have it */
    uint32_t part, parts;
    uint32_t name, size; /* length of the name; bytes of text in this slot */
    char     text[TEXT]; /* name and value, one after the other */
    uint64_t check;
} fact_slot;
typedef struct residual_slot {
    uint32_t    magic, kind;
    fv_residual residual;
    char        unused[24];
    uint64_t    check;
} residual_slot;
typedef struct spent_slot {
    uint32_t magic, kind;
    fv_spent spent;
    char     unused[64];
    uint64_t check;
} spent_slot;
_Static_assert(sizeof(spent_slot) == FV_SLOT, "it is a slot");
_Static_assert(sizeof(task_slot) == FV_SLOT && sizeof(fact_slot) == FV_SLOT && sizeof(residual_slot) == FV_SLOT,
               "all are slots");

/* ---------------------------------------------------------------- writing */

struct fv_record {
    char           *path;
    int             fd;
    pthread_mutex_t mutex;
    fv_bytes        buffer;
    int64_t         end; /* where the buffer goes */
    uint64_t        facts;
    double          flushed; /* when */
    fv_error        failure; /* the first; code FV_OK: none */
    fv_spent        spent[FV_MOST_SPENT]; /* since it was last written */
    int             nspent;
};

fv_status fv_record_open(const char *folder, const char *worker, fv_record **result, fv_error *error) {
    *result = NULL;
    FV_TRY(fv_path_make_folders(folder, error));
    char *path = fv_sprintf("%s/task-%s.log", folder, worker);
    int   fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    if (size < 0) {
        fv_status status = fv_fail(error, FV_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        free(path);
        return status;
    }
    fv_record *record = fv_calloc(sizeof *record);
    record->path = path;
    record->fd = fd;
    record->end = (size + FV_SLOT - 1) / FV_SLOT * FV_SLOT; /* after what an earlier process of that name has left */
    record->facts = (uint64_t)(record->end / FV_SLOT);
    record->flushed = fv_now();
    pthread_mutex_init(&record->mutex, NULL);
    *result = record;
    return FV_OK;
}

void fv_spent_add(fv_spent *list, int *count, const char *op, double seconds) {
    int i = 0;
    while (i < *count && strncmp(list[i].op, op, sizeof list[i].op - 1)) i++;
    if (i == FV_MOST_SPENT) return;
    if (i == *count) {
        list[(*count)++] = (fv_spent){ .seconds = 0 };
        snprintf(list[i].op, sizeof list[i].op, "%s", op);
    }
    list[i].seconds += seconds;
}

static void append_spent(fv_record *record) {
    for (int i = 0; i < record->nspent; i++) {
        spent_slot slot = { .magic = MAGIC, .kind = SPENT, .spent = record->spent[i] };
        fv_slot_seal(&slot);
        fv_bytes_append(&record->buffer, &slot, FV_SLOT);
    }
    record->nspent = 0;
}

/* Mutex held; released while writing, so that others go on meanwhile. */
static void write_buffer(fv_record *record) {
    append_spent(record);
    fv_bytes out = record->buffer;
    int64_t  offset = record->end;
    record->buffer = (fv_bytes){ 0 };
    record->end += (int64_t)out.size;
    record->flushed = fv_now();
    pthread_mutex_unlock(&record->mutex);
    fv_error  error;
    fv_status status = out.size ? fv_file_write_at(record->fd, out.data, out.size, offset, record->path, &error) : FV_OK;
    fv_bytes_clear(&out);
    pthread_mutex_lock(&record->mutex);
    if (status != FV_OK && record->failure.code == FV_OK) record->failure = error;
    if (record->buffer.capacity == 0) record->buffer = out;
    else fv_bytes_release(&out);
}

static void append(fv_record *record, const void *slot) {
    fv_bytes_append(&record->buffer, slot, FV_SLOT);
    if (record->buffer.size >= BUFFER) write_buffer(record);
}

static void flush_old(fv_record *record) {
    if (fv_now() - record->flushed > 1) write_buffer(record);
}

void fv_record_task(fv_record *record, const fv_task_facts *f) {
    task_slot slot = {
        MAGIC, TASK, f->key, f->item, f->stage, f->task, f->start, f->wait, f->read, f->compute, f->write,
        f->bytes_read, f->bytes_written, f->memory, f->worker, (int32_t)f->status, 0,
    };
    fv_slot_seal(&slot);
    pthread_mutex_lock(&record->mutex);
    append(record, &slot);
    flush_old(record);
    pthread_mutex_unlock(&record->mutex);
}

void fv_record_fact(fv_record *record, const char *name, const char *value) {
    char  *text = fv_sprintf("%s%s", name, value);
    size_t length = strlen(text);
    pthread_mutex_lock(&record->mutex);
    fact_slot slot = { .magic = MAGIC, .kind = FACT, .number = record->facts++, .name = (uint32_t)strlen(name) };
    slot.parts = (uint32_t)((length + TEXT - 1) / TEXT);
    for (size_t at = 0; at < length; at += TEXT, slot.part++) {
        slot.size = (uint32_t)FV_MIN(length - at, (size_t)TEXT);
        memset(slot.text, 0, TEXT);
        memcpy(slot.text, text + at, slot.size);
        fv_slot_seal(&slot);
        fv_bytes_append(&record->buffer, &slot, FV_SLOT); /* all together, whatever other threads append */
    }
    if (record->buffer.size >= BUFFER) write_buffer(record);
    flush_old(record);
    pthread_mutex_unlock(&record->mutex);
    free(text);
}

void fv_record_spent(fv_record *record, const char *op, double seconds) {
    pthread_mutex_lock(&record->mutex);
    fv_spent_add(record->spent, &record->nspent, op, seconds);
    pthread_mutex_unlock(&record->mutex);
}

void fv_record_residual(fv_record *record, const fv_residual *residual) {
    residual_slot slot = { .magic = MAGIC, .kind = RESIDUAL, .residual = *residual };
    fv_slot_seal(&slot);
    pthread_mutex_lock(&record->mutex);
    append(record, &slot);
    pthread_mutex_unlock(&record->mutex);
}

fv_status fv_record_flush(fv_record *record, fv_error *error) {
    pthread_mutex_lock(&record->mutex);
    write_buffer(record);
    fv_status status = record->failure.code;
    if (status != FV_OK && error) *error = record->failure;
    record->failure.code = FV_OK;
    pthread_mutex_unlock(&record->mutex);
    return status;
}

void fv_record_close(fv_record *record) {
    if (!record) return;
    fv_record_flush(record, NULL);
    close(record->fd);
    pthread_mutex_destroy(&record->mutex);
    fv_bytes_release(&record->buffer);
    free(record->path);
    free(record);
}

/* ---------------------------------------------------------------- reading */

typedef struct visitor {
    fv_status (*task)(struct visitor *visitor, const char *worker, const task_slot *task, fv_error *error);
    fv_status (*fact)(struct visitor *visitor, const char *name, const char *value, fv_error *error);
    fv_bytes *residuals; /* fv_residual, as they come; NULL: not wanted */
    fv_spent *spent;     /* FV_MOST_SPENT; NULL: not wanted */
    int       nspent;
    uint64_t number; /* of the fact that is being put together */
    uint32_t part;   /* that comes next */
    fv_bytes text;
    void    *context;
} visitor;

static fv_status visit_fact(visitor *v, const fact_slot *slot, fv_error *error) {
    if (slot->size > TEXT) return FV_OK;
    if (slot->part == 0) {
        v->number = slot->number;
        v->part = 0;
        fv_bytes_clear(&v->text);
    }
    if (slot->number != v->number || slot->part != v->part) return FV_OK; /* one before it is lost */
    v->part++;
    fv_bytes_append(&v->text, slot->text, slot->size);
    if (v->part < slot->parts || slot->name > v->text.size) return FV_OK;
    char     *name = fv_sprintf("%.*s", (int)slot->name, (char *)v->text.data);
    char     *value = fv_sprintf("%.*s", (int)(v->text.size - slot->name), (char *)v->text.data + slot->name);
    fv_status status = v->fact(v, name, value, error);
    free(name);
    free(value);
    return status;
}

static fv_status visit_log(const char *path, const char *worker, visitor *v, fv_error *error) {
    int fd;
    FV_TRY(fv_file_open_read(path, &fd, error));
    fv_bytes  piece = { 0 };
    fv_status status = FV_OK;
    v->part = UINT32_MAX;
    for (int64_t at = 0; status == FV_OK;) {
        status = fv_slots_read(fd, path, &at, INT64_MAX, &piece, error);
        if (piece.size == 0) break;
        for (size_t i = 0; status == FV_OK && i < piece.size; i += FV_SLOT) {
            const task_slot *slot = (const task_slot *)(const void *)(piece.data + i);
            if (!fv_slot_valid(slot, MAGIC)) continue;
            if (slot->kind == TASK && v->task) status = v->task(v, worker, slot, error);
            if (slot->kind == FACT && v->fact) status = visit_fact(v, (const fact_slot *)(const void *)slot, error);
            if (slot->kind == RESIDUAL && v->residuals)
                fv_bytes_append(v->residuals, &((const residual_slot *)(const void *)slot)->residual, sizeof(fv_residual));
            const fv_spent *spent = &((const spent_slot *)(const void *)slot)->spent;
            if (slot->kind == SPENT && v->spent) fv_spent_add(v->spent, &v->nspent, spent->op, spent->seconds);
        }
    }
    fv_bytes_release(&piece);
    close(fd);
    return status;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* All logs of a folder, in the order of their names. */
static fv_status visit_all(const char *folder, visitor *v, fv_error *error) {
    DIR *dir = opendir(folder);
    if (!dir) return fv_fail(error, FV_ERROR_INPUT, "cannot list %s: %s", folder, strerror(errno));
    fv_arena  arena = { 0 };
    fv_bytes  names = { 0 };
    fv_status status = FV_OK;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (length < 9 || strncmp(entry->d_name, "task-", 5) || strcmp(entry->d_name + length - 4, ".log")) continue;
        char *worker = fv_arena_strndup(&arena, entry->d_name + 5, length - 9);
        fv_bytes_append(&names, &worker, sizeof worker);
    }
    closedir(dir);
    char **workers = (char **)(void *)names.data;
    size_t count = names.size / sizeof *workers;
    if (count) qsort(workers, count, sizeof *workers, by_name);
    for (size_t i = 0; status == FV_OK && i < count; i++)
        status = visit_log(fv_arena_printf(&arena, "%s/task-%s.log", folder, workers[i]), workers[i], v, error);
    fv_bytes_release(&names);
    fv_bytes_release(&v->text);
    fv_arena_release(&arena);
    return status;
}

static int by_iteration(const void *a, const void *b) {
    const fv_residual *x = a, *y = b;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    int call = memcmp(&x->call, &y->call, sizeof x->call);
    return call ? call : (x->iteration > y->iteration) - (x->iteration < y->iteration);
}

/* Those who go on after a kill say again what they find done. */
static int64_t once_each(fv_residual *all, int64_t count) {
    int64_t kept = 0;
    if (count) qsort(all, (size_t)count, sizeof *all, by_iteration);
    for (int64_t i = 0; i < count; i++)
        if (!kept || by_iteration(&all[kept - 1], &all[i])) all[kept++] = all[i];
    return kept;
}

fv_status fv_record_residuals(const char *folder, fv_residual **residuals, int64_t *count, fv_error *error) {
    fv_bytes  all = { 0 };
    visitor   v = { .residuals = &all };
    fv_status status = visit_all(folder, &v, error);
    *residuals = (fv_residual *)(void *)all.data;
    *count = once_each(*residuals, (int64_t)(all.size / sizeof **residuals));
    return status;
}

fv_status fv_record_spent_all(const char *folder, fv_spent list[FV_MOST_SPENT], int *count, fv_error *error) {
    visitor   v = { .spent = list };
    fv_status status = visit_all(folder, &v, error);
    *count = v.nspent;
    return status;
}

/* ---------------------------------------------------------------- the database */

typedef struct database {
    sqlite3      *sql;
    sqlite3_stmt *task, *fact, *residual;
    const char   *path;
} database;

static fv_status refused(const database *d, fv_error *error) {
    int       code = sqlite3_errcode(d->sql);
    fv_status status = code == SQLITE_FULL ? FV_ERROR_FULL : code == SQLITE_NOMEM ? FV_ERROR_MEMORY : FV_ERROR_IO;
    return fv_fail(error, status, "cannot write %s: %s", d->path, sqlite3_errmsg(d->sql));
}

static fv_status insert_task(visitor *v, const char *worker, const task_slot *t, fv_error *error) {
    database     *d = v->context;
    sqlite3_stmt *s = d->task;
    char          key[33];
    fv_hash_format(t->key, key);
    sqlite3_bind_text(s, 1, key, 32, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, t->item);
    sqlite3_bind_int64(s, 3, t->stage);
    sqlite3_bind_int64(s, 4, t->task);
    sqlite3_bind_text(s, 5, worker, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 6, t->worker);
    sqlite3_bind_double(s, 7, t->start);
    sqlite3_bind_double(s, 8, t->wait);
    sqlite3_bind_double(s, 9, t->read);
    sqlite3_bind_double(s, 10, t->compute);
    sqlite3_bind_double(s, 11, t->write);
    sqlite3_bind_int64(s, 12, t->bytes_read);
    sqlite3_bind_int64(s, 13, t->bytes_written);
    sqlite3_bind_int64(s, 14, t->memory);
    sqlite3_bind_text(s, 15, fv_status_name((fv_status)t->status), -1, SQLITE_STATIC);
    int result = sqlite3_step(s);
    sqlite3_reset(s);
    return result == SQLITE_DONE ? FV_OK : refused(d, error);
}

static fv_status insert_fact(visitor *v, const char *name, const char *value, fv_error *error) {
    database *d = v->context;
    sqlite3_bind_text(d->fact, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_text(d->fact, 2, value, -1, SQLITE_STATIC);
    int result = sqlite3_step(d->fact);
    sqlite3_reset(d->fact);
    return result == SQLITE_DONE ? FV_OK : refused(d, error);
}

static fv_status insert_residual(const database *d, const fv_residual *r, fv_error *error) {
    sqlite3_stmt *s = d->residual;
    char          call[33];
    fv_hash_format(r->call, call);
    sqlite3_bind_int64(s, 1, r->item);
    sqlite3_bind_int64(s, 2, r->line);
    sqlite3_bind_text(s, 3, r->op, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 4, call, 32, SQLITE_STATIC);
    sqlite3_bind_int64(s, 5, r->iteration);
    sqlite3_bind_double(s, 6, r->residual);
    sqlite3_bind_double(s, 7, r->least);
    sqlite3_bind_double(s, 8, r->most);
    sqlite3_bind_int64(s, 9, r->slices);
    int result = sqlite3_step(s);
    sqlite3_reset(s);
    return result == SQLITE_DONE ? FV_OK : refused(d, error);
}

static fv_status insert_residuals(const database *d, const fv_bytes *all, fv_error *error) {
    fv_residual *residuals = (fv_residual *)(void *)all->data;
    int64_t      count = once_each(residuals, (int64_t)(all->size / sizeof *residuals));
    for (int64_t i = 0; i < count; i++) FV_TRY(insert_residual(d, &residuals[i], error));
    return FV_OK;
}

static fv_status insert_spent(const database *d, const fv_spent *list, int count, fv_error *error) {
    sqlite3_stmt *s;
    int           code = sqlite3_prepare_v2(d->sql, "INSERT INTO spent VALUES (?,?)", -1, &s, NULL);
    for (int i = 0; i < count && (code == SQLITE_OK || code == SQLITE_DONE); i++) {
        sqlite3_bind_text(s, 1, list[i].op, -1, SQLITE_STATIC);
        sqlite3_bind_double(s, 2, list[i].seconds);
        code = sqlite3_step(s);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return code == SQLITE_OK || code == SQLITE_DONE ? FV_OK : refused(d, error);
}

static fv_status fill(database *d, const char *folder, fv_error *error) {
    /* Nobody sees the file before it is whole, so no journal is needed; it is synced at the end. */
    const char *schema =
        "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
        "BEGIN;"
        "CREATE TABLE run (name TEXT NOT NULL, value TEXT NOT NULL, UNIQUE (name, value));"
        "CREATE TABLE task (key TEXT NOT NULL, item INTEGER, stage INTEGER, task INTEGER, process TEXT, worker INTEGER,"
        " start REAL, wait REAL, read REAL, compute REAL, write REAL, bytes_read INTEGER, bytes_written INTEGER,"
        " memory INTEGER, status TEXT NOT NULL);"
        "CREATE TABLE residual (item INTEGER, line INTEGER, operator TEXT, call TEXT, iteration INTEGER, residual REAL,"
        " least REAL, most REAL, slices INTEGER);"
        "CREATE TABLE spent (operator TEXT NOT NULL, seconds REAL);";
    if (sqlite3_exec(d->sql, schema, NULL, NULL, NULL) ||
        sqlite3_prepare_v2(d->sql, "INSERT INTO task VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", -1, &d->task, NULL) ||
        sqlite3_prepare_v2(d->sql, "INSERT INTO residual VALUES (?,?,?,?,?,?,?,?,?)", -1, &d->residual, NULL) ||
        sqlite3_prepare_v2(d->sql, "INSERT OR IGNORE INTO run VALUES (?,?)", -1, &d->fact, NULL))
        return refused(d, error);
    fv_bytes  residuals = { 0 };
    fv_spent  spent[FV_MOST_SPENT];
    visitor   v = { .task = insert_task, .fact = insert_fact, .residuals = &residuals, .spent = spent, .context = d };
    fv_status status = visit_all(folder, &v, error);
    if (status == FV_OK) status = insert_residuals(d, &residuals, error);
    if (status == FV_OK) status = insert_spent(d, spent, v.nspent, error);
    fv_bytes_release(&residuals);
    FV_TRY(status);
    return sqlite3_exec(d->sql, "COMMIT", NULL, NULL, NULL) ? refused(d, error) : FV_OK;
}

static fv_status sync_file(const char *path, fv_error *error) {
    int fd;
    FV_TRY(fv_file_open_read(path, &fd, error));
    fv_status status = fv_file_sync(fd, path, error);
    close(fd);
    return status;
}

fv_status fv_record_build(const char *folder, fv_error *error) {
    char    *path = fv_sprintf("%s/record.db", folder), *temporary = fv_sprintf("%s.tmp%d", path, (int)getpid());
    database d = { .path = path };
    unlink(temporary);
    int       flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    fv_status status = sqlite3_open_v2(temporary, &d.sql, flags, NULL) ? refused(&d, error) : fill(&d, folder, error);
    sqlite3_finalize(d.task);
    sqlite3_finalize(d.fact);
    sqlite3_finalize(d.residual);
    if (sqlite3_close(d.sql) && status == FV_OK) status = fv_fail(error, FV_ERROR_IO, "cannot close %s", path);
    if (status == FV_OK) status = sync_file(temporary, error);
    if (status == FV_OK) status = fv_path_replace(temporary, path, error);
    if (status == FV_OK) status = fv_path_sync_folder(path, error);
    if (status != FV_OK) unlink(temporary);
    free(path);
    free(temporary);
    return status;
}

/* ---------------------------------------------------------------- reading */

typedef struct reader {
    void (*visit)(void *context, const char *process, const fv_task_facts *facts);
    void *context;
} reader;

static fv_status read_task(visitor *v, const char *worker, const task_slot *t, fv_error *error) {
    const reader *r = v->context;
    fv_task_facts facts = { t->key,   t->item,  t->stage,   t->task,  t->worker,     t->start,         t->wait,
                            t->read,  t->compute, t->write, t->bytes_read, t->bytes_written, t->memory, t->status };
    (void)error;
    r->visit(r->context, worker, &facts);
    return FV_OK;
}

fv_status fv_record_each(const char *folder, void (*visit)(void *context, const char *process, const fv_task_facts *facts),
                         void *context, fv_error *error) {
    reader  r = { visit, context };
    visitor v = { .task = read_task, .context = &r };
    return visit_all(folder, &v, error);
}

/* ---------------------------------------------------------------- counting */

typedef struct counts {
    int64_t  tasks;
    fv_bytes keys; /* of those that went well */
} counts;

static fv_status count_task(visitor *v, const char *worker, const task_slot *t, fv_error *error) {
    counts *c = v->context;
    (void)worker;
    (void)error;
    c->tasks++;
    if (t->status == FV_OK) fv_bytes_append(&c->keys, &t->key, sizeof t->key);
    return FV_OK;
}

static int by_key(const void *a, const void *b) {
    const fv_hash *x = a, *y = b;
    if (x->high != y->high) return x->high < y->high ? -1 : 1;
    return (x->low > y->low) - (x->low < y->low);
}

fv_status fv_record_count(const char *folder, int64_t *tasks, int64_t *repeated, fv_error *error) {
    counts    c = { 0 };
    visitor   v = { .task = count_task, .context = &c };
    fv_status status = visit_all(folder, &v, error);
    fv_hash  *keys = (fv_hash *)(void *)c.keys.data;
    size_t    count = c.keys.size / sizeof *keys;
    if (count) qsort(keys, count, sizeof *keys, by_key);
    *tasks = c.tasks;
    *repeated = 0;
    for (size_t i = 1; i < count; i++) /* once for each key, at its second line */
        if (fv_hash_equal(keys[i], keys[i - 1]) && (i < 2 || !fv_hash_equal(keys[i], keys[i - 2]))) ++*repeated;
    fv_bytes_release(&c.keys);
    return status;
}
