/* Finding, loading and calling DuckDB's library; see duckdb.h. */
#include "base/duckdb.h"
#include "base/file.h"
#include "base/plugin.h"
#include "base/remote.h"
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LIBRARY "libduckdb.so"

/* Of the process: a library is loaded once. */
static pthread_mutex_t   mutex = PTHREAD_MUTEX_INITIALIZER;
static fv_duckdb_library library;
static bool              loaded;

/* ---------------------------------------------------------------- loading */

/* $FOVEA_DUCKDB, the library itself or its folder; where `make duckdb` puts it; where programs look for libraries. */
static void *open_library(void) {
    const char *given = getenv("FOVEA_DUCKDB");
    if (given && *given) {
        char *path = fv__path_is_folder(given) ? fv__sprintf("%s/%s", given, LIBRARY) : fv__strdup(given);
        void *opened = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        free(path);
        return opened;
    }
    char *path = fv__library_find(LIBRARY);
    void *opened = dlopen(path ? path : LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    free(path);
    return opened;
}

static fv_status load(const char *purpose, fv_error *error) {
    void *opened = open_library();
    if (!opened)
        return fv_fail(error, FV_ERROR_MISSING,
                       "%s needs DuckDB's library " LIBRARY ": `make duckdb` gets it, or FOVEA_DUCKDB says where it is (%s)",
                       purpose, dlerror());
#define LOAD(name, result, arguments)                                                                                            \
    *(void **)&library.name = dlsym(opened, "duckdb_" #name);                                                                    \
    if (!library.name)                                                                                                           \
        return fv_fail(error, FV_ERROR_MISSING,                                                                                  \
                       "%s needs a newer DuckDB: its library has no duckdb_" #name "; `make duckdb` "                            \
                       "gets one",                                                                                               \
                       purpose);
    FV_DUCKDB_FUNCTIONS(LOAD)
#undef LOAD
    loaded = true;
    return FV_OK;
}

/* ---------------------------------------------------------------- sessions */

/* One thread, which is the caller's: rows keep their order, and a process may fork. Nothing is fetched from elsewhere. */
static fv_status configure(fv_duckdb_handle config, int64_t memory, fv_error *error) {
    char        most[32];
    const char *settings[][2] = { { "threads", "1" },
                                  { "memory_limit", most },
                                  { "temp_directory", "" },
                                  { "preserve_insertion_order", "false" }, /* one thread keeps it all the same */
                                  { "autoinstall_known_extensions", "false" },
                                  { "autoload_known_extensions", "false" } };
    snprintf(most, sizeof most, "%lldMB", (long long)FV_MAX(memory >> 20, 64));
    for (int i = 0; i < FV_COUNT(settings); i++)
        if (library.set_config(config, settings[i][0], settings[i][1]))
            return fv_fail(error, FV_ERROR_MISSING, "this version of DuckDB does not know the setting %s", settings[i][0]);
    return FV_OK;
}

static fv_status start(fv_duckdb *duck, int64_t memory, fv_error *error) {
    fv_duckdb_handle config = NULL;
    char            *message = NULL;
    if (library.create_config(&config)) return fv_fail(error, FV_ERROR_MEMORY, "DuckDB cannot be started");
    fv_status status = configure(config, memory, error);
    if (status == FV_OK && library.open_ext(NULL, &duck->database, config, &message))
        status = fv_fail(error, FV_ERROR_MEMORY, "DuckDB cannot be started: %s", message ? message : "no reason given");
    if (status == FV_OK && library.connect(duck->database, &duck->connection))
        status = fv_fail(error, FV_ERROR_MEMORY, "DuckDB cannot be started");
    library.free(message);
    library.destroy_config(&config);
    return status;
}

fv_status fv__duckdb_ready(const char *purpose, fv_error *error) {
    pthread_mutex_lock(&mutex);
    fv_status status = loaded ? FV_OK : load(purpose, error);
    pthread_mutex_unlock(&mutex);
    return status;
}

fv_status fv__duckdb_open(const char *purpose, int64_t memory, fv_duckdb **out, fv_error *error) {
    FV_TRY(fv__duckdb_ready(purpose, error));
    fv_duckdb *duck = fv__calloc(sizeof *duck);
    duck->call = &library;
    fv_status status = start(duck, memory, error);
    if (status == FV_OK)
        *out = duck;
    else
        fv__duckdb_close(duck);
    return status;
}

void fv__duckdb_close(fv_duckdb *duck) {
    if (!duck) return;
    if (duck->connection) library.disconnect(&duck->connection);
    if (duck->database) library.close(&duck->database);
    free(duck);
}

/* ---------------------------------------------------------------- statements */

/* The library's first line; what follows repeats the statement. */
static fv_status failed(const char *path, const char *message, fv_error *error) {
    if (!message || !*message) message = "DuckDB gives no reason";
    fv_status status = strstr(message, "No space left")   ? FV_ERROR_FULL
                       : strstr(message, "Out of Memory") ? FV_ERROR_MEMORY
                       : strstr(message, "IO Error")      ? FV_ERROR_IO
                                                          : FV_ERROR_INPUT;
    if (status == FV_ERROR_FULL) return fv_fail(error, status, "%s: No space left on device", path); /* it names a temporary */
    return fv_fail(error, status, "%s: %.*s", path, (int)FV_MIN(strcspn(message, "\n"), 400), message);
}

static fv_status execute(fv_duckdb *duck, const char *path, const char *text, fv_duckdb_result *result, fv_error *error) {
    fv_duckdb_handle statement = NULL, pending = NULL;
    fv_status        status = FV_OK;
    if (library.prepare(duck->connection, text, &statement))
        status = failed(path, library.prepare_error(statement), error);
    else if (library.pending_prepared_streaming(statement, &pending))
        status = failed(path, library.pending_error(pending), error);
    else if (library.execute_pending(pending, result)) {
        status = failed(path, library.result_error(result), error);
        library.destroy_result(result);
    }
    if (pending) library.destroy_pending(&pending);
    library.destroy_prepare(&statement);
    return status;
}

fv_status fv__duckdb_query(fv_duckdb *duck, const char *path, fv_duckdb_result *result, fv_error *error, const char *format,
                           ...) {
    fv_bytes text = { 0 };
    va_list  arguments;
    va_start(arguments, format);
    fv__bytes_vprintf(&text, format, arguments);
    va_end(arguments);
    memset(result, 0, sizeof *result);
    fv_status status = execute(duck, path, (char *)text.data, result, error);
    fv__bytes_release(&text);
    return status;
}

fv_status fv__duckdb_next(fv_duckdb *duck, const char *path, fv_duckdb_result *result, fv_duckdb_handle *chunk, fv_error *error) {
    if (*chunk) duck->call->destroy_data_chunk(chunk);
    *chunk = duck->call->fetch_chunk(*result);
    if (*chunk && duck->call->data_chunk_get_size(*chunk)) return FV_OK;
    if (*chunk) duck->call->destroy_data_chunk(chunk);
    const char *message = duck->call->result_error(result);
    return message && *message ? failed(path, message, error) : FV_OK;
}

void fv__duckdb_release(fv_duckdb *duck, fv_duckdb_result *result, fv_duckdb_handle *chunk) {
    if (*chunk) duck->call->destroy_data_chunk(chunk);
    if (result->hidden[2]) duck->call->destroy_result(result);
    memset(result, 0, sizeof *result);
}

/* ---------------------------------------------------------------- rows from us */

static void describe_feed(fv_duckdb_handle info) {
    const fv_duckdb_feed *feed = library.bind_get_extra_info(info);
    for (int c = 0; c < feed->ncolumns; c++) {
        fv_duckdb_handle type = library.create_logical_type(feed->types[c]);
        library.bind_add_result_column(info, feed->names[c], type);
        library.destroy_logical_type(&type);
    }
}

static void begin_feed(fv_duckdb_handle info) { library.init_set_max_threads(info, 1); }

static void give_rows(fv_duckdb_handle info, fv_duckdb_handle chunk) {
    fv_duckdb_feed *feed = library.function_get_extra_info(info);
    uint64_t        nrows = 0;
    if (feed->status == FV_OK) feed->status = feed->fill(feed, chunk, library.vector_size(), &nrows, feed->error);
    if (feed->status != FV_OK) library.function_set_error(info, "the rows cannot be had");
    library.data_chunk_set_size(chunk, feed->status == FV_OK ? nrows : 0);
}

static fv_status offer(fv_duckdb *duck, fv_duckdb_feed *feed, fv_error *error) {
    fv_duckdb_handle function = library.create_table_function();
    library.table_function_set_name(function, "fovea_rows");
    library.table_function_set_extra_info(function, feed, NULL);
    library.table_function_set_bind(function, describe_feed);
    library.table_function_set_init(function, begin_feed);
    library.table_function_set_function(function, give_rows);
    bool good = !library.register_table_function(duck->connection, function);
    library.destroy_table_function(&function);
    return good ? FV_OK : fv_fail(error, FV_ERROR_INTERNAL, "DuckDB does not take our rows");
}

fv_status fv__duckdb_copy(fv_duckdb *duck, const char *path, fv_duckdb_feed *feed, const char *options, fv_error *error) {
    char            *file = fv__duckdb_quote(path, '\'');
    fv_duckdb_result result = { 0 };
    fv_duckdb_handle chunk = NULL;
    feed->call = &library;
    feed->error = error;
    fv_status status = offer(duck, feed, error);
    fv_error  local = { 0 }; /* what our side said of a failure counts more */
    if (status == FV_OK) {
        status = fv__duckdb_query(duck, path, &result, &local, "COPY (SELECT * FROM fovea_rows()) TO %s (%s)", file, options);
        if (status != FV_OK && feed->status == FV_OK && error) *error = local;
    }
    fv__duckdb_release(duck, &result, &chunk);
    free(file);
    return feed->status != FV_OK ? feed->status : status;
}

char *fv__duckdb_quote(const char *text, char mark) {
    fv_bytes out = { 0 };
    fv__bytes_append(&out, &mark, 1);
    for (; *text; text++) {
        if (*text == mark) fv__bytes_append(&out, &mark, 1);
        fv__bytes_append(&out, text, 1);
    }
    fv__bytes_append(&out, &mark, 1);
    fv__bytes_append(&out, "", 1);
    return (char *)out.data;
}

/* ---------------------------------------------------------------- folders of part files */

enum { MOST_PARTS = 100000, DEEPEST = 8 };

static int visible(const struct dirent *entry) { return entry->d_name[0] != '.' && entry->d_name[0] != '_'; }

static int add_parts(const char *folder, int depth, fv_bytes *parts) {
    struct dirent **entries = NULL;
    int             count = 0, n = scandir(folder, &entries, visible, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        char       *path = fv__sprintf("%s/%s", folder, name);
        if (fv__path_is_folder(path)) {
            if (strchr(name, '=') && depth < DEEPEST) count += add_parts(path, depth + 1, parts);
        } else if ((fv__path_has_extension(name, "parquet") || fv__path_has_extension(name, "pq")) && count < MOST_PARTS) {
            fv__bytes_append(parts, path, strlen(path) + 1);
            count++;
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    return count;
}

int fv__duckdb_parts(const char *path, fv_bytes *parts) {
    if (!fv__is_remote(path) && fv__path_is_folder(path)) return add_parts(path, 0, parts);
    fv__bytes_append(parts, path, strlen(path) + 1);
    return 1;
}

char *fv__duckdb_files(const char *path) {
    fv_bytes parts = { 0 }, text = { 0 };
    int      count = fv__duckdb_parts(path, &parts);
    fv__bytes_printf(&text, count > 1 ? "[" : "");
    for (const char *p = (char *)parts.data; count && p < (char *)parts.data + parts.size; p += strlen(p) + 1) {
        char *quoted = fv__duckdb_quote(p, '\'');
        fv__bytes_printf(&text, "%s%s", text.size > 1 ? ", " : "", quoted);
        free(quoted);
    }
    fv__bytes_printf(&text, count > 1 ? "]" : "");
    fv__bytes_append(&text, "", 1);
    fv__bytes_release(&parts);
    return (char *)text.data;
}
