/* Access to the server of a view. */
#include "view/view_access.h"
#include "base/base.h"
#include <stdio.h>
#include <sys/random.h>

static bool make_token(char token[FV_VIEW_TOKEN]) {
    unsigned char bytes[(FV_VIEW_TOKEN - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return false;
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

bool fv_view_access_init(fv_view_access *a) { return make_token(a->token) && make_token(a->key); }

bool fv_view_is_token(const char token[FV_VIEW_TOKEN], const char *text) {
    unsigned char different = 0;
    if (!text || strlen(text) != FV_VIEW_TOKEN - 1) return false;
    for (int i = 0; i < FV_VIEW_TOKEN - 1; i++) different |= (unsigned char)(text[i] ^ token[i]);
    return !different;
}

bool fv_view_address_is_loopback(const char *address) { return !strncmp(address, "127.", 4) || !strcmp(address, "::1"); }

/* "NAME:PORT" of this server. One that listens beyond loopback cannot know all of its names: digits of an address will do, since
 * nobody's server can make a browser take those for its own name. */
static bool is_own_host(const fv_view_access *a, const char *host) {
    char end[16];
    int  length = (int)strlen(host), tail = snprintf(end, sizeof end, ":%d", a->port);
    if (length <= tail || strcmp(host + length - tail, end)) return false;
    length -= tail;
    if ((length == 9 && !strncmp(host, "127.0.0.1", 9)) || (length == 9 && !strncmp(host, "localhost", 9)) ||
        (length == 5 && !strncmp(host, "[::1]", 5)))
        return true;
    return !fv_view_address_is_loopback(a->address) &&
           (strspn(host, "0123456789.") == (size_t)length ||
            (host[0] == '[' && host[length - 1] == ']' && strspn(host + 1, "0123456789abcdef:.") == (size_t)length - 2));
}

/* The page itself sends its own address; a page from somewhere else its own, or "null". */
static bool is_own_origin(const fv_view_access *a, const char *origin) {
    return !strncmp(origin, "http://", 7) && is_own_host(a, origin + 7);
}

static bool has_cookie(const fv_view_access *a, const char *cookies) {
    size_t length = strlen(a->cookie);
    for (const char *p = cookies; p && *p;) {
        p += strspn(p, " ;");
        size_t n = strcspn(p, ";");
        char   value[FV_VIEW_TOKEN];
        if (n == length + FV_VIEW_TOKEN && !strncmp(p, a->cookie, length) && p[length] == '=') {
            memcpy(value, p + length + 1, FV_VIEW_TOKEN - 1);
            value[FV_VIEW_TOKEN - 1] = 0;
            if (fv_view_is_token(a->token, value)) return true;
        }
        p += n;
    }
    return false;
}

int fv_view_access_check(const fv_view_access *a, const fv_view_caller *c, const char **why) {
    *why = "only GET and HEAD are served";
    if (strcmp(c->method, "GET") && strcmp(c->method, "HEAD")) return 405;
    *why = "a request has no body here";
    if (c->odd || c->encoding || (c->length && strcmp(c->length, "0"))) return 400;
    *why = "the request names another server";
    if (c->hosts != 1 || !is_own_host(a, c->host)) return 421;
    bool guest = c->zarr && a->origin && c->origins == 1 && !strcmp(c->origin, a->origin);
    *why = "a page of another origin may not ask";
    if (c->origins > 1 || (c->origin && !guest && !is_own_origin(a, c->origin))) return 403;
    if (!guest && c->site && strcmp(c->site, "same-origin") && strcmp(c->site, "none")) return 403;
    *why = "open the link that fovea view has printed: it holds the key";
    if (c->cookies <= 1 && has_cookie(a, c->cookie)) return 0;
    if (c->zarr) return a->origin && fv_view_is_token(a->key, c->token) ? 0 : 401;
    return fv_view_is_token(a->token, c->token) ? 0 : 401;
}
