/* Samples whose units are the items of a collection. */
#include "exec/sampled_items.h"
#include "base/take.h"
#include <stdlib.h>

static const fv_item_names *all_of(const fv_gathered *from) { return from->of ? from->of : from->items; }

int64_t fv__sampled_items_population(const fv_gathered *from) { return all_of(from)->count; }

static fv_status load(fv_sampled_items *s, fv_error *error) {
    const int64_t *numbers = s->from->numbers;
    FV_TRY(FV_TAKE(s->end, (size_t)(s->from->count + 1) * sizeof *s->end, error));
    FV_TRY(FV_TAKE(s->part, (size_t)(s->population + 1) * sizeof *s->part, error));
    for (int64_t i = 0; i < s->population; i++) s->part[i] = numbers ? -1 : i;
    for (int64_t p = 0; p < s->from->count; p++) {
        if (numbers) s->part[numbers[p]] = p;
        FV_TRY(fv__gathered_rows(s->from, p, fv__loaded_add, &s->rows, error));
        s->end[p] = s->rows.nrows;
    }
    return FV_OK;
}

fv_status fv__sampled_items_load(fv_sampled_items *s, const fv_gathered *from, fv_error *error) {
    *s = (fv_sampled_items){ .from = from, .rows.type = from->type.table, .population = fv__sampled_items_population(from) };
    fv_status status = load(s, error);
    if (status != FV_OK) fv__sampled_items_release(s);
    return status;
}

void fv__sampled_items_release(fv_sampled_items *s) {
    fv__loaded_release(&s->rows);
    free(s->end);
    free(s->part);
    *s = (fv_sampled_items){ 0 };
}

int64_t fv__sampled_items_there(const fv_sampled_items *s, const int64_t *order) {
    int64_t n = 0;
    while (n < s->population && s->part[order[n]] >= 0) n++;
    return n;
}

void fv__sampled_items_rows(const fv_sampled_items *s, int64_t item, const void **data, size_t *size) {
    int64_t part = s->part[item], from = part ? s->end[part - 1] : 0, columns = s->rows.type->ncolumns;
    *data = s->rows.cell + from * columns;
    *size = (size_t)((s->end[part] - from) * columns) * sizeof *s->rows.cell;
}

static bool in_one_folder(const char *a, const char *b) {
    const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
    size_t      n = x ? (size_t)(x - a) : 0;
    return n == (y ? (size_t)(y - b) : 0) && !strncmp(a, b, n);
}

/* Items of a folder that follow each other are a part; there may be as many folders as items. Where all lie in one, their names
 * or the list that they come from may be in order, of animals or days. */
bool fv__sampled_items_strata(const fv_sampled_items *s, const int64_t *order, int64_t seen, fv_strata *strata) {
    const fv_item_names *all = all_of(s->from);
    int32_t             *part, count = 0;
    if (FV_TAKE(part, (size_t)(all->count + 1) * sizeof *part, NULL) != FV_OK) return false;
    for (int64_t i = 0; i < all->count; i++) {
        count += !i || !in_one_folder(all->paths[i - 1], all->paths[i]);
        part[i] = count - 1;
    }
    bool some = count > 1 ? fv__strata_of_parts(strata, part, all->count, count, order, seen)
                          : fv__strata_of_runs(strata, all->count, order, seen);
    free(part);
    return some;
}
