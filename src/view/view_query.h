/* The target of a request, "/api/plane?image=0&level=2", taken apart. Strict: whatever is odd in it makes it no target. */
#ifndef FV_VIEW_QUERY_H
#define FV_VIEW_QUERY_H

#include <stdbool.h>
#include <stdint.h>

enum { FV_VIEW_MOST_FIELDS = 64 };

typedef struct fv_view_query {
    char *text; /* holds what the others point into */
    char *path;
    int   count;
    struct {
        const char *name, *value;
    } field[FV_VIEW_MOST_FIELDS];
} fv_view_query;

/* False: it has bytes or escapes that no browser sends for what is served here (control characters, %00, an escape that is none,
 * "..", an empty part of a path, bytes that are no UTF-8), or too many fields. Release it in any case. */
bool fv_view_query_parse(fv_view_query *query, const char *target);
void fv_view_query_release(fv_view_query *query);

const char *fv_view_query_text(const fv_view_query *query, const char *name); /* NULL: not given */
/* The next of several of one name; *at begins with 0. NULL: there are no more. */
const char *fv_view_query_next(const fv_view_query *query, const char *name, int *at);
/* False: it is given but no number in this range. Not given: the default. */
bool fv_view_query_integer(const fv_view_query *query, const char *name, int64_t least, int64_t most, int64_t def,
                           int64_t *value);
bool fv_view_query_number(const fv_view_query *query, const char *name, double def, double *value);

#endif
