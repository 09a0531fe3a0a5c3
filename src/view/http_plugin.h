/* What the plug-in around libmicrohttpd offers: a server of HTTP/1.1 that reads requests and sends answers, and decides nothing.
 *
 * Requests have no body, and are given to one function in the thread of the server. Whoever gets one answers it once, there or
 * later from any thread; until then its connection is set aside and costs nothing. */
#ifndef FV_HTTP_PLUGIN_H
#define FV_HTTP_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fv_http_server  fv_http_server;
typedef struct fv_http_request fv_http_request;
typedef struct fv_http_stream  fv_http_stream;

typedef struct fv_http_header {
    const char *name, *value;
} fv_http_header;

typedef struct fv_http_answer {
    int                   status;
    const fv_http_header *headers; /* ended by one without a name */
    void                 *body;    /* taken over if release is given, otherwise it lives as long as the server */
    size_t                size;
    void (*release)(void *body);
    bool close; /* and the connection with it */
} fv_http_answer;

enum { FV_HTTP_MESSAGE = 200 };

typedef struct fv_http_options {
    const char *address;        /* IPv4 or IPv6, in digits */
    int         port;           /* 0: any that is free */
    int         connections;    /* at most; beyond, those that have waited longest without a request are closed */
    int         header_bytes;   /* of a request, at most */
    int         header_seconds; /* in which a request has to be there, from its first byte or the connection's start */
    int         idle_seconds;   /* of a connection between two requests */
    void (*serve)(void *context, fv_http_request *request);
    void *context;
} fv_http_options;

typedef struct fv_http_plugin {
    /* NULL: message says why. port: which one it became. */
    fv_http_server *(*start)(const fv_http_options *options, int *port, char message[FV_HTTP_MESSAGE]);
    /* All requests have to be answered by then, and all streams left. */
    void (*stop)(fv_http_server *server);

    const char *(*method)(const fv_http_request *request);
    const char *(*target)(const fv_http_request *request); /* path and query, as they were sent */
    /* The value of a header, and how many of that name there are; NULL: none. */
    const char *(*header)(const fv_http_request *request, const char *name, int *count);
    bool (*odd)(const fv_http_request *request);  /* it has a header with a name that is none, such as "Content-Length " */
    bool (*gone)(const fv_http_request *request); /* whoever asked has closed the connection */
    /* Ends the request, in any case. */
    void (*answer)(fv_http_request *request, const fv_http_answer *answer);

    /* An answer that goes on: bytes are sent as they are put. Ends the request too. */
    fv_http_stream *(*stream)(fv_http_request *request, const fv_http_header *headers);
    bool (*put)(fv_http_stream *stream, const void *data, size_t size); /* false: nobody listens any more, or much too slowly */
    void (*leave)(fv_http_stream *stream);                              /* sends what is there, and ends it */
} fv_http_plugin;

#define FV_HTTP_SYMBOL "fv_http_plugin_get"
const fv_http_plugin *fv_http_plugin_get(void);

#endif
