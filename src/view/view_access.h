/* Who may ask: decided from the headers of a request alone, before anything else is done with it.
 *
 * Another page in the same browser, another user of the machine and a name that somebody's server resolves to 127.0.0.1 must get
 * nothing. So the name of the server is compared exactly, a page of another origin is refused, and all but the first request
 * carry a cookie that only this server's token sets. */
#ifndef FV_VIEW_ACCESS_H
#define FV_VIEW_ACCESS_H

#include <stdbool.h>

enum { FV_VIEW_TOKEN = 33 }; /* 128 bits in hexadecimal digits */

typedef struct fv_view_access {
    char        token[FV_VIEW_TOKEN];
    char        key[FV_VIEW_TOKEN]; /* of paths that other programs read: it opens nothing else */
    char        cookie[32];         /* its name, with the port: servers beside each other keep their own */
    const char *address;            /* that is listened on */
    int         port;
    const char *origin; /* that may read /zarr/ from a page of its own; NULL: none */
} fv_view_access;

typedef struct fv_view_caller { /* headers of a request; NULL: not given */
    const char *method, *host, *origin, *site, *cookie, *length, *encoding;
    int         hosts, origins, cookies; /* how many of them there are */
    bool        odd;                     /* a header has a name that is none */
    bool        zarr;                    /* it asks for a path that the foreign origin may read */
    const char *token;                   /* in the first request's query, or in such a path */
} fv_view_caller;

/* False: the system has no random numbers. */
bool fv_view_access_init(fv_view_access *access);
/* 0: may pass. Otherwise the status of the answer, and why. */
int fv_view_access_check(const fv_view_access *access, const fv_view_caller *caller, const char **why);
/* Whether a text is this token; takes the same time whichever byte differs. */
bool fv_view_is_token(const char token[FV_VIEW_TOKEN], const char *text);
bool fv_view_address_is_loopback(const char *address);

#endif
