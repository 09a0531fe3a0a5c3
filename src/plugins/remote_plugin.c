/* The plug-in: HTTP requests by libcurl, signed for S3 where asked for. A thread keeps its handle and with it
 * its connections. */
#include "base/remote_plugin.h"
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CONNECT_SECONDS = 10, LEAST_SPEED = 100 }; /* bytes a second */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t  key;

static void begin(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    pthread_key_create(&key, curl_easy_cleanup);
}

static CURL *handle(void) {
    CURL *curl = pthread_getspecific(key);
    if (curl) {
        curl_easy_reset(curl);
        return curl;
    }
    curl = curl_easy_init();
    pthread_setspecific(key, curl);
    return curl;
}

/* ---------------------------------------------------------------- the answer */

typedef struct {
    CURL           *curl;
    fv_remote_call *call;
    size_t          given; /* bytes of the body */
} exchange;

/* What a server says about a failure is nobody's data. */
static size_t take_body(char *data, size_t one, size_t count, void *context) {
    const exchange *e = context;
    fv_remote_call *call = e->call;
    size_t          size = one * count;
    long            status = 0;
    curl_easy_getinfo(e->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || status >= 300) return size;
    call->unranged = call->range && status == 200;
    if (call->unranged) return 0;
    if (size > call->room - call->size) {
        snprintf(call->message, sizeof call->message, "it sends more than was asked for");
        return 0;
    }
    if (call->data)
        memcpy((char *)call->data + call->size, data, size);
    else if (!call->take(call->context, call->size, data, size)) {
        snprintf(call->message, sizeof call->message, "there is no room for it");
        return 0;
    }
    call->size += size;
    return size;
}

static void take_text(const char *line, size_t size, const char *name, char *text) {
    size_t n = strlen(name);
    if (size <= n || strncasecmp(line, name, n)) return;
    while (n < size && (line[n] == ' ' || line[n] == '\t')) n++;
    while (size > n && strchr(" \r\n", line[size - 1])) size--;
    snprintf(text, FV_REMOTE_TEXT, "%.*s", (int)(size - n), line + n);
}

static size_t take_header(char *line, size_t one, size_t count, void *context) {
    fv_remote_call *call = ((const exchange *)context)->call;
    size_t          size = one * count;
    char            range[FV_REMOTE_TEXT] = "";
    if (size > 5 && !strncmp(line, "HTTP/", 5)) { /* another answer, after a redirection */
        call->etag[0] = call->modified[0] = 0;
        call->first = call->total = -1;
    }
    take_text(line, size, "etag:", call->etag);
    take_text(line, size, "last-modified:", call->modified);
    take_text(line, size, "content-range:", range);
    const char *slash = strchr(range, '/');
    if (slash && slash[1] >= '0' && slash[1] <= '9') call->total = strtoll(slash + 1, NULL, 10);
    if (!strncasecmp(range, "bytes ", 6) && range[6] >= '0' && range[6] <= '9') call->first = strtoll(range + 6, NULL, 10);
    return size;
}

/* ---------------------------------------------------------------- the question */

static size_t give_body(char *data, size_t one, size_t count, void *context) {
    exchange       *e = context;
    fv_remote_call *call = e->call;
    int64_t         size = call->give(call->context, e->given, data, one * count);
    if (size < 0) {
        snprintf(call->message, sizeof call->message, "what is to be sent cannot be read");
        return CURL_READFUNC_ABORT;
    }
    e->given += (size_t)size;
    return (size_t)size;
}

/* A server that sends the request elsewhere gets the body once more. */
static int give_again(void *context, curl_off_t offset, int origin) {
    if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
    ((exchange *)context)->given = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value) {
    size_t size = strlen(name) + strlen(value) + 3;
    char  *line = malloc(size);
    if (!line) return list;
    snprintf(line, size, *value ? "%s: %s" : "%s:", name, value);
    struct curl_slist *longer = curl_slist_append(list, line);
    free(line);
    return longer ? longer : list;
}

static struct curl_slist *headers(const fv_remote_call *call) {
    struct curl_slist *list = NULL;
    if (call->if_match) list = add_header(list, "If-Match", call->if_match);
    if (call->body || call->give) list = add_header(list, "Content-Type", "application/octet-stream");
    if (call->signing) list = add_header(list, "x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    if (call->signing && call->token) list = add_header(list, "x-amz-security-token", call->token);
    return list;
}

static void ask(CURL *curl, const fv_remote_call *call, exchange *e) {
    curl_easy_setopt(curl, CURLOPT_URL, call->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)LEAST_SPEED);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, call->patience);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "fovea");
    /* Bodies do not wait for a "go on". To take the header away would not do: libcurl signs it even so, and it never arrives. */
    curl_easy_setopt(curl, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
    if (!strcmp(call->method, "HEAD"))
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    else if (strcmp(call->method, "GET"))
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
    if (call->range) curl_easy_setopt(curl, CURLOPT_RANGE, call->range);
    if (call->body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_size);
    }
    if (call->give) {
        curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->body_size);
        curl_easy_setopt(curl, CURLOPT_READFUNCTION, give_body);
        curl_easy_setopt(curl, CURLOPT_READDATA, e);
        curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, give_again);
        curl_easy_setopt(curl, CURLOPT_SEEKDATA, e);
    }
    if (call->signing) {
        curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, call->signing);
        curl_easy_setopt(curl, CURLOPT_USERPWD, call->user);
    }
}

static bool perform(fv_remote_call *call) {
    pthread_once(&once, begin);
    CURL *curl = handle();
    call->size = 0;
    call->status = 0;
    call->unranged = false;
    call->length = call->first = call->total = -1;
    call->etag[0] = call->modified[0] = call->message[0] = 0;
    if (!curl) {
        snprintf(call->message, sizeof call->message, "libcurl cannot begin");
        return false;
    }
    exchange           e = { curl, call, 0 };
    struct curl_slist *list = headers(call);
    char               reason[CURL_ERROR_SIZE] = "";
    curl_off_t         length = -1;
    ask(curl, call, &e);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &e);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &e);
    CURLcode result = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &call->status);
    curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    call->length = length;
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
    curl_slist_free_all(list);
    if (result != CURLE_OK && !call->message[0])
        snprintf(call->message, sizeof call->message, "%s", reason[0] ? reason : curl_easy_strerror(result));
    return result == CURLE_OK;
}

const fv_remote_plugin *fv_remote_plugin_get(void) {
    static const fv_remote_plugin plugin = { FV_REMOTE_VERSION, perform };
    return &plugin;
}
