/* The book of a pilot, by SQLite. */
#include "cluster/pilot_book.h"
#include "base/file.h"
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE = 30000 }; /* milliseconds that others may hold the file */

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT);"
    "CREATE TABLE IF NOT EXISTS agent (node INTEGER PRIMARY KEY, host TEXT, pid INTEGER, cpus INTEGER, memory INTEGER, ends REAL,"
    " seen REAL);"
    "CREATE TABLE IF NOT EXISTS job (id INTEGER PRIMARY KEY AUTOINCREMENT, units INTEGER, key TEXT, folder TEXT, what TEXT,"
    " title TEXT, user TEXT, memory INTEGER, added REAL, state INTEGER, why TEXT,"
    " overwrite INTEGER);"
    "CREATE TABLE IF NOT EXISTS part (job INTEGER, node INTEGER, works INTEGER, used INTEGER, served REAL,"
    " PRIMARY KEY (job, node));";

struct fv_book {
    sqlite3 *sql;
    char    *path;
};

static fv_status refused(const fv_book *book, fv_error *error) {
    int       code = sqlite3_errcode(book->sql);
    fv_status status = code == SQLITE_FULL ? FV_ERROR_FULL : FV_ERROR_IO;
    return fv_fail(error, status, "cannot use %s: %s", book->path, sqlite3_errmsg(book->sql));
}

/* Whatever the book says is run in its owner's name, so nobody else may write it. */
static fv_status check_owner(const char *folder, fv_error *error) {
    struct stat st;
    if (stat(folder, &st)) return fv_fail(error, FV_ERROR_INPUT, "there is no folder %s", folder);
    if (st.st_uid != geteuid())
        return fv_fail(error, FV_ERROR_USAGE, "%s is somebody else's pilot; only its owner can use it", folder);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return fv_fail(error, FV_ERROR_USAGE, "others may write into %s and so run programs in your name; `chmod 700` it",
                       folder);
    return FV_OK;
}

fv_status fv__book_open(const char *folder, bool create, fv_book **out, fv_error *error) {
    fv_book *book = fv__calloc(sizeof *book);
    int      how = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
    *out = book;
    book->path = fv__path_inside(folder, "pilot.db");
    if (create) FV_TRY(fv__path_make_folders(folder, error));
    if (!create && !fv__file_exists(book->path))
        return fv_fail(error, FV_ERROR_INPUT, "%s is no pilot: it has no pilot.db", folder);
    if (create) chmod(folder, S_IRWXU); /* what comes of it is looked at next */
    FV_TRY(check_owner(folder, error));
    if (sqlite3_open_v2(book->path, &book->sql, how, NULL) != SQLITE_OK) return refused(book, error);
    sqlite3_busy_timeout(book->sql, PATIENCE);
    if (create && sqlite3_exec(book->sql, schema, NULL, NULL, NULL) != SQLITE_OK) return refused(book, error);
    return FV_OK;
}

void fv__book_close(fv_book *book) {
    if (!book) return;
    sqlite3_close(book->sql);
    free(book->path);
    free(book);
}

/* A statement that changes something; %Q quotes texts. */
static fv_status change(fv_book *book, fv_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    int code = sqlite3_exec(book->sql, text, NULL, NULL, NULL);
    sqlite3_free(text);
    return code == SQLITE_OK ? FV_OK : refused(book, error);
}

static bool is_row(fv_book *book, sqlite3_stmt **statement, const char *text) {
    return *statement || sqlite3_prepare_v2(book->sql, text, -1, statement, NULL) == SQLITE_OK
               ? sqlite3_step(*statement) == SQLITE_ROW
               : false;
}

static fv_status end_rows(fv_book *book, sqlite3_stmt *statement, fv_error *error) {
    bool good = statement && sqlite3_finalize(statement) == SQLITE_OK;
    return good ? FV_OK : refused(book, error);
}

/* ---------------------------------------------------------------- facts and agents */

char *fv__book_fact(fv_book *book, const char *name) {
    sqlite3_stmt *s = NULL;
    char         *text = sqlite3_mprintf("SELECT value FROM fact WHERE name = %Q", name);
    bool          found = is_row(book, &s, text);
    char         *value = fv__strdup(found ? (const char *)sqlite3_column_text(s, 0) : "");
    sqlite3_finalize(s);
    sqlite3_free(text);
    return value;
}

fv_status fv__book_set_fact(fv_book *book, const char *name, const char *value, fv_error *error) {
    return change(book, error, "INSERT OR REPLACE INTO fact VALUES (%Q, %Q)", name, value);
}

fv_status fv__book_agent(fv_book *book, const fv_book_agent *a, fv_error *error) {
    return change(book, error, "INSERT OR REPLACE INTO agent VALUES (%d, %Q, %d, %d, %lld, %.3f, %.3f)", a->node, a->host, a->pid,
                  a->cpus, (long long)a->memory, a->ends, a->seen);
}

fv_status fv__book_agent_leaves(fv_book *book, int node, fv_error *error) {
    FV_TRY(change(book, error, "UPDATE part SET works = 0, used = 0 WHERE node = %d", node));
    return change(book, error, "DELETE FROM agent WHERE node = %d", node);
}

fv_status fv__book_agents(fv_book *book, double since, fv_book_agent **agents, int *count, fv_error *error) {
    sqlite3_stmt *s = NULL;
    char         *text = sqlite3_mprintf("SELECT * FROM agent WHERE seen >= %.3f ORDER BY node", since);
    *agents = NULL;
    *count = 0;
    while (is_row(book, &s, text)) {
        *agents = fv__realloc(*agents, (size_t)(*count + 1) * sizeof **agents);
        fv_book_agent *a = &(*agents)[(*count)++];
        *a = (fv_book_agent){ .node = sqlite3_column_int(s, 0),
                              .pid = sqlite3_column_int(s, 2),
                              .cpus = sqlite3_column_int(s, 3),
                              .memory = sqlite3_column_int64(s, 4),
                              .ends = sqlite3_column_double(s, 5),
                              .seen = sqlite3_column_double(s, 6) };
        snprintf(a->host, sizeof a->host, "%s", (const char *)sqlite3_column_text(s, 1));
    }
    sqlite3_free(text);
    return end_rows(book, s, error);
}

/* ---------------------------------------------------------------- jobs */

static const char columns[] = " AS what, title, user, memory, added, state, why,"
                              " (SELECT COUNT(*) FROM part WHERE job = id AND works),"
                              " (SELECT IFNULL(SUM(used), 0) FROM part WHERE job = id AND works),"
                              " (SELECT IFNULL(SUM(served), 0) FROM part WHERE job = id), overwrite FROM job";

static void read_job(sqlite3_stmt *s, fv_arena *arena, fv_book_job *job) {
    static const int at[] = { 2, 3, 4, 5, 6, 10 };
    const char      *texts[FV_COUNT(at)];
    for (int i = 0; i < FV_COUNT(at); i++) {
        const char *text = (const char *)sqlite3_column_text(s, at[i]);
        texts[i] = fv__arena_strdup(arena, text ? text : "");
    }
    *job = (fv_book_job){ .id = sqlite3_column_int64(s, 0),
                          .units = sqlite3_column_int(s, 1),
                          .key = texts[0],
                          .folder = texts[1],
                          .what = texts[2],
                          .title = texts[3],
                          .user = texts[4],
                          .memory = sqlite3_column_int64(s, 7),
                          .added = sqlite3_column_double(s, 8),
                          .state = (fv_book_state)sqlite3_column_int(s, 9),
                          .why = texts[5],
                          .agents = sqlite3_column_int(s, 11),
                          .used = sqlite3_column_int(s, 12),
                          .served = sqlite3_column_double(s, 13),
                          .overwrite = sqlite3_column_int(s, 14) };
    if (job->state == FV_BOOK_WAITS && job->agents) job->state = FV_BOOK_RUNS;
}

fv_status fv__book_add(fv_book *book, const fv_book_job *job, int64_t *id, fv_error *error) {
    sqlite3_stmt *s = NULL;
    char         *text = sqlite3_mprintf("SELECT id FROM job WHERE key = %Q AND state = %d", job->key, FV_BOOK_WAITS);
    fv_status     status = change(book, error, "BEGIN IMMEDIATE");
    if (status != FV_OK) {
        sqlite3_free(text);
        return status;
    }
    *id = is_row(book, &s, text) ? sqlite3_column_int64(s, 0) : 0;
    status = end_rows(book, s, error);
    if (status == FV_OK && !*id) {
        status = change(book, error,
                        "INSERT INTO job (units, key, folder, what, title, user, memory, added, state, why,"
                        " overwrite) VALUES (%d, %Q, %Q, %Q, %Q, %Q, %lld, %.6f, %d, '', %d)",
                        job->units, job->key, job->folder, job->what, job->title, job->user, (long long)job->memory, job->added,
                        FV_BOOK_WAITS, job->overwrite);
        *id = sqlite3_last_insert_rowid(book->sql);
    }
    sqlite3_free(text);
    fv_status ended = change(book, error, status == FV_OK ? "COMMIT" : "ROLLBACK");
    return status == FV_OK ? ended : status;
}

static fv_status read_jobs(fv_book *book, const char *text, fv_arena *arena, fv_book_job **jobs, int *count, fv_error *error) {
    sqlite3_stmt *s = NULL;
    *jobs = NULL;
    *count = 0;
    while (is_row(book, &s, text)) {
        *jobs = fv__realloc(*jobs, (size_t)(*count + 1) * sizeof **jobs);
        read_job(s, arena, &(*jobs)[(*count)++]);
    }
    return end_rows(book, s, error);
}

fv_status fv__book_jobs(fv_book *book, bool all, fv_arena *arena, fv_book_job **jobs, int *count, fv_error *error) {
    char *text =
        sqlite3_mprintf("SELECT id, units, key, folder, ''%s WHERE %d OR state = %d ORDER BY id", columns, all, FV_BOOK_WAITS);
    fv_status status = read_jobs(book, text, arena, jobs, count, error);
    sqlite3_free(text);
    return status;
}

fv_status fv__book_job(fv_book *book, int64_t id, fv_arena *arena, fv_book_job *job, fv_error *error) {
    fv_book_job *jobs;
    int          count;
    char        *text = sqlite3_mprintf("SELECT id, units, key, folder, what%s WHERE id = %lld", columns, (long long)id);
    fv_status    status = read_jobs(book, text, arena, &jobs, &count, error);
    sqlite3_free(text);
    if (status == FV_OK && !count) status = fv_fail(error, FV_ERROR_INPUT, "%s has no job %lld", book->path, (long long)id);
    if (status == FV_OK) *job = jobs[0];
    free(jobs);
    return status;
}

fv_status fv__book_settle(fv_book *book, int64_t id, fv_book_state state, const char *why, fv_error *error) {
    return change(book, error, "UPDATE job SET state = %d, why = %Q, what = '' WHERE id = %lld AND state = %d", state,
                  why ? why : "", (long long)id, FV_BOOK_WAITS); /* a long list of files is not kept for ever */
}

fv_status fv__book_part(fv_book *book, int64_t job, int node, bool works, int used, double served, fv_error *error) {
    return change(book, error, "INSERT OR REPLACE INTO part VALUES (%lld, %d, %d, %d, %.3f)", (long long)job, node, works, used,
                  served);
}

const char *fv__book_state_name(fv_book_state state) {
    static const char *const names[] = { "waits", "runs", "done", "failed", "cancelled" };
    return names[state];
}
