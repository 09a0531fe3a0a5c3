/* Writing a table of a million rows: the time of the writer alone, from rows in memory to a durable file. A thousand rows are
 * written before, as by the peers, so that nobody's loading of libraries counts.
 * usage: bench_tables FILE [ROWS]; bench/tables.py runs it beside pandas and pyarrow. Prints wall and CPU seconds. */
#include "base/base.h"
#include "op/format.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COLUMNS = 6, BATCH = 1024 };

static const fv_table_type type = { COLUMNS,
                                    { { "label", FV_COLUMN_INTEGER },
                                      { "volume", FV_COLUMN_REAL },
                                      { "anisotropy", FV_COLUMN_REAL },
                                      { "depth", FV_COLUMN_REAL },
                                      { "type", FV_COLUMN_TEXT },
                                      { "neighbours", FV_COLUMN_INTEGER } } };

typedef struct {
    fv_table_source base;
    const fv_cell  *cells;
    int64_t         nrows, at;
} rows;

static fv_status next_rows(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    rows *r = (rows *)source;
    (void)error;
    *nrows = FV_MIN(BATCH, r->nrows - r->at);
    *cells = r->cells + r->at * COLUMNS;
    r->at += *nrows;
    return FV_OK;
}

/* The numbers that bench/tables.py makes for the peers: a generator that both can run. */
static uint64_t random_bits(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static fv_cell *make_rows(int64_t nrows) {
    fv_cell *cells = fv__alloc((size_t)(nrows * COLUMNS) * sizeof *cells), *cell = cells;
    uint64_t state = 1;
    for (int64_t r = 0; r < nrows; r++, cell += COLUMNS) {
        cell[0].integer = r + 1;
        cell[1].real = (double)(random_bits(&state) >> 33) / 1000;
        cell[2].real = (double)(random_bits(&state) >> 11) * 0x1p-53;
        cell[3].real = (double)(random_bits(&state) % 100);
        cell[4].text = r % 3 ? "cancer" : "healthy";
        cell[5].integer = (int64_t)(random_bits(&state) % 1000);
    }
    return cells;
}

static fv_status write_rows(const fv_table_format *format, const char *path, const fv_cell *cells, int64_t nrows,
                            fv_error *error) {
    rows             r = { .base.next = next_rows, .cells = cells, .nrows = nrows };
    fv_table_options options = { .table = "rows", .key = { 1, 1 } };
    unlink(path);
    FV_TRY(format->write(path, path, &type, &options, &r.base, error));
    if (format->in_place) return FV_OK; /* a database is durable once it is committed */
    int fd;
    FV_TRY(fv__file_open_read(path, &fd, error));
    fv_status status = fv__file_sync(fd, path, error);
    close(fd);
    return status;
}

int main(int argc, char **argv) {
    const char            *path = argc > 1 ? argv[1] : "rows.csv";
    int64_t                nrows = argc > 2 ? atoll(argv[2]) : 1000000;
    const fv_table_format *format = fv__table_format_for(path);
    fv_error               error = { 0 };
    if (!format) {
        fprintf(stderr, "bench_tables: %s: no table format has this extension\n", path);
        return 2;
    }
    fv_cell  *cells = make_rows(nrows);
    fv_status status = write_rows(format, path, cells, FV_MIN(nrows, 1000), &error);
    double    start = fv__now(), used = fv__thread_cpu();
    if (status == FV_OK) status = write_rows(format, path, cells, nrows, &error);
    if (status == FV_OK)
        printf("%.6f %.6f\n", fv__now() - start, fv__thread_cpu() - used);
    else
        fprintf(stderr, "bench_tables: %s\n", error.message);
    free(cells);
    return status != FV_OK;
}
