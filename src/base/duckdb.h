/* The little that Fovea asks of DuckDB's C library, which is loaded when a Parquet file is met; nothing is built against it.
 * Declared here, because the library is packaged without its header.
 *
 *     fv_duckdb *duck;
 *     FV_TRY(fv__duckdb_open("reading Parquet files", memory, &duck, error));
 *     FV_TRY(fv__duckdb_query(duck, path, &result, error, "SELECT count(*) FROM read_parquet(%s)", quoted));
 *     FV_TRY(fv__duckdb_next(duck, path, &result, &chunk, error));
 *
 * A session works on the thread that calls it and on no other; any number may be open at once.
 */
#ifndef FV_DUCKDB_H
#define FV_DUCKDB_H

#include "base/base.h"

typedef void *fv_duckdb_handle; /* all of the library's things are pointers to what it alone knows */

/* The library fills this in and reads it; functions take it by value or by pointer. */
typedef struct fv_duckdb_result {
    uint64_t unused[3];
    void    *hidden[3];
} fv_duckdb_result;

/* A text or a blob in a vector: up to 12 bytes lie in it, longer ones elsewhere. */
typedef union fv_duckdb_text {
    struct {
        uint32_t length;
        char     bytes[12];
    } inside;
    struct {
        uint32_t    length;
        char        prefix[4];
        const char *bytes;
    } outside;
} fv_duckdb_text;

enum { /* numbers of the library's types */
       FV_DUCKDB_BOOLEAN = 1,
       FV_DUCKDB_BIGINT = 5,
       FV_DUCKDB_UBIGINT = 9,
       FV_DUCKDB_FLOAT = 10,
       FV_DUCKDB_DOUBLE = 11,
       FV_DUCKDB_HUGEINT = 16,
       FV_DUCKDB_UHUGEINT = 32,
       FV_DUCKDB_VARCHAR = 17,
       FV_DUCKDB_BLOB = 18,
       FV_DUCKDB_DECIMAL = 19,
};

typedef void (*fv_duckdb_callback)(fv_duckdb_handle info);
typedef void (*fv_duckdb_producer)(fv_duckdb_handle info, fv_duckdb_handle chunk);

/* Function, what it returns, what it takes; the library's names have duckdb_ before them. Functions that return int fail with
 * something else than 0. */
#define FV_DUCKDB_FUNCTIONS(F)                                                                                                   \
    F(create_config, int, (fv_duckdb_handle * config))                                                                           \
    F(set_config, int, (fv_duckdb_handle config, const char *name, const char *value))                                           \
    F(destroy_config, void, (fv_duckdb_handle * config))                                                                         \
    F(open_ext, int, (const char *path, fv_duckdb_handle *database, fv_duckdb_handle config, char **message))                    \
    F(close, void, (fv_duckdb_handle * database))                                                                                \
    F(connect, int, (fv_duckdb_handle database, fv_duckdb_handle * connection))                                                  \
    F(disconnect, void, (fv_duckdb_handle * connection))                                                                         \
    F(free, void, (void *memory))                                                                                                \
    F(prepare, int, (fv_duckdb_handle connection, const char *text, fv_duckdb_handle *statement))                                \
    F(prepare_error, const char *, (fv_duckdb_handle statement))                                                                 \
    F(destroy_prepare, void, (fv_duckdb_handle * statement))                                                                     \
    F(pending_prepared_streaming, int, (fv_duckdb_handle statement, fv_duckdb_handle * pending))                                 \
    F(pending_error, const char *, (fv_duckdb_handle pending))                                                                   \
    F(execute_pending, int, (fv_duckdb_handle pending, fv_duckdb_result * result))                                               \
    F(destroy_pending, void, (fv_duckdb_handle * pending))                                                                       \
    F(destroy_result, void, (fv_duckdb_result * result))                                                                         \
    F(result_error, const char *, (fv_duckdb_result * result))                                                                   \
    F(column_count, uint64_t, (fv_duckdb_result * result))                                                                       \
    F(column_name, const char *, (fv_duckdb_result * result, uint64_t column))                                                   \
    F(column_type, int, (fv_duckdb_result * result, uint64_t column))                                                            \
    F(fetch_chunk, fv_duckdb_handle, (fv_duckdb_result result))                                                                  \
    F(destroy_data_chunk, void, (fv_duckdb_handle * chunk))                                                                      \
    F(data_chunk_get_size, uint64_t, (fv_duckdb_handle chunk))                                                                   \
    F(data_chunk_set_size, void, (fv_duckdb_handle chunk, uint64_t size))                                                        \
    F(data_chunk_get_vector, fv_duckdb_handle, (fv_duckdb_handle chunk, uint64_t column))                                        \
    F(vector_size, uint64_t, (void))                                                                                             \
    F(vector_get_data, void *, (fv_duckdb_handle vector))                                                                        \
    F(vector_get_validity, uint64_t *, (fv_duckdb_handle vector))                                                                \
    F(vector_ensure_validity_writable, void, (fv_duckdb_handle vector))                                                          \
    F(vector_assign_string_element_len, void, (fv_duckdb_handle vector, uint64_t row, const char *bytes, uint64_t length))       \
    F(create_logical_type, fv_duckdb_handle, (int type))                                                                         \
    F(destroy_logical_type, void, (fv_duckdb_handle * type))                                                                     \
    F(create_table_function, fv_duckdb_handle, (void))                                                                           \
    F(destroy_table_function, void, (fv_duckdb_handle * function))                                                               \
    F(table_function_set_name, void, (fv_duckdb_handle function, const char *name))                                              \
    F(table_function_set_extra_info, void, (fv_duckdb_handle function, void *context, fv_duckdb_callback destroy))               \
    F(table_function_set_bind, void, (fv_duckdb_handle function, fv_duckdb_callback bind))                                       \
    F(table_function_set_init, void, (fv_duckdb_handle function, fv_duckdb_callback init))                                       \
    F(table_function_set_function, void, (fv_duckdb_handle function, fv_duckdb_producer producer))                               \
    F(register_table_function, int, (fv_duckdb_handle connection, fv_duckdb_handle function))                                    \
    F(bind_get_extra_info, void *, (fv_duckdb_handle info))                                                                      \
    F(bind_add_result_column, void, (fv_duckdb_handle info, const char *name, fv_duckdb_handle type))                            \
    F(init_set_max_threads, void, (fv_duckdb_handle info, uint64_t threads))                                                     \
    F(function_get_extra_info, void *, (fv_duckdb_handle info))                                                                  \
    F(function_set_error, void, (fv_duckdb_handle info, const char *message))

typedef struct fv_duckdb_library {
#define FV_DUCKDB_MEMBER(name, result, arguments) result(*name) arguments;
    FV_DUCKDB_FUNCTIONS(FV_DUCKDB_MEMBER)
#undef FV_DUCKDB_MEMBER
} fv_duckdb_library;

typedef struct fv_duckdb {
    const fv_duckdb_library *call;
    fv_duckdb_handle         database, connection;
} fv_duckdb;

#define FV_DUCKDB_WRITING "writing Parquet files" /* a purpose */

/* Whether the library is there, which is better known before a long run than at its end. */
fv_status fv__duckdb_ready(const char *purpose, fv_error *error);

/* A session of its own. memory: the most that the library may keep at a time. purpose: what cannot be done without the library.
 */
fv_status fv__duckdb_open(const char *purpose, int64_t memory, fv_duckdb **duck, fv_error *error);
void      fv__duckdb_close(fv_duckdb *duck); /* NULL is fine */

/* One statement, in printf's words; rows come as they are asked for. path is for the message. The caller releases the result. */
fv_status fv__duckdb_query(fv_duckdb *duck, const char *path, fv_duckdb_result *result, fv_error *error, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The next rows, which replace those before them; *chunk is NULL at first and after the last. */
fv_status fv__duckdb_next(fv_duckdb *duck, const char *path, fv_duckdb_result *result, fv_duckdb_handle *chunk, fv_error *error);
void      fv__duckdb_release(fv_duckdb *duck, fv_duckdb_result *result, fv_duckdb_handle *chunk);

/* Rows that the library takes from us. */
typedef struct fv_duckdb_feed fv_duckdb_feed;
struct fv_duckdb_feed {
    int                ncolumns;
    const char *const *names;
    const int         *types;
    /* Puts up to most rows into the chunk's vectors; 0 rows: the end. */
    fv_status (*fill)(fv_duckdb_feed *feed, fv_duckdb_handle chunk, uint64_t most, uint64_t *nrows, fv_error *error);
    const fv_duckdb_library *call; /* this and the rest are filled in by fv__duckdb_copy */
    fv_status                status;
    fv_error                *error;
};
/* Writes them to a file; options: of COPY, in its words. */
fv_status fv__duckdb_copy(fv_duckdb *duck, const char *path, fv_duckdb_feed *feed, const char *options, fv_error *error);

/* A text of SQL, quoted with ' or ". The caller frees. */
char *fv__duckdb_quote(const char *text, char mark);
/* The files that a path means, each ended by NUL: itself, or in a folder, as Spark and Dask write, its part files in order of
 * their names (*.parquet, also in folders called NAME=VALUE; what begins with . or _ is none). Their number. */
int fv__duckdb_parts(const char *path, fv_bytes *parts);
/* The same as what read_parquet and the like take. The caller frees. */
char *fv__duckdb_files(const char *path);

static inline const char *fv__duckdb_bytes(const fv_duckdb_text *text) {
    return text->inside.length <= sizeof text->inside.bytes ? text->inside.bytes : text->outside.bytes;
}
static inline bool fv__duckdb_valid(const uint64_t *validity, uint64_t row) {
    return !validity || (validity[row / 64] >> row % 64 & 1);
}

#endif
