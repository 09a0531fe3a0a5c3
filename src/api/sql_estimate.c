/* Counts, sums and means of a table from a random part of its rows.
 *
 * The rows are cut into blocks of neighbouring row numbers, and blocks are drawn without replacement: rows of one block lie on
 * the same pages of the file, and may resemble each other. Of each block, SQLite gives count and sum of each value and group;
 * from these the estimates of chunks of images follow (op/interval.h).
 */
#include "api/sql_parts.h"
#include "exec/strata.h"
#include "op/format.h"
#include "op/interval.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_VALUES = 64, MOST_GROUPS = 4096, BLOCKS = 4096, LEAST_ROWS = 64 };

/* ---------------------------------------------------------------- the query's parts */

typedef struct part {
    const char *begin, *end;
} part;

typedef enum aggregate { NONE, COUNT, SUM, AVG } aggregate; /* none: a column that makes groups */

typedef struct item { /* of the list behind SELECT */
    part      text;   /* without its name */
    part      name;
    part      inside; /* of the brackets of an aggregate */
    aggregate function;
} item;

typedef struct query {
    part list, table, where, group, tail; /* tail: ORDER BY, LIMIT */
    int  nitems;
    item items[MOST_VALUES];
    int  ngroups, nvalues;
} query;

/* Behind a text in quotes or brackets of names; p itself where there is none. */
static const char *after_quoted(const char *p) {
    char close = *p == '[' ? ']' : *p;
    if (*p != '\'' && *p != '"' && *p != '`' && *p != '[') return p;
    const char *end = strchr(p + 1, close);
    return end ? end + 1 : p + strlen(p);
}

/* The next place outside of quotes and brackets where a word or a sign stands; end if there is none. */
static const char *find(const char *p, const char *end, const char *word) {
    size_t n = strlen(word);
    int    depth = 0;
    for (char before = ' '; p < end; before = *p++) {
        const char *skipped = after_quoted(p);
        if (skipped != p) {
            p = skipped - 1;
            continue;
        }
        if (*p == ')' && *word == ')' && !depth) return p;
        depth += (*p == '(') - (*p == ')');
        if (depth || (size_t)(end - p) < n || sqlite3_strnicmp(p, word, (int)n) != 0) continue;
        bool apart = !isalpha((unsigned char)*word) || (!isalnum((unsigned char)before) && before != '_' && before != '.' &&
                                                        !isalnum((unsigned char)p[n]) && p[n] != '_');
        if (apart) return p;
    }
    return end;
}

static part trimmed(const char *begin, const char *end) {
    while (begin < end && isspace((unsigned char)*begin)) begin++;
    while (end > begin && (isspace((unsigned char)end[-1]) || end[-1] == ';')) end--;
    return (part){ begin, end };
}

#define SHOWN(p) (int)((p).end - (p).begin), (p).begin

static fv_status refuse(const char *why, part at, fv_error *error) {
    return fv_fail(error, FV_ERROR_USAGE,
                   "%.*s: %s; what can be estimated is SELECT with count, sum, avg and total FROM one table, with WHERE and "
                   "GROUP BY",
                   SHOWN(at), why);
}

static fv_status parse_item(query *q, part text, fv_error *error) {
    static const char *const functions[] = { "count", "sum", "total", "avg", NULL };
    static const aggregate   meant[] = { COUNT, SUM, SUM, AVG };
    item                    *i = &q->items[q->nitems];
    const char              *as = find(text.begin, text.end, "AS");
    if (q->nitems == MOST_VALUES) return refuse("these are too many values", text, error);
    *i = (item){ .text = trimmed(text.begin, as) };
    i->name = as < text.end ? trimmed(as + 2, text.end) : i->text;
    if (i->name.end > i->name.begin + 1 && *i->name.begin == '"') i->name.begin++, i->name.end--;
    const char *open = memchr(i->text.begin, '(', (size_t)(i->text.end - i->text.begin));
    part        word = trimmed(i->text.begin, open ? open : i->text.end);
    for (int f = 0; functions[f]; f++) {
        size_t n = strlen(functions[f]);
        if ((size_t)(word.end - word.begin) != n || sqlite3_strnicmp(word.begin, functions[f], (int)n)) continue;
        i->function = meant[f];
        if (!open || find(open + 1, i->text.end, ")") != i->text.end - 1)
            return refuse("it is computed from a value; estimate that value alone", i->text, error);
        i->inside = trimmed(open + 1, i->text.end - 1);
        if (!sqlite3_strnicmp(i->inside.begin, "DISTINCT ", 9))
            return refuse("rows that were not seen may hold other values", i->text, error);
    }
    if (!i->function && open) return refuse("it cannot be told from some of the rows", i->text, error);
    if (i->function)
        q->nvalues++;
    else
        q->ngroups++;
    q->nitems++;
    return FV_OK;
}

static bool same(part a, part b) {
    return a.end - a.begin == b.end - b.begin && !sqlite3_strnicmp(a.begin, b.begin, (int)(a.end - a.begin));
}

/* The item that a term of GROUP BY or ORDER BY means: its text, its name or its place; NULL: none. */
static const item *meant_item(const query *q, part term) {
    for (int i = 0; i < q->nitems; i++) {
        char place[16];
        int  n = snprintf(place, sizeof place, "%d", i + 1);
        if (same(term, q->items[i].text) || same(term, q->items[i].name) || same(term, (part){ place, place + n }))
            return &q->items[i];
    }
    return NULL;
}

/* The columns that make groups must be those of SELECT: rows of the answer are told apart by them. */
static fv_status check_groups(const query *q, fv_error *error) {
    bool named[MOST_VALUES] = { 0 };
    int  n = 0;
    for (const char *p = q->group.begin; p < q->group.end;) {
        const char *comma = find(p, q->group.end, ",");
        const item *one = meant_item(q, trimmed(p, comma));
        if (!one || one->function) return refuse("what GROUP BY names must stand behind SELECT too", trimmed(p, comma), error);
        n += !named[one - q->items];
        named[one - q->items] = true;
        p = comma + 1;
    }
    return n == q->ngroups ? FV_OK : refuse("a column that is no sum must stand behind GROUP BY", q->list, error);
}

static fv_status parse(query *q, const char *text, fv_error *error) {
    part        all = trimmed(text, text + strlen(text));
    const char *end = all.end;
    *q = (query){ 0 };
    if (find(all.begin, end, "SELECT") != all.begin) return refuse("it does not begin with SELECT", all, error);
    static const char *const others[] = { "HAVING", "UNION", "JOIN", "DISTINCT", "OVER", "INTERSECT", "EXCEPT", NULL };
    for (int k = 0; others[k]; k++)
        if (find(all.begin, end, others[k]) < end) return refuse("it is more than sums over rows", all, error);
    const char *from = find(all.begin, end, "FROM"), *order = find(all.begin, end, "ORDER"),
               *limit = find(all.begin, end, "LIMIT");
    const char *tail = FV_MIN(order, limit), *group = FV_MIN(find(all.begin, tail, "GROUP"), tail);
    const char *where = FV_MIN(find(all.begin, group, "WHERE"), group);
    if (from == end) return refuse("it has no FROM", all, error);
    q->list = trimmed(all.begin + 6, from);
    q->table = trimmed(from + 4, where);
    q->where = where < group ? trimmed(where + 5, group) : (part){ where, where };
    q->group = group < tail ? trimmed(find(group, tail, "BY") + 2, tail) : (part){ tail, tail };
    q->tail = trimmed(tail, end);
    if (find(q->table.begin, q->table.end, ",") < q->table.end || find(q->table.begin, q->table.end, "(") < q->table.end)
        return refuse("it is not one table", q->table, error);
    for (const char *p = q->list.begin; p <= q->list.end;) {
        const char *comma = find(p, q->list.end, ",");
        FV_TRY(parse_item(q, trimmed(p, comma), error));
        p = comma + 1;
    }
    if (!q->nvalues) return refuse("there is nothing to count or sum", q->list, error);
    return check_groups(q, error);
}

/* ---------------------------------------------------------------- blocks of rows */

typedef struct group {
    char   *key;         /* its columns, apart by 0x1f: SQLite's type as a digit, then the text */
    double *count, *sum; /* by block that was seen and value */
} group;

typedef struct sampling {
    fv_sql              *sql;
    const fv_sql_within *within;
    query                query;
    char                *table; /* as SQLite is asked for it */
    double               began;
    int64_t              first, last, rows; /* row numbers, and how many of them a block has */
    int64_t              blocks, seen, room;
    int64_t             *order;
    const fv_sql_blocks *file;      /* whose row groups are the blocks; NULL: all rows are in the database */
    sqlite3_stmt        *statement; /* of a block */
    int                  ngroups;
    group               *groups;
    fv_strata            strata;
    bool                 stratified;
} sampling;

static fv_status failed(const sampling *s, fv_error *error) {
    return fv_fail(error, FV_ERROR_USAGE, "%s", sqlite3_errmsg(s->sql->handle));
}

/* A view that stands for the only table of a database has no row numbers: the table itself has. */
static char *real_table(const fv_sql *sql, part name) {
    for (size_t at = 0; at < sql->only.size;) {
        const char *stem = (const char *)sql->only.data + at, *table = stem + strlen(stem) + 1;
        if (strlen(stem) == (size_t)(name.end - name.begin) && !sqlite3_strnicmp(stem, name.begin, (int)strlen(stem)))
            return sqlite3_mprintf("\"%w\".\"%w\"", stem, table);
        at += strlen(stem) + strlen(table) + 2;
    }
    return sqlite3_mprintf("%.*s", SHOWN(name));
}

/* Row groups of a file, which are read as they are taken. */
static fv_status find_groups(sampling *s, fv_error *error) {
    if (!sqlite3_strlike("%SELECT%", s->query.list.begin, 0))
        return refuse("a SELECT inside another would see some of the rows only", s->query.list, error);
    if (!sqlite3_strlike("%rowid%", s->query.list.begin, 0))
        return refuse("rows of a Parquet file have no rowid", s->query.list, error);
    s->blocks = s->file->reader->nblocks;
    s->order = fv__sampling_order(s->within->seed, s->blocks);
    return FV_OK;
}

/* The name of a table without its schema, its quotes and another name that follows. */
static part bare_name(part name) {
    if (name.end - name.begin > 5 && !sqlite3_strnicmp(name.begin, "main.", 5)) name.begin += 5;
    const char *quoted = after_quoted(name.begin), *p = name.begin;
    if (quoted != name.begin) return (part){ name.begin + 1, quoted - 1 };
    while (p < name.end && !isspace((unsigned char)*p)) p++;
    return (part){ name.begin, p };
}

static const fv_sql_blocks *file_of(const fv_sql *sql, part name) {
    name = bare_name(name);
    for (int i = 0; i < sql->nblocks; i++)
        if (strlen(sql->blocks[i].name) == (size_t)(name.end - name.begin) &&
            !sqlite3_strnicmp(sql->blocks[i].name, name.begin, (int)(name.end - name.begin)))
            return &sql->blocks[i];
    return NULL;
}

static fv_status find_blocks(sampling *s, fv_error *error) {
    sqlite3_stmt *statement = NULL;
    char         *text = /* both in one SELECT would read all rows */
        sqlite3_mprintf("SELECT (SELECT min(rowid) FROM %s), (SELECT max(rowid) FROM %s)", s->table, s->table);
    s->sql->guarded = true;
    int code = sqlite3_prepare_v2(s->sql->handle, text, -1, &statement, NULL);
    sqlite3_free(text);
    if (code != SQLITE_OK) return refuse(sqlite3_errmsg(s->sql->handle), s->query.table, error);
    bool row = sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_INTEGER;
    s->first = sqlite3_column_int64(statement, 0);
    s->last = sqlite3_column_int64(statement, 1);
    sqlite3_finalize(statement);
    double numbers = row ? (double)s->last - (double)s->first + 1 : 0;
    s->rows = (int64_t)FV_MAX(ceil(numbers / BLOCKS), LEAST_ROWS);
    s->blocks = (int64_t)ceil(numbers / (double)s->rows);
    s->order = fv__sampling_order(s->within->seed, s->blocks);
    return FV_OK;
}

static fv_status prepare(sampling *s, fv_error *error) {
    const query *q = &s->query;
    fv_bytes     text = { 0 };
    fv__bytes_printf(&text, "SELECT ");
    for (int i = 0; i < q->nitems; i++)
        if (!q->items[i].function) fv__bytes_printf(&text, "%.*s, ", SHOWN(q->items[i].text));
    for (int i = 0, n = 0; i < q->nitems; i++) {
        const item *one = &q->items[i];
        if (!one->function) continue;
        bool whole = *one->inside.begin == '*';
        fv__bytes_printf(&text, "%scount(%.*s), ", n++ ? ", " : "", SHOWN(one->inside));
        if (whole || one->function == COUNT)
            fv__bytes_printf(&text, "0");
        else
            fv__bytes_printf(&text, "total(%.*s)", SHOWN(one->inside));
    }
    fv__bytes_printf(&text, " FROM %s WHERE rowid BETWEEN ?1 AND ?2", s->table);
    if (q->where.end > q->where.begin) fv__bytes_printf(&text, " AND (%.*s)", SHOWN(q->where));
    for (int g = 0; g < q->ngroups; g++) fv__bytes_printf(&text, "%s %d", g ? "," : " GROUP BY", g + 1);
    int code = sqlite3_prepare_v2(s->sql->handle, (char *)text.data, -1, &s->statement, NULL);
    fv__bytes_release(&text);
    return code == SQLITE_OK ? FV_OK : failed(s, error);
}

static group *group_of(sampling *s, const char *key) {
    for (int g = 0; g < s->ngroups; g++)
        if (!strcmp(s->groups[g].key, key)) return &s->groups[g];
    if (s->ngroups == MOST_GROUPS) return NULL;
    group *made = &s->groups[s->ngroups++];
    size_t values = (size_t)(s->room * s->query.nvalues + 1);
    *made = (group){ strdup(key), fv__calloc(values * sizeof(double)), fv__calloc(values * sizeof(double)) };
    return made;
}

static void make_room(sampling *s) {
    if (s->seen < s->room) return;
    int64_t before = s->room * s->query.nvalues;
    s->room = 2 * s->room + 16;
    for (int g = 0; g < s->ngroups; g++) {
        double **columns[] = { &s->groups[g].count, &s->groups[g].sum };
        for (int k = 0; k < 2; k++) {
            double *more = fv__calloc((size_t)(s->room * s->query.nvalues + 1) * sizeof *more);
            memcpy(more, *columns[k], (size_t)before * sizeof *more);
            free(*columns[k]);
            *columns[k] = more;
        }
    }
}

/* The type, then the value as SQL has it. */
static void put_key(fv_bytes *key, sqlite3_stmt *statement, int c) {
    int    kind = sqlite3_column_type(statement, c);
    double real = sqlite3_column_double(statement, c);
    if (kind == SQLITE_FLOAT && isinf(real))
        fv__bytes_printf(key, "%d%s", kind, real < 0 ? "-9e999" : "9e999");
    else if (kind == SQLITE_FLOAT)
        fv__bytes_printf(key, "%d%.17g", kind, real);
    else if (kind == SQLITE_NULL)
        fv__bytes_printf(key, "%d", kind);
    else
        fv__bytes_printf(key, "%d%s", kind, (const char *)sqlite3_column_text(statement, c));
}

static fv_status take_block(sampling *s, fv_error *error) {
    uint64_t start = (uint64_t)s->first + (uint64_t)s->order[s->seen] * (uint64_t)s->rows;
    uint64_t rest = FV_MIN((uint64_t)s->last - start, (uint64_t)s->rows - 1);
    if (s->file) { /* all rows of the table are of this block */
        start = (uint64_t)INT64_MIN;
        rest = UINT64_MAX;
    }
    fv_bytes key = { 0 };
    int      code;
    make_room(s);
    sqlite3_reset(s->statement);
    if (s->file) FV_TRY(fv__sql_load_block(s->sql, s->file, s->order[s->seen], error));
    sqlite3_bind_int64(s->statement, 1, (int64_t)start);
    sqlite3_bind_int64(s->statement, 2, (int64_t)(start + rest));
    while ((code = sqlite3_step(s->statement)) == SQLITE_ROW) {
        fv__bytes_clear(&key);
        for (int c = 0; c < s->query.ngroups; c++) {
            if (c) fv__bytes_append(&key, "\x1f", 1);
            put_key(&key, s->statement, c);
        }
        fv__bytes_append(&key, "", 1);
        group *g = group_of(s, (const char *)key.data);
        if (!g) break;
        for (int v = 0; v < s->query.nvalues; v++) {
            g->count[s->seen * s->query.nvalues + v] = sqlite3_column_double(s->statement, s->query.ngroups + 2 * v);
            g->sum[s->seen * s->query.nvalues + v] = sqlite3_column_double(s->statement, s->query.ngroups + 2 * v + 1);
        }
    }
    fv__bytes_release(&key);
    if (code == SQLITE_ROW)
        return fv_fail(error, FV_ERROR_USAGE, "there are more than %d groups, too many to be estimated", MOST_GROUPS);
    if (code != SQLITE_DONE) return failed(s, error);
    s->seen++;
    return FV_OK;
}

/* ---------------------------------------------------------------- estimates */

/* Rows of one item, group or day often follow each other: parts of the table are strata. */
static void find_strata(sampling *s) { s->stratified = fv__strata_of_runs(&s->strata, s->blocks, s->order, s->seen); }

static aggregate function_of(const query *q, int v) {
    for (int i = 0;; i++)
        if (q->items[i].function != NONE && !v--) return q->items[i].function;
}

static fv_status estimate(const sampling *s, const group *g, int v, double *x, fv_interval *e, fv_error *error) {
    aggregate function = function_of(&s->query, v);
    int64_t   values = (int64_t)s->ngroups * s->query.nvalues;
    double   *y = x + s->seen;
    bool      mean = function == AVG, count = function == COUNT;

    const fv_sampling asked = { .error = s->within->error };
    fv_sample         sample = { .seen = s->seen,
                                 .population = s->blocks,
                                 .confidence = s->within->confidence,
                                 .chosen = asked.error > 0 ? &asked : NULL,
                                 .stratum = s->stratified ? s->strata.stratum : NULL,
                                 .of_stratum = s->strata.chunks,
                                 .strata = s->strata.count,
                                 .seed = s->within->seed };
    if (s->within->joint) sample.confidence = 1 - (1 - sample.confidence) / (double)values;
    double all = 0, in_all = 0;
    for (int64_t i = 0; i < s->seen; i++) {
        double n = g->count[i * s->query.nvalues + v], sum = g->sum[i * s->query.nvalues + v];
        x[i] = mean ? n : 1;
        y[i] = count ? n : sum;
        all += n;
        in_all += y[i];
    }
    *e = (fv_interval){ .seen = s->seen, .population = s->blocks, .confidence = s->within->confidence };
    if (s->seen == s->blocks) {
        e->value = e->low = e->high = count ? all : !all ? NAN : mean ? in_all / all : in_all;
        snprintf(e->method, sizeof e->method, "all rows");
        return FV_OK;
    }
    FV_TRY(fv__estimate_ratio(&sample, x, y, e, error));
    if (!mean) fv__interval_scale(e, (double)s->blocks);
    return FV_OK;
}

static fv_status good_enough(sampling *s, bool *good, fv_error *error) {
    fv_sampling asked = { .error = s->within->error };
    double     *room = fv__alloc((size_t)(2 * s->seen) * sizeof *room);
    fv_status   status = FV_OK;
    *good = s->ngroups > 0;
    find_strata(s);
    for (int g = 0; g < s->ngroups && *good && status == FV_OK; g++)
        for (int v = 0; v < s->query.nvalues && *good && status == FV_OK; v++) {
            fv_interval e;
            status = estimate(s, &s->groups[g], v, room, &e, error);
            *good = fv__sampling_reached(&asked, &e);
        }
    free(room);
    return status;
}

static fv_status sample_by_error(sampling *s, fv_error *error) {
    for (int64_t size = 0; s->seen < s->blocks;) {
        bool good = false;
        size = fv__sampling_next(size, s->blocks);
        while (s->seen < size) FV_TRY(take_block(s, error));
        if (s->seen < s->blocks) FV_TRY(good_enough(s, &good, error));
        if (good) return FV_OK;
    }
    return FV_OK;
}

/* What is told at the end takes time as well: the resampling of each value. */
static fv_status sample_by_time(sampling *s, fv_error *error) {
    const double resampling = 1.2e-5; /* seconds a block */
    double       start = fv__now();
    while (s->seen < s->blocks) {
        double now = fv__now(), each = s->seen ? (now - start) / (double)s->seen : 0;
        double resampled = s->seen < 1024 ? (double)s->seen : 0;
        if (s->seen && now - s->began + each + resampling * resampled * s->ngroups * s->query.nvalues > s->within->time) break;
        FV_TRY(take_block(s, error));
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- the answer, as a table of its own */

#define ANSWER "fovea_estimates"

static fv_status create(const sampling *s, fv_error *error) {
    const query *q = &s->query;
    fv_bytes     text = { 0 };
    for (int i = 0; i < q->nitems; i++) {
        const char *const ends[] = { "", "_low", "_high" };
        for (int k = 0; k < (q->items[i].function ? 3 : 1); k++) {
            char *name = sqlite3_mprintf("%.*s%s", SHOWN(q->items[i].name), ends[k]);
            char *column = sqlite3_mprintf("%s\"%w\"", text.size ? ", " : "", name);
            fv__bytes_printf(&text, "%s", column);
            sqlite3_free(column);
            sqlite3_free(name);
        }
    }
    fv_status status = fv__sql_execute(
        s->sql, "--within",
        sqlite3_mprintf("CREATE TEMP TABLE " ANSWER " (%s, confidence, seen, blocks, method)", (char *)text.data), error);
    fv__bytes_release(&text);
    return status;
}

static fv_status put_group(const sampling *s, const group *g, double *room, fv_error *error) {
    const query *q = &s->query;
    fv_bytes     text = { 0 };
    const char  *key = g->key;
    fv_interval  e;
    fv_status    status = FV_OK;
    for (int i = 0, v = 0; i < q->nitems && status == FV_OK; i++) {
        char *cells;
        if (!q->items[i].function) {
            int n = (int)strcspn(key, "\x1f");
            int kind = *key - '0';
            cells = kind == SQLITE_NULL                              ? sqlite3_mprintf("NULL, ")
                    : kind == SQLITE_INTEGER || kind == SQLITE_FLOAT ? sqlite3_mprintf("%.*s, ", n - 1, key + 1)
                                                                     : sqlite3_mprintf("%.*Q, ", n - 1, key + 1);
            key += n + (key[n] == '\x1f');
        } else {
            status = estimate(s, g, v++, room, &e, error);
            if (q->items[i].function == COUNT) e.low = FV_MAX(e.low, 0);
            cells = isnan(e.value) ? sqlite3_mprintf("NULL, NULL, NULL, ")
                    : isnan(e.low) ? sqlite3_mprintf("%!.17g, NULL, NULL, ", e.value)
                                   : sqlite3_mprintf("%!.17g, %!.17g, %!.17g, ", e.value, e.low, e.high);
        }
        fv__bytes_printf(&text, "%s", cells);
        sqlite3_free(cells);
    }
    if (status == FV_OK)
        status = fv__sql_execute(s->sql, "--within",
                                 sqlite3_mprintf("INSERT INTO temp." ANSWER " VALUES (%s%!.17g, %lld, %lld, %Q)",
                                                 (char *)text.data, e.confidence, e.seen, e.population, e.method),
                                 error);
    fv__bytes_release(&text);
    return status;
}

/* The terms of ORDER BY as columns of the answer, in which aggregates are columns and places are others. */
static void put_tail(fv_bytes *text, const query *q) {
    const char *limit = find(q->tail.begin, q->tail.end, "LIMIT"), *by = find(q->tail.begin, limit, "BY");
    for (const char *p = FV_MIN(by + 2, limit); p < limit;) {
        const char *comma = find(p, limit, ","), *way = FV_MIN(find(p, comma, "ASC"), find(p, comma, "DESC"));
        const item *one = meant_item(q, trimmed(p, way));
        char       *name = one ? sqlite3_mprintf("%.*s", SHOWN(one->name)) : sqlite3_mprintf("%.*s", SHOWN(trimmed(p, way)));
        char       *term = sqlite3_mprintf(one ? "\"%w\"" : "%s", name);
        fv__bytes_printf(text, "%s %s %.*s", p == by + 2 ? " ORDER BY" : ",", term, SHOWN(trimmed(way, comma)));
        sqlite3_free(term);
        sqlite3_free(name);
        p = comma + 1;
    }
    fv__bytes_printf(text, " %.*s", SHOWN(trimmed(limit, q->tail.end)));
}

static fv_status answer(sampling *s, fv_error *error) {
    double *room = fv__alloc((size_t)(2 * s->seen + 1) * sizeof *room);
    s->sql->guarded = false;
    find_strata(s);
    fv_status status = create(s, error);
    if (!s->query.ngroups) group_of(s, ""); /* SQL has this row even where there are no rows */
    for (int g = 0; g < s->ngroups && status == FV_OK; g++) status = put_group(s, &s->groups[g], room, error);
    free(room);
    if (status != FV_OK) return status;
    fv_bytes text = { 0 };
    fv__bytes_printf(&text, "SELECT * FROM temp." ANSWER);
    if (s->query.tail.end > s->query.tail.begin)
        put_tail(&text, &s->query);
    else if (s->query.ngroups)
        fv__bytes_printf(&text, " ORDER BY 1");
    status = fv_sql_query(s->sql, (char *)text.data, error);
    fv__bytes_release(&text);
    return status;
}

fv_status fv_sql_estimate(fv_sql *sql, const char *text, const fv_sql_within *within, fv_error *error) {
    sampling s = { .sql = sql, .within = within, .began = fv__now() };
    if (sql->nfiles) FV_TRY(fv__sql_copy_files(sql, error)); /* some rows are asked for, by their numbers */
    FV_TRY(fv_sql_query(sql, text, error));                  /* what is wrong with the query itself */
    FV_TRY(parse(&s.query, text, error));
    s.table = real_table(sql, s.query.table);
    s.groups = fv__calloc(MOST_GROUPS * sizeof *s.groups);
    s.file = file_of(sql, s.query.table);
    fv_status status = s.file ? find_groups(&s, error) : find_blocks(&s, error);
    if (status == FV_OK) status = prepare(&s, error);
    if (status == FV_OK) status = (within->time > 0 ? sample_by_time : sample_by_error)(&s, error);
    sqlite3_finalize(s.statement);
    if (status == FV_OK) status = answer(&s, error);
    for (int g = 0; g < s.ngroups; g++) {
        free(s.groups[g].key);
        free(s.groups[g].count);
        free(s.groups[g].sum);
    }
    free(s.groups);
    fv__strata_release(&s.strata);
    free(s.order);
    sqlite3_free(s.table);
    return status;
}
