/* The server behind `fovea view` and `fovea watch`: who may ask, static files of the page, routes, and a stream of events.
 *
 *     static void hello(void *context, const fv_view_query *query, fv_view_answer *answer) {
 *         fv_view_answer_json(answer, cJSON_CreateString("hello"));
 *     }
 *     static const fv_view_route routes[] = { { "/api/hello", hello }, { 0 } };
 *
 *     fv_view_server_options options = { .routes = routes, .context = mine };
 *     if (fv_view_server_start(&options, &server, &error) == FV_OK) {
 *         puts(fv_view_server_link(server));
 *         fv_view_server_wait(server, fv_stopping(true));
 *         fv_view_server_stop(server);
 *     }
 *
 * It listens on 127.0.0.1 and a port that is free, unless it is told otherwise. Routes are called from several threads at once,
 * the newest request first. What is asked for is named by numbers that the session gave out: no path of a file comes in.
 */
#ifndef FV_VIEW_SERVER_H
#define FV_VIEW_SERVER_H

#include "view_pool.h"
#include "view_query.h"
#include <cjson/cJSON.h>
#include <fovea/status.h>
#include <stddef.h>

typedef struct fv_view_server fv_view_server;

typedef struct fv_view_answer {
    int         status;     /* 200 unless it is set */
    const char *type;       /* of the body */
    char        shape[64];  /* of voxels: "H,W"; "" for others */
    const char *dtype;      /* of voxels */
    bool        unchanging; /* the same for this address as long as the file is */
    void       *body;       /* from malloc; the server frees it */
    size_t      size;
    /* Set by the server, for work that takes long: whoever asked has gone. */
    bool (*gone)(const struct fv_view_answer *answer);
    const void *request;
} fv_view_answer;

/* Takes the JSON over. */
void fv_view_answer_json(fv_view_answer *answer, cJSON *json);
/* {"error": a plain sentence}, in the place of what was there. */
void fv_view_answer_refuse(fv_view_answer *answer, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
void fv_view_answer_error(fv_view_answer *answer, const fv_error *error);

typedef struct fv_view_route {
    const char *path; /* of the request; one that ends with a slash is the start of many */
    void (*answer)(void *context, const fv_view_query *query, fv_view_answer *answer);
} fv_view_route;

typedef struct fv_view_server_options {
    const char          *listen; /* an address in digits; NULL: 127.0.0.1 */
    int                  port;   /* 0: any that is free */
    const char          *origin; /* of pages that may read /zarr/; NULL: none */
    const fv_view_route *routes; /* ended by one without a path */
    void                *context;
    /* What /api/events tells, as JSON text that the server frees; asked a few times a second while somebody listens, and sent
     * where it differs from the time before. NULL: there are no events. */
    char *(*state)(void *context);
} fv_view_server_options;

fv_status fv_view_server_start(const fv_view_server_options *options, fv_view_server **server, fv_error *error);
/* Set while a route runs in this thread, for work that takes long: becomes 1 when whoever asked has gone. NULL: no route runs. */
volatile int *fv_view_server_cancel(void);
int           fv_view_server_port(const fv_view_server *server);
const char   *fv_view_server_link(const fv_view_server *server); /* "http://127.0.0.1:40123/?token=..." */
/* The path below which other programs find images, with its key: "/zarr/KEY/"; NULL: no origin may read them. */
const char   *fv_view_server_zarr(const fv_view_server *server);
fv_view_pool *fv_view_server_pool(const fv_view_server *server);
/* Until stop is not 0. */
void fv_view_server_wait(fv_view_server *server, volatile int *stop);
void fv_view_server_stop(fv_view_server *server);

#endif
