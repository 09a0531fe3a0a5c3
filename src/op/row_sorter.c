/* Rows of a table in another order; see row_sorter.h.
 *
 * A row in a run: the bytes of what follows (int64), its number, its cells, in which a text is the offset of its bytes from the
 * first cell (0: missing), and the texts, each ended by NUL; padded to 8 bytes.
 */
#include "op/row_sorter.h"
#include "base/file.h"
#include "base/take.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RUN_BYTES = 8 << 20, WINDOW_BYTES = 1 << 16, HEAD = 2 * sizeof(int64_t) };

typedef struct {
    int64_t  offset, end; /* of what is not in the window yet */
    uint8_t *window;
    size_t   at, have, room;
    fv_cell *row; /* the next one, NULL: none is left */
    int64_t  number;
} run;

struct fv_row_sorter {
    const fv_table_type *type;
    fv_row_order         order;
    const void          *context;
    int64_t              count; /* rows added so far */
    fv_bytes             held;  /* rows of the run under way */
    fv_bytes             index; /* their offsets */
    size_t               most;  /* bytes of a row */
    int                  fd;
    int64_t              size; /* of the file */
    fv_bytes             written;
    run                 *runs, **heap;
    int64_t              nruns, live, taken;
    bool                 open; /* rows are being taken out */
};

fv_row_sorter *fv__row_sorter_new(const fv_table_type *type, fv_row_order order, const void *context) {
    fv_row_sorter *s = fv__calloc(sizeof *s);
    s->type = type;
    s->order = order;
    s->context = context;
    s->fd = -1;
    return s;
}

void fv__row_sorter_free(fv_row_sorter *s) {
    if (!s) return;
    if (s->fd >= 0) close(s->fd);
    for (int64_t i = 0; i < s->nruns; i++) free(s->runs[i].window);
    free(s->runs);
    free(s->heap);
    fv__bytes_release(&s->held);
    fv__bytes_release(&s->index);
    fv__bytes_release(&s->written);
    free(s);
}

/* ---------------------------------------------------------------- a run in memory */

static int by_number(const fv_row_sorter *s, const fv_cell *a, int64_t x, const fv_cell *b, int64_t y) {
    int order = s->order ? s->order(s->context, a, b) : 0;
    return order ? order : x < y ? -1 : x > y;
}

static int64_t number_at(const uint8_t *row) {
    int64_t number;
    memcpy(&number, row + sizeof number, sizeof number);
    return number;
}

static fv_cell *cells_at(uint8_t *row) { return (fv_cell *)(row + HEAD); }

/* Offsets of texts become pointers. */
static void point_texts(const fv_table_type *type, fv_cell *cells) {
    for (int c = 0; c < type->ncolumns; c++)
        if (type->column[c].kind == FV_COLUMN_TEXT)
            cells[c].text = cells[c].integer ? (const char *)cells + cells[c].integer : NULL;
}

static void unpoint_texts(const fv_table_type *type, fv_cell *cells) {
    for (int c = 0; c < type->ncolumns; c++)
        if (type->column[c].kind == FV_COLUMN_TEXT) cells[c].integer = cells[c].text ? cells[c].text - (const char *)cells : 0;
}

static int in_order(const void *a, const void *b, void *context) {
    fv_row_sorter *s = context;
    uint8_t       *x = s->held.data + *(const size_t *)a, *y = s->held.data + *(const size_t *)b;
    return by_number(s, cells_at(x), number_at(x), cells_at(y), number_at(y));
}

static void sort_held(fv_row_sorter *s) {
    size_t n = s->index.size / sizeof(size_t);
    for (size_t i = 0; i < n; i++) point_texts(s->type, cells_at(s->held.data + ((size_t *)s->index.data)[i]));
    if (n) qsort_r(s->index.data, n, sizeof(size_t), in_order, s);
}

static fv_status write_run(fv_row_sorter *s, fv_error *error) {
    size_t  n = s->index.size / sizeof(size_t);
    int64_t start = s->size;
    sort_held(s);
    if (s->fd < 0) FV_TRY(fv__file_open_nameless(0, &s->fd, error));
    for (size_t i = 0; i < n; i++) {
        uint8_t *row = s->held.data + ((size_t *)s->index.data)[i];
        int64_t  bytes;
        memcpy(&bytes, row, sizeof bytes);
        unpoint_texts(s->type, cells_at(row));
        fv__bytes_append(&s->written, row, (size_t)bytes + sizeof bytes);
        if (s->written.size < WINDOW_BYTES && i + 1 < n) continue;
        FV_TRY(fv__file_write_at(s->fd, s->written.data, s->written.size, s->size, fv__file_scratch(), error));
        s->size += (int64_t)s->written.size;
        fv__bytes_clear(&s->written);
    }
    s->runs = fv__realloc(s->runs, (size_t)(s->nruns + 1) * sizeof *s->runs);
    s->runs[s->nruns++] = (run){ .offset = start, .end = s->size };
    fv__bytes_clear(&s->held);
    fv__bytes_clear(&s->index);
    return FV_OK;
}

fv_status fv__row_sorter_add_numbered(fv_row_sorter *s, const fv_cell *row, int64_t number, fv_error *error) {
    size_t  width = (size_t)s->type->ncolumns * sizeof *row, at = s->held.size;
    int64_t bytes = 0;
    FV_TRY(fv__bytes_need(&s->held, HEAD + width, error));
    fv__bytes_append(&s->held, &bytes, sizeof bytes);
    fv__bytes_append(&s->held, &number, sizeof number);
    fv__bytes_append(&s->held, row, width);
    for (int c = 0; c < s->type->ncolumns; c++) {
        if (s->type->column[c].kind != FV_COLUMN_TEXT) continue;
        int64_t place = row[c].text ? (int64_t)(s->held.size - at - HEAD) : 0;
        if (row[c].text) fv__bytes_append(&s->held, row[c].text, strlen(row[c].text) + 1);
        cells_at(s->held.data + at)[c].integer = place;
    }
    while (s->held.size % 8) fv__bytes_append(&s->held, "", 1);
    bytes = (int64_t)(s->held.size - at - sizeof bytes);
    memcpy(s->held.data + at, &bytes, sizeof bytes);
    fv__bytes_append(&s->index, &at, sizeof at);
    s->most = FV_MAX(s->most, (size_t)bytes + sizeof bytes);
    s->count++;
    return s->held.size + s->index.size < RUN_BYTES ? FV_OK : write_run(s, error);
}

fv_status fv__row_sorter_add(fv_row_sorter *s, const fv_cell *row, fv_error *error) {
    return fv__row_sorter_add_numbered(s, row, s->count, error);
}

static fv_status add_row(void *context, const fv_cell *row, fv_error *error) { return fv__row_sorter_add(context, row, error); }

fv_status fv__row_sorter_fill(fv_row_sorter *s, fv_results *pieces, fv_error *error) {
    return fv__table_each(pieces, s->type, add_row, s, error);
}

/* ---------------------------------------------------------------- merging the runs */

/* The next row of a run into its window. */
static fv_status advance(fv_row_sorter *s, run *r, fv_error *error) {
    int64_t bytes = 0;
    if (r->have - r->at < s->most && r->offset < r->end) {
        memmove(r->window, r->window + r->at, r->have - r->at);
        r->have -= r->at;
        r->at = 0;
        size_t more = (size_t)FV_MIN((int64_t)(r->room - r->have), r->end - r->offset);
        FV_TRY(fv__file_read_at(s->fd, r->window + r->have, more, r->offset, fv__file_scratch(), error));
        r->have += more;
        r->offset += (int64_t)more;
    }
    r->row = NULL;
    if (r->at == r->have) return FV_OK;
    memcpy(&bytes, r->window + r->at, sizeof bytes);
    r->number = number_at(r->window + r->at);
    r->row = cells_at(r->window + r->at);
    point_texts(s->type, r->row);
    r->at += (size_t)bytes + sizeof bytes;
    return FV_OK;
}

static void sift(fv_row_sorter *s, int64_t root) {
    for (int64_t child; (child = 2 * root + 1) < s->live; root = child) {
        run **h = s->heap;
        if (child + 1 < s->live && by_number(s, h[child + 1]->row, h[child + 1]->number, h[child]->row, h[child]->number) < 0)
            child++;
        if (by_number(s, h[root]->row, h[root]->number, h[child]->row, h[child]->number) <= 0) return;
        run *swap = h[root];
        h[root] = h[child];
        h[child] = swap;
    }
}

static fv_status open_runs(fv_row_sorter *s, fv_error *error) {
    if (s->index.size) FV_TRY(write_run(s, error));
    fv__bytes_release(&s->held);
    fv__bytes_release(&s->index);
    fv__bytes_release(&s->written);
    FV_TRY(FV_TAKE(s->heap, (size_t)s->nruns * sizeof *s->heap, error));
    for (int64_t i = 0; i < s->nruns; i++) {
        run *r = &s->runs[i];
        r->room = FV_MAX(WINDOW_BYTES, s->most);
        FV_TRY(FV_TAKE(r->window, r->room, error));
        FV_TRY(advance(s, r, error));
        s->heap[s->live++] = r;
    }
    for (int64_t i = s->live / 2 - 1; i >= 0; i--) sift(s, i);
    return FV_OK;
}

/* The row that was given last lies in the window of the run at the top, which moves on only now. */
static fv_status next_of_runs(fv_row_sorter *s, const fv_cell **row, int64_t *number, fv_error *error) {
    if (s->taken++) {
        FV_TRY(advance(s, s->heap[0], error));
        if (!s->heap[0]->row) s->heap[0] = s->heap[--s->live];
        sift(s, 0);
    }
    *row = s->live ? s->heap[0]->row : NULL;
    if (number && s->live) *number = s->heap[0]->number;
    return FV_OK;
}

fv_status fv__row_sorter_next(fv_row_sorter *s, const fv_cell **row, int64_t *number, fv_error *error) {
    if (!s->open) {
        s->open = true;
        if (s->nruns)
            FV_TRY(open_runs(s, error));
        else
            sort_held(s);
    }
    *row = NULL;
    if (s->nruns) return s->taken && !s->live ? FV_OK : next_of_runs(s, row, number, error);
    if (s->taken == (int64_t)(s->index.size / sizeof(size_t))) return FV_OK;
    uint8_t *held = s->held.data + ((size_t *)s->index.data)[s->taken++];
    *row = cells_at(held);
    if (number) *number = number_at(held);
    return FV_OK;
}

/* ---------------------------------------------------------------- orders by columns */

fv_status fv__row_keys_parse(fv_row_keys *keys, const char *parameter, const char *text, bool signs, const fv_table_type *type,
                             fv_error *error) {
    *keys = (fv_row_keys){ .type = type };
    for (const char *p = text ? text : ""; *p;) {
        char word[64];
        p += strspn(p, " ");
        bool minus = signs && *p == '-';
        p += minus;
        size_t n = strcspn(p, ","), length = n;
        while (length && p[length - 1] == ' ') length--;
        snprintf(word, sizeof word, "%.*s", (int)FV_MIN(length, sizeof word - 1), p);
        if (!length && !keys->count && !p[n] && !minus) return FV_OK;
        if (keys->count == FV_MAX_COLUMNS)
            return fv_fail(error, FV_ERROR_USAGE, "%s = \"%s\": too many columns", parameter, text);
        keys->key[keys->count].descending = minus;
        FV_TRY(fv__table_find(type, parameter, word, &keys->key[keys->count].column, error));
        keys->count++;
        p += n + (p[n] == ',');
    }
    return FV_OK;
}

int fv__row_keys_order(const void *context, const fv_cell *a, const fv_cell *b) {
    const fv_row_keys *keys = context;
    for (int k = 0; k < keys->count; k++) {
        int            c = keys->key[k].column;
        fv_column_kind kind = keys->type->column[c].kind;
        int            order = fv__cell_order(kind, a[c], b[c]);
        bool           missing = fv__cell_missing(kind, a[c]) || fv__cell_missing(kind, b[c]);
        if (order) return keys->key[k].descending && !missing ? -order : order;
    }
    return 0;
}
