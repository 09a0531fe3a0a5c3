/* What the files of a view share: the lists behind the routes, and what all of them read of a request. */
#ifndef FV_VIEW_PARTS_H
#define FV_VIEW_PARTS_H

#include "view/view_files.h"
#include "view/view_images.h"
#include "view/view_table.h"
#include "view/view_voxels.h"

enum { FV_VIEW_MOST_IMAGES = 64, FV_VIEW_MOST_TABLES = 16 };

struct fv_view_files {
    fv_view_image  *images[FV_VIEW_MOST_IMAGES];
    int             nimages;
    fv_view_table  *tables[FV_VIEW_MOST_TABLES];
    int             ntables;
    fv_view_cache  *cache;
    fv_view_server *server;
};

/* What a request says of an image: which, which item or value, and where along axes that are not in space. */
typedef struct fv_view_asked {
    fv_view_image  *image;
    fv_view_source *source; /* give it back */
    int             level;
    int64_t         fixed[FV_MAX_DIMS];
    fv_view_part    part;
} fv_view_asked;

/* False: the request was answered with what is wrong. */
bool fv_view_ask(fv_view_files *files, const fv_view_query *query, fv_view_asked *asked, fv_view_answer *answer);
/* A field that has to be a number in a range; false: answered. */
bool fv_view_ask_integer(const fv_view_query *query, const char *name, int64_t least, int64_t most, int64_t def, int64_t *value,
                         fv_view_answer *answer);

/* Routes, one file for each subject. */
void fv_view_route_plane(void *context, const fv_view_query *query, fv_view_answer *answer);
void fv_view_route_volume(void *context, const fv_view_query *query, fv_view_answer *answer);
void fv_view_route_statistics(void *context, const fv_view_query *query, fv_view_answer *answer);
void fv_view_route_zarr(void *context, const fv_view_query *query, fv_view_answer *answer);
void fv_view_route_rows(void *context, const fv_view_query *query, fv_view_answer *answer);
void fv_view_route_row(void *context, const fv_view_query *query, fv_view_answer *answer);
void fv_view_route_column(void *context, const fv_view_query *query, fv_view_answer *answer);
void fv_view_route_scatter(void *context, const fv_view_query *query, fv_view_answer *answer);
void fv_view_route_values(void *context, const fv_view_query *query, fv_view_answer *answer);
void fv_view_route_object(void *context, const fv_view_query *query, fv_view_answer *answer);
void fv_view_route_value(void *context, const fv_view_query *query, fv_view_answer *answer);

#endif
