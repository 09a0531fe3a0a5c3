/* Requests to servers: addresses, signatures, retries, and what an answer means. */
#include "base/plugin.h"
#include "base/remote_ask.h"
#include "base/session.h"
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 4, KNOWN = 512, KNOWN_SECONDS = 5, PATIENCE = 30 };

bool fv__is_remote(const char *path) {
    return !strncmp(path, "http://", 7) || !strncmp(path, "https://", 8) || !strncmp(path, "s3://", 5) || fv__is_hdfs(path);
}

/* ---------------------------------------------------------------- addresses */

/* Without its query, which may hold a signature; for messages. */
static char *shown(const char *path) { return fv__sprintf("%.*s", (int)strcspn(path, "?"), path); }

void fv__remote_encode(fv_bytes *out, const char *text, const char *kept) {
    for (; *text; text++) {
        bool plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || (*text >= '0' && *text <= '9');
        if (plain || strchr(kept, *text))
            fv__bytes_append(out, text, 1);
        else
            fv__bytes_printf(out, "%%%02X", (unsigned char)*text);
    }
}

const char *fv__remote_setting(const char *name, const char *other, const char *otherwise) {
    const char *value = getenv(name);
    if (!value || !*value) value = other ? getenv(other) : NULL;
    return value && *value ? value : otherwise;
}

/* Where s3://BUCKET/KEY is. */
static void put_s3(fv_bytes *url, const char *path) {
    const char *bucket = path + 5, *endpoint = fv__remote_setting("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL);
    size_t      length = strcspn(bucket, "/");
    if (endpoint) {
        size_t end = strlen(endpoint);
        while (end && endpoint[end - 1] == '/') end--;
        fv__bytes_printf(url, "%.*s/%.*s", (int)end, endpoint, (int)length, bucket);
    } else
        fv__bytes_printf(url, "https://%.*s.s3.%s.amazonaws.com", (int)length, bucket,
                         fv__remote_setting("AWS_REGION", "AWS_DEFAULT_REGION", "us-east-1"));
    fv__remote_encode(url, bucket + length, "/-_.~");
}

typedef struct {
    char *url, *signing, *user;
} address;

static address find_address(const char *path, const char *query) {
    address     a = { 0 };
    fv_bytes    url = { 0 };
    const char *key = fv__remote_setting("AWS_ACCESS_KEY_ID", NULL, NULL),
               *secret = fv__remote_setting("AWS_SECRET_ACCESS_KEY", NULL, NULL);
    if (fv__is_hdfs(path))
        fv__hdfs_url(&url, path, query);
    else if (strncmp(path, "s3://", 5))
        fv__remote_encode(&url, path, "/-_.~:?#[]@!$&'()*+,;=%");
    else {
        put_s3(&url, path);
        if (query) fv__bytes_printf(&url, "?%s", query);
        if (key && secret) {
            a.signing = fv__sprintf("aws:amz:%s:s3", fv__remote_setting("AWS_REGION", "AWS_DEFAULT_REGION", "us-east-1"));
            a.user = fv__sprintf("%s:%s", key, secret);
        }
    }
    fv__bytes_append(&url, "", 1);
    a.url = (char *)url.data;
    return a;
}

static void release_address(address *a) {
    if (a->user) explicit_bzero(a->user, strlen(a->user));
    free(a->url);
    free(a->signing);
    free(a->user);
}

/* ---------------------------------------------------------------- requests */

static fv_status load(const fv_remote_plugin **plugin, fv_error *error) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static const void     *loaded; /* of the process, as every plug-in */
    fv_status              status = FV_OK;
    pthread_mutex_lock(&mutex);
    if (!loaded)
        status = fv__plugin_load("remote", "fv_remote_plugin_get", "reading and writing by http, s3 and hdfs",
                                 "libcurl4-openssl-dev", &loaded, error);
    *plugin = loaded;
    pthread_mutex_unlock(&mutex);
    if (status == FV_OK && (*plugin)->version != FV_REMOTE_VERSION)
        return fv_fail(error, FV_ERROR_USAGE, "fovea-remote.so belongs to another version of Fovea; build or install it again");
    return status;
}

static long patience(void) {
    const char *given = fv__remote_setting("FOVEA_PATIENCE", NULL, NULL);
    long        seconds = given ? strtol(given, NULL, 10) : PATIENCE;
    return seconds > 0 ? seconds : PATIENCE;
}

static bool is_passing(long status) { return status == 408 || status == 429 || status >= 500; }

/* Waits 0.2, 0.4, 0.8 s and up to half of that more, so that many workers do not come back at the same time. */
static void wait_before(int attempt) {
    struct {
        double      now;
        int         pid;
        const void *place;
    } seed = { fv__now(), getpid(), &attempt };
    double          seconds = 0.1 * (1 << attempt) * (1 + (double)(fv__hash_bytes(&seed, sizeof seed).low % 512) / 1024);
    struct timespec pause = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
    nanosleep(&pause, NULL);
}

fv_status fv__remote_ask(const char *path, const char *query, fv_remote_call *call, fv_error *error) {
    const fv_remote_plugin *plugin;
    address                 a = find_address(path, query);
    bool                    answered = false;
    fv_status               status = load(&plugin, error);
    call->url = a.url;
    call->signing = a.signing;
    call->user = a.user;
    call->token = fv__remote_setting("AWS_SESSION_TOKEN", NULL, NULL);
    call->patience = patience();
    for (int attempt = 0; status == FV_OK && attempt < TRIES; attempt++) {
        fv__io_enter();
        if (attempt) wait_before(attempt);
        answered = plugin->perform(call);
        fv__io_leave();
        if (call->unranged || (answered && !is_passing(call->status))) break;
    }
    release_address(&a);
    if (status != FV_OK || answered || call->unranged) return status;
    char *name = shown(path);
    status = fv_fail(error, FV_ERROR_IO, "cannot %s %s: %s (tried %d times)", call->body || call->give ? "write" : "read", name,
                     call->message, TRIES);
    free(name);
    return status;
}

static fv_status ask(const char *path, fv_remote_call *call, fv_error *error) { return fv__remote_ask(path, NULL, call, error); }

fv_status fv__remote_refused(const char *path, const fv_remote_call *call, fv_error *error) {
    char       *name = shown(path);
    fv_status   status;
    const char *hint = "";
    if (!strncmp(path, "s3://", 5))
        hint = fv__remote_setting("AWS_ACCESS_KEY_ID", NULL, NULL) ? "; it was signed with AWS_ACCESS_KEY_ID"
                                                                   : "; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set";
    switch (call->status) {
    case 404:
    case 410: status = fv_fail(error, FV_ERROR_INPUT, "there is no %s: the server says %ld", name, call->status); break;
    case 401:
    case 403:
        if (!strncmp(path, "http", 4))
            hint = strchr(path, '?') ? "; the signature in the address may have expired" : "; it may want a signed address";
        if (fv__is_hdfs(path))
            hint = fv__hdfs_user() ? "; it was asked as HADOOP_USER_NAME or USER" : "; HADOOP_USER_NAME is not set";
        status = fv_fail(error, FV_ERROR_INPUT, "%s: the server denies access (%ld)%s", name, call->status, hint);
        break;
    case 412: status = fv_fail(error, FV_ERROR_INPUT, "%s has changed while it was being read; start again", name); break;
    case 416: status = fv_fail(error, FV_ERROR_INPUT, "%s ends early: the server has no such range", name); break;
    default:
        if (is_passing(call->status)) hint = "; it was asked several times: try again later";
        status = fv_fail(error, FV_ERROR_IO, "%s: the server answers %ld%s", name, call->status, hint);
    }
    free(name);
    return status;
}

bool fv__remote_succeeded(const fv_remote_call *call) { return call->status >= 200 && call->status < 300; }

/* ---------------------------------------------------------------- what is there */

typedef struct {
    char           *path;
    double          since;
    bool            there;
    fv_remote_facts facts;
    fv_error        error; /* code FV_OK: none */
} known_file;

typedef struct { /* of a session */
    pthread_mutex_t mutex;
    known_file      file[KNOWN]; /* guarded by the mutex; the place follows from the path */
    double          started;     /* a server that says nothing of use is believed for one run only */
} known_files;

static void begin_known(void *part) {
    known_files *all = part;
    pthread_mutex_init(&all->mutex, NULL);
    all->started = fv__now();
}

static void end_known(void *part) {
    known_files *all = part;
    for (int i = 0; i < KNOWN; i++) free(all->file[i].path);
    pthread_mutex_destroy(&all->mutex);
}

static known_files *known_here(void) {
    static const fv_session_type type = { sizeof(known_files), begin_known, end_known };
    return fv__session_part(FV_PART_REMOTE, &type);
}

static known_file *place_of(known_files *all, const char *path) {
    return &all->file[fv__hash_bytes(path, strlen(path)).low % KNOWN];
}

static void forget(const char *path) {
    known_files *all = known_here();
    pthread_mutex_lock(&all->mutex);
    known_file *k = place_of(all, path);
    if (k->path && !strcmp(k->path, path)) k->since = -1e9;
    pthread_mutex_unlock(&all->mutex);
}

/* Servers that allow no HEAD (or a signature made for GET alone) tell the size with a range. */
static fv_status ask_facts(const char *path, known_file *answer) {
    fv_remote_call call = { .method = "HEAD" };
    char           first[1];
    FV_TRY(ask(path, &call, &answer->error));
    int64_t size = call.length;
    if (call.status == 403 || call.status == 405 || call.status == 501 || (fv__remote_succeeded(&call) && size < 0)) {
        call = (fv_remote_call){ .method = "GET", .range = "0-0", .data = first, .room = sizeof first };
        FV_TRY(ask(path, &call, &answer->error));
        size = call.unranged ? call.length : call.total;
    }
    answer->there = fv__remote_succeeded(&call);
    if (call.status == 404 || call.status == 410) return FV_OK;
    if (!answer->there) return fv__remote_refused(path, &call, &answer->error);
    if (size < 0)
        return fv_fail(&answer->error, FV_ERROR_INPUT, "%.*s: the server does not say how long it is; download it first",
                       (int)strcspn(path, "?"), path);
    answer->facts.size = size;
    snprintf(answer->facts.etag, sizeof answer->facts.etag, "%s", call.etag);
    snprintf(answer->facts.modified, sizeof answer->facts.modified, "%s", call.modified);
    return FV_OK;
}

fv_status fv__remote_look(const char *path, fv_remote_facts *facts, bool *there, fv_error *error) {
    known_file   answer = { 0 };
    known_files *all = known_here();
    pthread_mutex_lock(&all->mutex);
    known_file *k = place_of(all, path);
    bool        fresh = k->path && !strcmp(k->path, path) && fv__now() - k->since < KNOWN_SECONDS;
    if (fresh) answer = *k;
    pthread_mutex_unlock(&all->mutex);
    if (!fresh) {
        fv_status status =
            fv__is_hdfs(path) ? fv__hdfs_look(path, &answer.facts, &answer.there, &answer.error) : ask_facts(path, &answer);
        answer.error.code = status;
        answer.since = fv__now();
        answer.path = fv__strdup(path);
        pthread_mutex_lock(&all->mutex);
        free(k->path);
        *k = answer;
        pthread_mutex_unlock(&all->mutex);
    }
    *there = answer.there;
    *facts = answer.facts;
    if (answer.error.code != FV_OK && error) *error = answer.error;
    return answer.error.code;
}

/* A folder of this kind has no facts of its own. */
static bool is_zarr(const char *path) {
    for (const char *p = path; (p = strstr(p, ".zarr")); p++)
        if (!p[5] || strchr("/?#", p[5])) return true;
    return false;
}

static fv_status look_inside(const char *path, fv_remote_facts *facts, bool *there, fv_error *error) {
    static const char *const names[] = { "zarr.json", ".zattrs", ".zgroup", ".zarray" };
    fv_status                status = FV_OK;
    *there = false;
    for (int i = 0; i < FV_COUNT(names) && status == FV_OK && !*there; i++) {
        char *inner = fv__path_inside(path, names[i]);
        status = fv__remote_look(inner, facts, there, error);
        free(inner);
    }
    return status;
}

fv_status fv__remote_identify(const char *path, fv_file_id *id, fv_error *error) {
    fv_remote_facts facts;
    bool            there;
    FV_TRY(is_zarr(path) ? look_inside(path, &facts, &there, error) : fv__remote_look(path, &facts, &there, error));
    if (!there) return fv__remote_refused(path, &(fv_remote_call){ .status = 404 }, error);
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, facts.etag);
    fv__hasher_text(&hasher, facts.modified);
    if (!facts.etag[0] && !facts.modified[0]) fv__hasher_add(&hasher, &known_here()->started, sizeof(double));
    id->size = facts.size;
    id->mtime_ns = (int64_t)(fv__hasher_finish(&hasher).low >> 1);
    return FV_OK;
}

bool fv__remote_exists(const char *path) {
    fv_remote_facts facts;
    bool            there, inner = false;
    if (fv__remote_look(path, &facts, &there, NULL) != FV_OK || there) return true;
    return fv__path_has_extension(path, "zarr") && (look_inside(path, &facts, &inner, NULL) != FV_OK || inner);
}

/* ---------------------------------------------------------------- bytes */

/* Servers that give no ETag, or do not look at If-Match, tell by what comes with the bytes. */
static bool has_changed(const fv_remote_call *call, const fv_remote_facts *facts) {
    bool tagged = call->if_match && call->etag[0] && strcmp(call->etag, facts->etag);
    bool dated = call->modified[0] && facts->modified[0] && strcmp(call->modified, facts->modified);
    return tagged || dated || (call->range && call->total >= 0 && call->total != facts->size);
}

static fv_status came_wrong(const char *path, const char *what, int64_t came, int64_t wanted, fv_error *error) {
    char     *name = shown(path);
    fv_status status = fv_fail(error, FV_ERROR_INPUT, "%s %s: %lld came where %lld was asked for", name, what, (long long)came,
                               (long long)wanted);
    free(name);
    return status;
}

/* Of an answer with bytes. */
static fv_status check(const char *path, const fv_remote_facts *facts, fv_remote_call *call, fv_error *error) {
    if (has_changed(call, facts)) call->status = 412; /* what the others say */
    if (call->status == 412) forget(path);            /* whoever starts again shall see what is there now */
    if (!fv__remote_succeeded(call)) return fv__remote_refused(path, call, error);
    if (call->size == call->room) return FV_OK;
    return came_wrong(path, "ends early: number of bytes", (int64_t)call->size, (int64_t)call->room, error);
}

fv_status fv__remote_get(const char *path, const fv_remote_facts *facts, int64_t offset, size_t size, void *data, bool *in_parts,
                         fv_error *error) {
    char range[64], query[96];
    bool hdfs = fv__is_hdfs(path), whole = offset == 0 && (int64_t)size == facts->size;
    *in_parts = true;
    snprintf(range, sizeof range, "%lld-%lld", (long long)offset, (long long)(offset + (int64_t)size - 1));
    snprintf(query, sizeof query, "op=OPEN&offset=%lld&length=%lld", (long long)offset, (long long)size);
    fv_remote_call call = { .method = "GET", .range = whole || hdfs ? NULL : range, .data = data, .room = size };
    if (facts->etag[0] == '"') call.if_match = facts->etag;
    if (!size) return FV_OK;
    FV_TRY(fv__remote_ask(path, hdfs ? query : NULL, &call, error));
    *in_parts = !call.unranged;
    if (call.unranged) return FV_OK;
    FV_TRY(check(path, facts, &call, error));
    return whole || call.first < 0 || call.first == offset
               ? FV_OK
               : came_wrong(path, "comes with another range: first byte", call.first, offset, error);
}

static bool put_in_file(void *context, size_t offset, const void *data, size_t size) {
    return fv__file_write_at(*(const int *)context, data, size, (int64_t)offset, "", NULL) == FV_OK;
}

fv_status fv__remote_get_all(const char *path, const fv_remote_facts *facts, int fd, fv_error *error) {
    fv_remote_call call = { .method = "GET", .room = (size_t)facts->size, .take = put_in_file, .context = &fd };
    if (facts->etag[0] == '"') call.if_match = facts->etag;
    FV_TRY(fv__remote_ask(path, fv__is_hdfs(path) ? "op=OPEN" : NULL, &call, error));
    return check(path, facts, &call, error);
}

typedef struct file_part {
    int     fd;
    int64_t offset;
} file_part;

static int64_t give_from_file(void *context, size_t offset, void *data, size_t size) {
    const file_part *part = context;
    return pread(part->fd, data, size, (off_t)(part->offset + (int64_t)offset));
}

fv_status fv__remote_put_part(int fd, int64_t offset, int64_t size, const char *path, fv_error *error) {
    const int64_t  most = (int64_t)5 << 30; /* that S3 takes in one request */
    file_part      part = { fd, offset };
    fv_remote_call call = { .method = "PUT", .give = give_from_file, .context = &part, .body_size = (size_t)size };
    if (!size) call = (fv_remote_call){ .method = "PUT", .body = "" };
    if (size > most && !strncmp(path, "s3://", 5))
        return fv_fail(error, FV_ERROR_USAGE, "%s: a file there can have 5 GiB, and this one has %lld bytes; write Zarr", path,
                       (long long)size);
    fv_status status = fv__is_hdfs(path) ? fv__hdfs_put(path, &call, error) : ask(path, &call, error);
    forget(path);
    if (status != FV_OK || fv__is_hdfs(path)) return status;
    return fv__remote_succeeded(&call) ? FV_OK : fv__remote_refused(path, &call, error);
}

fv_status fv__remote_put_file(const char *file, const char *path, fv_error *error) {
    fv_file_id id;
    int        fd;
    FV_TRY(fv__file_identify(file, &id, error));
    FV_TRY(fv__file_open_read(file, &fd, error));
    fv_status status = fv__remote_put_part(fd, 0, id.size, path, error);
    close(fd);
    return status;
}

static bool put_in_bytes(void *context, size_t offset, const void *data, size_t size) {
    ((fv_bytes *)context)->size = offset; /* what came of an answer that broke off is forgotten */
    fv__bytes_append(context, data, size);
    return true;
}

fv_status fv__remote_ask_text(const char *path, const char *query, fv_remote_call *call, fv_bytes *text, fv_error *error) {
    text->size = 0;
    call->room = 64 << 20;
    call->take = put_in_bytes;
    call->context = text;
    FV_TRY(fv__remote_ask(path, query, call, error));
    fv__bytes_append(text, "", 1);
    return FV_OK;
}

fv_status fv__remote_ask_s3(const char *path, const char *query, fv_bytes *text, fv_error *error) {
    fv_remote_call call = { .method = "GET" };
    FV_TRY(fv__remote_ask_text(path, query, &call, text, error));
    return fv__remote_succeeded(&call) ? FV_OK : fv__remote_refused(path, &call, error);
}
