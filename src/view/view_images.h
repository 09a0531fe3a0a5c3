/* The images of a view: which there are, what the page is told of them, and the source behind each. */
#ifndef FV_VIEW_IMAGES_H
#define FV_VIEW_IMAGES_H

#include "view/view_plane.h"
#include "view/view_server.h"

struct fv_view_live;

typedef struct fv_view_image {
    char                *name;   /* as it is shown */
    char                *inside; /* the dataset in its files; NULL: there is one */
    char               **paths;  /* one, or those of a collection */
    int                  npaths;
    bool                 labels;
    struct fv_view_live *live;  /* values of a pipeline; NULL: files */
    pthread_mutex_t      mutex; /* guards what follows */
    fv_view_source     **sources;
    /* Where the page was last, for what is read ahead: */
    int64_t last[FV_VIEW_SPACE];
} fv_view_image;

/* A path, or a pattern that means a collection. inside: the dataset in files that hold several, or NULL. */
fv_status fv_view_image_open(const char *pattern, const char *inside, bool labels, fv_view_image **image, fv_error *error);
/* The files of a list, as one image of that name. */
fv_status fv_view_image_list(const char *name, char *const *paths, int count, const char *inside, bool labels,
                             fv_view_image **image, fv_error *error);
/* The values of a pipeline; value: the one that is seen first, NULL: the last. */
fv_status fv_view_image_live(const char *path, const char *value, fv_view_cache *cache, fv_view_image **image, fv_error *error);
void      fv_view_image_free(fv_view_image *image);
/* The source of an item, opened again if its file was replaced; the caller gives it back with fv_view_source_unref. */
fv_status fv_view_image_source(fv_view_image *image, int64_t item, fv_view_source **source, fv_error *error);
/* The same of what a request asks for: item, and of a pipeline value and parameters. */
fv_status   fv_view_image_asked(fv_view_image *image, const fv_view_query *query, fv_view_source **source, fv_error *error);
const char *fv_view_unit(const fv_view_source *source); /* of lengths, as people write it; NULL: none */
cJSON      *fv_view_image_json(const fv_view_image *image, int id, const fv_view_source *source);

#endif
