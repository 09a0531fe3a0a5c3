/* The SQLite file of a run, made from the logs of all its processes. */
#include "base/file.h"
#include "record/record_log.h"
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct database {
    sqlite3      *sql;
    sqlite3_stmt *task, *fact, *residual, *memory, *stage, *node;
    bool          failed; /* a row of the last three could not be inserted */
    const char   *path;
} database;

static fv_status refused(const database *d, fv_error *error) {
    int       code = sqlite3_errcode(d->sql);
    fv_status status = code == SQLITE_FULL ? FV_ERROR_FULL : code == SQLITE_NOMEM ? FV_ERROR_MEMORY : FV_ERROR_IO;
    return fv_fail(error, status, "cannot write %s: %s", d->path, sqlite3_errmsg(d->sql));
}

static fv_status insert_task(fv__visitor *v, const char *worker, const fv__task_slot *t, fv_error *error) {
    database     *d = v->context;
    sqlite3_stmt *s = d->task;
    char          key[33];
    fv__hash_format(t->key, key);
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

static fv_status insert_fact(fv__visitor *v, const char *name, const char *value, fv_error *error) {
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
    fv__hash_format(r->call, call);
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
    int64_t      count = fv__residuals_once(residuals, (int64_t)(all->size / sizeof *residuals));
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

static void step(database *d, sqlite3_stmt *s) {
    if (sqlite3_step(s) != SQLITE_DONE) d->failed = true;
    sqlite3_reset(s);
}

static void insert_memory(fv__visitor *v, const char *worker, double time, int64_t resident) {
    database *d = v->context;
    sqlite3_bind_text(d->memory, 1, worker, -1, SQLITE_STATIC);
    sqlite3_bind_double(d->memory, 2, time);
    sqlite3_bind_int64(d->memory, 3, resident);
    step(d, d->memory);
}

static void add_stage(fv__visitor *v, const fv_stage_facts *f) {
    database     *d = v->context;
    const int64_t numbers[] = { f->part, f->stage, f->items, f->tasks, f->found, f->spared };
    for (int i = 0; i < FV_COUNT(numbers); i++) sqlite3_bind_int64(d->stage, i + 1, numbers[i]);
    step(d, d->stage);
}

static void add_node(fv__visitor *v, const fv_node_spent *spent) {
    database *d = v->context;
    sqlite3_bind_int64(d->node, 1, spent->part);
    sqlite3_bind_int64(d->node, 2, spent->node);
    sqlite3_bind_double(d->node, 3, spent->seconds);
    step(d, d->node);
}

static bool prepare(database *d) {
    return !sqlite3_prepare_v2(d->sql, "INSERT INTO task VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", -1, &d->task, NULL) &&
           !sqlite3_prepare_v2(d->sql, "INSERT INTO residual VALUES (?,?,?,?,?,?,?,?,?)", -1, &d->residual, NULL) &&
           !sqlite3_prepare_v2(d->sql, "INSERT INTO memory VALUES (?,?,?)", -1, &d->memory, NULL) &&
           !sqlite3_prepare_v2(d->sql,
                               "INSERT INTO stage VALUES (?,?,?,?,?,?) ON CONFLICT DO UPDATE SET items = items + excluded.items,"
                               " tasks = tasks + excluded.tasks, found = found + excluded.found,"
                               " spared = spared + excluded.spared",
                               -1, &d->stage, NULL) &&
           !sqlite3_prepare_v2(d->sql,
                               "INSERT INTO node VALUES (?,?,?)"
                               " ON CONFLICT DO UPDATE SET seconds = seconds + excluded.seconds",
                               -1, &d->node, NULL) &&
           !sqlite3_prepare_v2(d->sql, "INSERT OR IGNORE INTO run VALUES (?,?)", -1, &d->fact, NULL);
}

/* The graph lies beside the logs, where those who share a run find it. */
static fv_status insert_graph(fv__visitor *v, const char *folder, fv_error *error) {
    char     *path = fv__sprintf("%s/graph.json", folder);
    fv_bytes  text = { 0 };
    fv_status status = FV_OK;
    if (fv__file_exists(path) && fv__file_read_all(path, (size_t)64 << 20, &text, NULL) == FV_OK)
        status = insert_fact(v, "graph", (char *)text.data, error);
    fv__bytes_release(&text);
    free(path);
    return status;
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
        "CREATE TABLE spent (operator TEXT NOT NULL, seconds REAL);"
        "CREATE TABLE memory (process TEXT, time REAL, resident INTEGER);"
        "CREATE TABLE stage (part INTEGER, stage INTEGER, items INTEGER, tasks INTEGER, found INTEGER, spared INTEGER,"
        " PRIMARY KEY (part, stage));"
        "CREATE TABLE node (part INTEGER, node INTEGER, seconds REAL, PRIMARY KEY (part, node));";
    if (sqlite3_exec(d->sql, schema, NULL, NULL, NULL) || !prepare(d)) return refused(d, error);
    fv_bytes    residuals = { 0 };
    fv_spent    spent[FV_MOST_SPENT];
    fv__visitor v = { .task = insert_task,
                      .fact = insert_fact,
                      .memory = insert_memory,
                      .stage = add_stage,
                      .node = add_node,
                      .residuals = &residuals,
                      .spent = spent,
                      .context = d };
    fv_status   status = fv__record_visit(folder, &v, error);
    if (status == FV_OK && d->failed) status = refused(d, error);
    if (status == FV_OK) status = insert_graph(&v, folder, error);
    if (status == FV_OK) status = insert_residuals(d, &residuals, error);
    if (status == FV_OK) status = insert_spent(d, spent, v.nspent, error);
    fv__bytes_release(&residuals);
    FV_TRY(status);
    return sqlite3_exec(d->sql, "COMMIT", NULL, NULL, NULL) ? refused(d, error) : FV_OK;
}

static fv_status sync_file(const char *path, fv_error *error) {
    int fd;
    FV_TRY(fv__file_open_read(path, &fd, error));
    fv_status status = fv__file_sync(fd, path, error);
    close(fd);
    return status;
}

fv_status fv__record_build(const char *folder, fv_error *error) {
    char    *path = fv__sprintf("%s/record.db", folder), *temporary = fv__sprintf("%s.tmp%d", path, (int)getpid());
    database d = { .path = path };
    unlink(temporary);
    int       flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    fv_status status = sqlite3_open_v2(temporary, &d.sql, flags, NULL) ? refused(&d, error) : fill(&d, folder, error);
    sqlite3_finalize(d.task);
    sqlite3_finalize(d.fact);
    sqlite3_finalize(d.residual);
    sqlite3_finalize(d.memory);
    sqlite3_finalize(d.stage);
    sqlite3_finalize(d.node);
    if (sqlite3_close(d.sql) && status == FV_OK) status = fv_fail(error, FV_ERROR_IO, "cannot close %s", path);
    if (status == FV_OK) status = sync_file(temporary, error);
    if (status == FV_OK) status = fv__path_replace(temporary, path, error);
    if (status == FV_OK) status = fv__path_sync_folder(path, error);
    if (status != FV_OK) unlink(temporary);
    free(path);
    free(temporary);
    return status;
}
