/* keep: the labels whose row in a table satisfies a condition.
 *
 * The first pass looks at no voxel: its end decides from the table which labels stay. The second clears the others.
 */
#include "base/take.h"
#include "kernels/stretches.h"
#include "op/condition.h"
#include "op/reduce.h"
#include "op/scratch.h"
#include "op/table_rows.h"
#include <stdlib.h>

typedef struct {
    const char *condition;
} keep;

static const fv_param params[] = {
    FV_PARAM(keep, condition, .many = true,
             .doc = "condition on the row of a label, such as \"volume > 100 & mean < 80\": columns of the table, numbers, + "
                    "- * /, comparisons, ! & | (or the words not, and, or) and brackets"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "labels", FV_KIND_IMAGE, .doc = "label image; 0 is background" },
    { "table", FV_KIND_TABLE, .doc = "table with a column label, such as measure(labels) makes" },
    FV_INPUT_END,
};

static int label_column(const fv_table_type *table) {
    for (int i = 0; i < table->ncolumns; i++)
        if (!strcmp(table->column[i].name, "label") && table->column[i].kind == FV_COLUMN_INTEGER) return i;
    return -1;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *labels = &i->in[0]->image;
    fv_condition         condition;
    if (!fv_dtype_is_integer(labels->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "labels is %s; it must be an integer image, such as label() makes",
                       fv_dtype_name(labels->dtype));
    if (label_column(i->in[1]->table) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "the table has no column label; measure(labels) makes one");
    return fv__condition_parse(&condition, "condition", ((keep *)i->params)->condition, i->in[1]->table, error);
}

/* ---------------------------------------------------------------- deciding */

/* What stays: a bit for each label from first on, or where labels lie far apart a sorted list of them. */
typedef struct {
    int64_t first, count, listed;
} head;

typedef struct {
    int64_t *label, count, capacity;
    bool     sorted;
} list;

static fv_status add(list *l, int64_t label, fv_error *error) {
    if (l->count == l->capacity) {
        int64_t capacity = FV_MAX(2 * l->capacity, 1024);
        FV_TRY(FV_TAKE_MORE(l->label, (size_t)capacity * sizeof *l->label, error));
        l->capacity = capacity;
    }
    l->sorted = l->sorted && (!l->count || l->label[l->count - 1] < label);
    l->label[l->count++] = label;
    return FV_OK;
}

static int by_label(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

typedef struct {
    const fv_table_type *table;
    int                  label;
    fv_condition         condition;
    list                *list;
} choosing;

static fv_status look_at_row(void *context, const fv_cell *row, fv_error *error) {
    choosing *c = context;
    return fv__condition_holds(&c->condition, c->table, row) ? add(c->list, row[c->label].integer, error) : FV_OK;
}

static fv_status choose(fv_finish *f, list *l, fv_error *error) {
    const fv_table_type *table = f->in[1]->table;
    choosing             c = { .table = table, .label = label_column(table), .list = l };
    FV_TRY(fv__condition_parse(&c.condition, "condition", ((const keep *)f->params)->condition, table, error));
    FV_TRY(fv__table_each(f->table[1], table, look_at_row, &c, error));
    if (!l->sorted) qsort(l->label, (size_t)l->count, sizeof *l->label, by_label);
    return FV_OK;
}

static fv_status put(fv_finish *f, const list *l, fv_error *error) {
    uint64_t span = l->count ? (uint64_t)l->label[l->count - 1] - (uint64_t)l->label[0] + 1 : 0;
    head     h = { .first = l->count ? l->label[0] : 0, .count = l->count, .listed = span > 64 * (uint64_t)l->count };
    if (!h.listed) h.count = (int64_t)span;
    FV_TRY(f->put(f, 0, &h, sizeof h, error));
    if (h.listed) return f->put(f, 0, l->label, (size_t)l->count * sizeof *l->label, error);
    size_t    words = (size_t)(span + 63) / 64;
    uint64_t *bits;
    FV_TRY(FV_TAKE_ZEROED(bits, (words + 1) * sizeof *bits, error));
    for (int64_t i = 0; i < l->count; i++) {
        uint64_t place = (uint64_t)(l->label[i] - h.first);
        bits[place / 64] |= (uint64_t)1 << place % 64;
    }
    fv_status status = f->put(f, 0, bits, (words + 1) * sizeof *bits, error);
    free(bits);
    return status;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    list      l = { .sorted = true };
    fv_status status = choose(f, &l, error);
    if (status == FV_OK) status = put(f, &l, error);
    free(l.label);
    return status;
}

static void need_nothing(const fv_need *n, fv_region *in) {
    (void)n;
    fv__need_nothing(&in[0]);
}

/* ---------------------------------------------------------------- clearing */

static bool stays(const head *h, int64_t label) {
    const int64_t *listed = (const int64_t *)(h + 1);
    if (!h->listed) {
        uint64_t place = (uint64_t)label - (uint64_t)h->first;
        return place < (uint64_t)h->count && ((const uint64_t *)listed)[place / 64] >> place % 64 & 1;
    }
    int64_t low = 0, high = h->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (listed[middle] < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low < h->count && listed[low] == label;
}

static size_t scratch(const fv_need *n) { return (size_t)n->region.size[n->region.ndim - 1] * sizeof(fv_stretch); }

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *in = r->in[0];
    int             last = in->region.ndim - 1;
    size_t          size = fv_dtype_size(in->dtype), have;
    const void     *decided;
    fv_rows         rows;
    FV_TRY(r->results->get(r->results, 0, &decided, &have, error));
    for (fv__rows_begin(&rows, &in->region); fv__rows_next(&rows);) {
        const char *from = fv__block_at(in, rows.position);
        char       *to = fv__block_at(r->out, rows.position);
        fv_stretch *s = r->scratch;
        int64_t     count = fv__stretches(s, in->dtype, from, in->region.size[last]);
        memset(to, 0, (size_t)in->region.size[last] * size);
        for (int64_t i = 0; i < count; i++, s++)
            if (stays(decided, s->label))
                memcpy(to + (size_t)s->start * size, from + (size_t)s->start * size, (size_t)(s->end - s->start) * size);
    }
    return FV_OK;
}

static double cost(const fv_need *n) {
    (void)n;
    return 1.5;
}

static const fv_pass passes[] = { { .name = "decide", .need = need_nothing, .run = fv__run_nothing, .finish = finish },
                                  { .name = "clear", .scratch = scratch, .run = run },
                                  FV_PASS_END };

const fv_op FV_OP(keep) = {
    .name = "keep",
    .family = "segmentation",
    .brief = "keep the labels that satisfy a condition on their measurements",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(keep),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "Labels keep their numbers; relabel closes the gaps. Labels whose row does not satisfy the condition, or that "
           "have no row, become 0. If the table has several rows for a label, one that satisfies the condition is enough. "
           "Conditions are computed in float64. A comparison with nan is false.",
    .example = "image = phantom(\"cells\", [200, 200], noise = 0)\n"
               "cells = label(image > 100)\n"
               "write(keep(cells, measure(cells, image), \"voxels > 300 & mean < 180\"), \"some.tif\")",
    .see = "measure filter relabel remove_small",
};
