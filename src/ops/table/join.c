/* join: two tables side by side, where a column of one equals a column of the other. */
#include "base/take.h"
#include "op/row_sorter.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *on;
    fv_choice   how;
} join;
enum { INNER, LEFT };

static const fv_param params[] = {
    FV_PARAM(join, on,
             .doc = "column that both tables have, such as \"animal\", or one of each, such as \"animal = id\"; if the "
                    "second table does not have the column, its column id is used. Several that must all agree stand side by "
                    "side: \"item, label\""),
    FV_PARAM(join, how, .def = "inner", .choices = "inner|left",
             .doc = "inner: only rows that have a match; left: all rows of the first table"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "left", FV_KIND_TABLE, .doc = "first table" },
                                   { "right", FV_KIND_TABLE, .doc = "table to put beside it" },
                                   FV_INPUT_END };

/* ---------------------------------------------------------------- columns */

enum { MOST_KEYS = 8, PART_BYTES = 16 << 20 /* of the second table that are held at a time */ };

typedef struct {
    int count;
    struct {
        int            left, right;
        fv_column_kind left_kind, right_kind; /* as which they are compared */
    } key[MOST_KEYS];
} keys;

static bool names_files(const fv_column *column) { return !strcmp(column->name, "item") || !strcmp(column->name, "path"); }

/* The words around "=", without blanks. */
static void split(const char *on, char *left, char *right, size_t size) {
    const char *equal = strchr(on, '=');
    on += strspn(on, " ");
    size_t n = equal ? (size_t)(equal - on) : strlen(on);
    while (n && on[n - 1] == ' ') n--;
    snprintf(left, size, "%.*s", (int)FV_MIN(n, size - 1), on);
    *right = 0;
    if (!equal) return;
    for (equal++; *equal == '=' || *equal == ' ';) equal++;
    for (n = strlen(equal); n && equal[n - 1] == ' ';) n--;
    snprintf(right, size, "%.*s", (int)FV_MIN(n, size - 1), equal);
}

static fv_status find_key(const char *on, const fv_table_type *a, const fv_table_type *b, keys *k, fv_error *error) {
    char left[64], right[64];
    int  n = k->count;
    if (n == MOST_KEYS) return fv_fail(error, FV_ERROR_USAGE, "on: at most %d columns can be compared", MOST_KEYS);
    split(on, left, right, sizeof left);
    FV_TRY(fv__table_find(a, "on", left, &k->key[n].left, error));
    if (!*right)
        snprintf(right, sizeof right, "%s", fv__table_column(b, left) < 0 && fv__table_column(b, "id") >= 0 ? "id" : left);
    FV_TRY(fv__table_find(b, "on", right, &k->key[n].right, error));
    fv_column_kind *left_kind = &k->key[n].left_kind, *right_kind = &k->key[n].right_kind;
    *left_kind = a->column[k->key[n].left].kind;
    *right_kind = b->column[k->key[n].right].kind;
    k->count++;
    if ((*left_kind == FV_COLUMN_TEXT) == (*right_kind == FV_COLUMN_TEXT)) return FV_OK;
    bool             of_left = *left_kind == FV_COLUMN_TEXT;
    const fv_column *text = of_left ? &a->column[k->key[n].left] : &b->column[k->key[n].right];
    if (!names_files(text))
        return fv_fail(error, FV_ERROR_USAGE, "on = \"%s\": %s and %s are compared, and only one of them is text", on, left,
                       right);
    *(of_left ? left_kind : right_kind) = FV_COLUMN_REAL; /* files that are numbered: 1.tif, 02.tif */
    return FV_OK;
}

static fv_status find_keys(const char *on, const fv_table_type *a, const fv_table_type *b, keys *k, fv_error *error) {
    k->count = 0;
    for (const char *p = on;; p++) {
        char   one[160];
        size_t n = strcspn(p, ",");
        snprintf(one, sizeof one, "%.*s", (int)FV_MIN(n, sizeof one - 1), p);
        FV_TRY(find_key(one, a, b, k, error));
        p += n;
        if (!*p) return FV_OK;
    }
}

static bool is_right_key(const keys *k, int column) {
    for (int n = 0; n < k->count; n++)
        if (k->key[n].right == column) return true;
    return false;
}

/* Without its partner a whole number is missing, which only a real one can be. */
static fv_column_kind kind_of(fv_column_kind kind, int how) {
    return how == LEFT && kind == FV_COLUMN_INTEGER ? FV_COLUMN_REAL : kind;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const join          *p = i->params;
    const fv_table_type *a = i->in[0]->table, *b = i->in[1]->table;
    fv_table_type       *type = fv__arena_alloc(i->arena, sizeof *type);
    keys                 k;
    FV_TRY(find_keys(p->on, a, b, &k, error));
    if (a->ncolumns + b->ncolumns - k.count > FV_MAX_COLUMNS)
        return fv_fail(error, FV_ERROR_USAGE, "the table would have %d columns; at most %d are possible",
                       a->ncolumns + b->ncolumns - k.count, FV_MAX_COLUMNS);
    *type = *a;
    for (int c = 0; c < b->ncolumns; c++) {
        if (is_right_key(&k, c)) continue;
        fv_column *column = &type->column[type->ncolumns];
        *column = (fv_column){ .kind = kind_of(b->column[c].kind, p->how.index) };
        snprintf(column->name, sizeof column->name, "%s", b->column[c].name);
        for (int n = 2; fv__table_column(type, column->name) >= 0; n++)
            snprintf(column->name, sizeof column->name, "%.34s_%d", b->column[c].name, n % 1000);
        type->ncolumns++;
    }
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = type, .items = i->in[0]->items };
    if (i->out->items && p->how.index == INNER) { /* items without a partner are left out */
        fv_item_names *some = fv__arena_alloc(i->arena, sizeof *some);
        *some = *i->out->items;
        some->all = false;
        i->out->items = some;
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- files that name items */

typedef struct {
    const char *file, *meant;
} alias; /* a name of an item's file, and what the joined column holds for it */

static int by_file(const void *a, const void *b) { return strcmp(((const alias *)a)->file, ((const alias *)b)->file); }

static const char *last_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Lists of samples name files as they like: a, a.tif or scans/a.tif. All of them mean the item. */
static int64_t list_aliases(const fv_item_names *items, const char *column, alias **out) {
    bool by_item = !strcmp(column, "item"), by_path = !strcmp(column, "path");
    *out = NULL;
    if (!items || (!by_item && !by_path)) return 0;
    alias *all = fv__alloc((size_t)(3 * items->count + 1) * sizeof *all);
    for (int64_t i = 0; i < items->count; i++) {
        const char *meant = by_item ? items->names[i] : items->paths[i];
        all[3 * i] = (alias){ items->names[i], meant };
        all[3 * i + 1] = (alias){ last_name(items->paths[i]), meant };
        all[3 * i + 2] = (alias){ items->paths[i], meant };
    }
    qsort(all, (size_t)(3 * items->count), sizeof *all, by_file);
    *out = all;
    return 3 * items->count;
}

/* The number that is the name of a file, whatever its folder and extension; missing if it is none. */
static fv_cell number_of(const char *name) {
    const size_t most = 15; /* digits that a real number holds exactly */
    const char  *last = name ? last_name(name) : "";
    size_t       n = strspn(last, "0123456789");
    bool         whole = n && n <= most && (!last[n] || last[n] == '.');
    return (fv_cell){ .real = whole ? (double)strtoll(last, NULL, 10) : NAN };
}

/* ---------------------------------------------------------------- rows */

typedef struct {
    const fv_table_type *a, *b;
    keys                 keys;
    int                  how;
    fv_loaded            right; /* a part of it that fits into memory, or all */
    int64_t              nleft, npairs, nright;
    char                 example[80], other[80]; /* of a key of the first table, of the second */
    int64_t             *order;                  /* rows of the right table by key, equal ones in their order */
    int64_t              nordered;
    fv_row_writer        rows;
    fv_table_type        partner; /* where there are several parts: the number of a row of the first table, and its partner */
    fv_row_sorter       *partners;
    const fv_cell       *next; /* the next one of these; NULL: none is left */
} joining;

/* Whole numbers are compared as such, so that large ones stay apart. */
static int compare(fv_column_kind x, fv_cell a, fv_column_kind y, fv_cell b) {
    if (x == y) return fv__cell_order(x, a, b);
    fv_cell left = { .real = fv__cell_number(x, a) }, right = { .real = fv__cell_number(y, b) };
    return fv__cell_order(FV_COLUMN_REAL, left, right);
}

static fv_cell *right_key(const joining *j, int64_t row, int n) {
    return &j->right.cell[row * j->b->ncolumns + j->keys.key[n].right];
}

static int by_key(const void *x, const void *y, void *context) {
    const joining *j = context;
    int64_t        a = *(const int64_t *)x, b = *(const int64_t *)y;
    for (int n = 0; n < j->keys.count; n++) {
        int order = fv__cell_order(j->keys.key[n].right_kind, *right_key(j, a, n), *right_key(j, b, n));
        if (order) return order;
    }
    return a < b ? -1 : a > b;
}

/* Keys of the second table that name an item's file become what the first table calls the item. */
static void name_items(const joining *j, int n, const fv_item_names *items) {
    alias  *all = NULL;
    bool    text = j->keys.key[n].left_kind == FV_COLUMN_TEXT;
    int64_t count = text ? list_aliases(items, j->a->column[j->keys.key[n].left].name, &all) : 0;
    for (int64_t r = 0; r < j->right.nrows && count; r++) {
        fv_cell     *key = right_key(j, r, n);
        alias        wanted = { key->text, NULL };
        const alias *found = key->text ? bsearch(&wanted, all, (size_t)count, sizeof *all, by_file) : NULL;
        if (found && (found == all || strcmp(found[-1].file, found->file) || !strcmp(found[-1].meant, found->meant)) &&
            (found == all + count - 1 || strcmp(found[1].file, found->file) || !strcmp(found[1].meant, found->meant)))
            key->text = found->meant; /* and no other item has a file of this name */
    }
    free(all);
}

static fv_cell compared(fv_column_kind kind, fv_column_kind as, fv_cell cell) {
    return kind == FV_COLUMN_TEXT && as != kind ? number_of(cell.text) : cell;
}

static void number_right(const joining *j, int n) {
    for (int64_t r = 0; r < j->right.nrows; r++) {
        fv_cell *key = right_key(j, r, n);
        *key = compared(j->b->column[j->keys.key[n].right].kind, j->keys.key[n].right_kind, *key);
    }
}

static bool right_missing(const joining *j, int64_t row) {
    for (int n = 0; n < j->keys.count; n++)
        if (fv__cell_missing(j->keys.key[n].right_kind, *right_key(j, row, n))) return true;
    return false;
}

/* Order of a row of the second table and the keys of one of the first. */
static int right_and_left(const joining *j, int64_t row, const fv_cell *wanted) {
    for (int n = 0; n < j->keys.count; n++) {
        int order = compare(j->keys.key[n].right_kind, *right_key(j, row, n), j->keys.key[n].left_kind, wanted[n]);
        if (order) return order;
    }
    return 0;
}

static fv_status order_right(joining *j, fv_error *error) {
    FV_TRY(FV_TAKE(j->order, (size_t)(j->right.nrows + 1) * sizeof *j->order, error));
    for (int64_t r = 0; r < j->right.nrows; r++)
        if (!right_missing(j, r)) j->order[j->nordered++] = r;
    qsort_r(j->order, (size_t)j->nordered, sizeof *j->order, by_key, j);
    return FV_OK;
}

/* One row of the result; right NULL: no partner. */
static fv_status put_row(joining *j, const fv_cell *left, const fv_cell *right, fv_error *error) {
    fv_cell *row;
    FV_TRY(fv__row_writer_next(&j->rows, &row, error));
    for (int c = 0; c < j->a->ncolumns; c++) fv__row_writer_copy(&j->rows, j->a->column[c].kind, row++, left[c]);
    for (int c = 0; c < j->b->ncolumns; c++) {
        fv_column_kind kind = j->b->column[c].kind;
        if (is_right_key(&j->keys, c)) continue;
        if (kind == FV_COLUMN_TEXT)
            fv__row_writer_text(&j->rows, row++, right ? right[c].text : NULL);
        else if (kind_of(kind, j->how) == FV_COLUMN_INTEGER)
            *row++ = right[c];
        else
            (row++)->real = right ? fv__cell_number(kind, right[c]) : NAN;
    }
    return FV_OK;
}

static void show(fv_column_kind kind, fv_cell cell, char *text, size_t size) {
    if (kind == FV_COLUMN_TEXT)
        snprintf(text, size, "\"%.60s\"", cell.text ? cell.text : "");
    else
        snprintf(text, size, "%.17g", fv__cell_number(kind, cell));
}

/* Not a single partner: the keys are not what was meant. */
static fv_status check_partners(const joining *j, fv_error *error) {
    if (j->npairs || !j->nleft || !j->nright) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT,
                   "on: no row has a partner; %s of the first table holds %s, for example, and %s of the second %s",
                   j->a->column[j->keys.key[0].left].name, j->example, j->b->column[j->keys.key[0].right].name, j->other);
}

/* What a row of the first table is looked for by; false: a value is missing. */
static bool keys_of(const joining *j, const fv_cell *left, fv_cell wanted[MOST_KEYS]) {
    bool whole = true;
    for (int n = 0; n < j->keys.count; n++) {
        int c = j->keys.key[n].left;
        wanted[n] = compared(j->a->column[c].kind, j->keys.key[n].left_kind, left[c]);
        whole = whole && !fv__cell_missing(j->keys.key[n].left_kind, wanted[n]);
    }
    return whole;
}

/* Calls `take` with each partner of a row in the part of the second table that is in memory. */
static fv_status each_partner(joining *j, const fv_cell                                                            *left,
                              fv_status (*take)(joining *, const fv_cell *, const fv_cell *, fv_error *), fv_error *error) {
    fv_cell wanted[MOST_KEYS];
    int64_t low = 0, high = keys_of(j, left, wanted) ? j->nordered : 0, end = high;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (right_and_left(j, j->order[middle], wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < end && !right_and_left(j, j->order[low], wanted); low++, j->npairs++)
        FV_TRY(take(j, left, j->right.cell + j->order[low] * j->b->ncolumns, error));
    return FV_OK;
}

static void note_left(joining *j, const fv_cell *left) {
    int first = j->keys.key[0].left;
    if (!j->nleft++) show(j->a->column[first].kind, left[first], j->example, sizeof j->example);
}

static fv_status join_row(void *context, const fv_cell *left, fv_error *error) {
    joining *j = context;
    int64_t  before = j->npairs;
    note_left(j, left);
    FV_TRY(each_partner(j, left, put_row, error));
    return j->npairs > before || j->how == INNER ? FV_OK : put_row(j, left, NULL, error);
}

/* ---------------------------------------------------------------- the second table, part by part */

typedef struct {
    fv_results  base;
    fv_results *whole;
    int64_t     first;
} part; /* some pieces of a table */

static fv_status get_piece(fv_results *results, int64_t index, const void **data, size_t *size, fv_error *error) {
    const part *p = (const part *)results;
    return p->whole->get(p->whole, p->first + index, data, size, error);
}

/* The pieces behind p that fit into memory together, at least one. */
static fv_status next_part(part *p, fv_error *error) {
    size_t bytes = 0;
    p->first += p->base.count;
    for (p->base.count = 0; p->first + p->base.count < p->whole->count && bytes < PART_BYTES; p->base.count++) {
        const void *data;
        size_t      size;
        FV_TRY(p->whole->get(p->whole, p->first + p->base.count, &data, &size, error));
        bytes += size;
    }
    return FV_OK;
}

static void forget_part(joining *j) {
    free(j->order);
    fv__loaded_release(&j->right);
    j->order = NULL;
    j->nordered = 0;
    j->right = (fv_loaded){ 0 };
}

static fv_status load_part(joining *j, part *p, const fv_item_names *items, fv_error *error) {
    forget_part(j);
    FV_TRY(fv__table_load(&p->base, j->b, &j->right, error));
    for (int n = 0; n < j->keys.count; n++) name_items(j, n, items);
    if (j->right.nrows && !j->nright)
        show(j->b->column[j->keys.key[0].right].kind, *right_key(j, 0, 0), j->other, sizeof j->other);
    for (int n = 0; n < j->keys.count; n++) number_right(j, n);
    j->nright += j->right.nrows;
    return order_right(j, error);
}

/* ---------------------------------------------------------------- a second table of several parts */

/* Partners are found part by part, and then sorted by the row of the first table to which they belong. */
static int by_left(const void *context, const fv_cell *a, const fv_cell *b) {
    (void)context;
    return a[0].integer < b[0].integer ? -1 : a[0].integer > b[0].integer;
}

static fv_status note_partner(joining *j, const fv_cell *left, const fv_cell *right, fv_error *error) {
    fv_cell row[FV_MAX_COLUMNS];
    int     n = 0;
    (void)left;
    row[n++].integer = j->nleft;
    for (int c = 0; c < j->b->ncolumns; c++)
        if (!is_right_key(&j->keys, c)) row[n++] = right[c];
    return fv__row_sorter_add(j->partners, row, error);
}

static fv_status find_partners(void *context, const fv_cell *left, fv_error *error) {
    joining *j = context;
    FV_TRY(each_partner(j, left, note_partner, error));
    j->nleft++;
    return FV_OK;
}

/* A row of the first table with the partners that were found for it. */
static fv_status put_partners(void *context, const fv_cell *left, fv_error *error) {
    joining *j = context;
    int64_t  number = j->nleft;
    bool     any = false;
    note_left(j, left);
    for (; j->next && j->next[0].integer == number; any = true) {
        fv_cell right[FV_MAX_COLUMNS];
        for (int c = 0, n = 1; c < j->b->ncolumns; c++)
            if (!is_right_key(&j->keys, c)) right[c] = j->next[n++];
        FV_TRY(put_row(j, left, right, error));
        FV_TRY(fv__row_sorter_next(j->partners, &j->next, NULL, error));
    }
    return any || j->how == INNER ? FV_OK : put_row(j, left, NULL, error);
}

static fv_status join_parts(joining *j, fv_finish *f, part *p, fv_error *error) {
    j->partner = (fv_table_type){ .ncolumns = 1, .column = { { "left", FV_COLUMN_INTEGER } } };
    for (int c = 0; c < j->b->ncolumns; c++)
        if (!is_right_key(&j->keys, c)) j->partner.column[j->partner.ncolumns++] = j->b->column[c];
    j->partners = fv__row_sorter_new(&j->partner, by_left, NULL);
    for (; p->base.count; j->nleft = 0) {
        FV_TRY(load_part(j, p, f->in[0]->items, error));
        FV_TRY(fv__table_each(f->table[0], j->a, find_partners, j, error));
        FV_TRY(next_part(p, error));
    }
    forget_part(j);
    FV_TRY(fv__row_sorter_next(j->partners, &j->next, NULL, error));
    return fv__table_each(f->table[0], j->a, put_partners, j, error);
}

static fv_status join_all(joining *j, fv_finish *f, fv_error *error) {
    part p = { .base.get = get_piece, .whole = f->table[1] };
    FV_TRY(next_part(&p, error));
    if (p.base.count < p.whole->count)
        FV_TRY(join_parts(j, f, &p, error));
    else {
        FV_TRY(load_part(j, &p, f->in[0]->items, error));
        FV_TRY(fv__table_each(f->table[0], j->a, join_row, j, error));
    }
    FV_TRY(check_partners(j, error));
    return fv__row_writer_flush(&j->rows, error);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const join *p = f->params;
    joining     j = { .a = f->in[0]->table, .b = f->in[1]->table, .how = p->how.index };
    FV_TRY(find_keys(p->on, j.a, j.b, &j.keys, error));
    fv__row_writer_init(&j.rows, f);
    fv_status status = join_all(&j, f, error);
    fv__row_writer_release(&j.rows);
    fv__row_sorter_free(j.partners);
    forget_part(&j);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns of left>", .doc = "unchanged" },
    { "<columns of right>", .doc = "all but the matched ones; a name that the first table has already gets a number" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(join) = {
    .name = "join",
    .family = "table",
    .brief = "put two tables side by side, matching rows by a column",
    .also = "merge, innerjoin",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(join),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc =
        "Each row of the first table is repeated for every row of the second that has the same value in the column. The "
        "order is that of the first table, then of the second. Missing values match nothing; if no row at all "
        "has a match, that is an error. Of a table of a collection, item and path match any name of the item's file: a, a.tif, "
        "scans/a.tif. Numbers match files that are numbered: 1 is 1.tif and 001.tif. Both tables may be larger than memory.",
    .example = "image = phantom(\"cells\", [200, 200])\n"
               "cells = label(image > 60)\n"
               "join(measure(cells, properties = \"voxels\"), measure(cells, image, properties = \"mean\"), on = \"label\")",
    .see = "filter group sort read_table",
    .columns = columns,
};
