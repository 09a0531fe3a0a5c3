/* A worker that shares no folder with the engine: `fovea task --apart`, whose standard input is a socket to it. What it needs of
 * the run's folder it is sent first, and keeps in a folder of its own; what its tasks need of the store it asks for; what they
 * make it gives back at once. */
#include "base/file.h"
#include "engines/apart/link.h"
#include "engines/processes/task_server.h"
#include "store/store_place.h"
#include <fovea/pipeline.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct visitor {
    fv_task_server server;
    fv_link        link;
    fv_store_home  home;
    char          *folder;
    bool           lost; /* the engine does not answer any more */
} visitor;

static fv_status give(void *context, fv_hash key, const void *data, size_t size, double seconds, bool keep, fv_error *error) {
    visitor     *v = context;
    fv_link_head head = { .kind = FV_LINK_GIVE, .size = (int64_t)size, .key = key, .seconds = seconds, .keep = keep };
    if (fv__link_send(&v->link, head, data)) return FV_OK;
    v->lost = true;
    return fv_fail(error, FV_ERROR_IO, "the connection to the program that started the run is lost");
}

static bool ask(void *context, fv_hash key, void **buffer, size_t *size) {
    visitor     *v = context;
    fv_link_head head = { .kind = FV_LINK_ASK, .key = key };
    bool         well = fv__link_send(&v->link, head, NULL) && fv__link_receive_head(&v->link, &head);
    if (well && head.kind == FV_LINK_NONE) return false;
    *size = (size_t)head.size;
    *buffer = well && *size ? fv__buffer_new(*size) : NULL;
    if (well && *size) well = *buffer && fv__link_receive(&v->link, *buffer, *size);
    if (well) return true;
    fv__buffer_free(*buffer, *size);
    v->lost = true;
    return false;
}

static fv_status receive_file(const visitor *v, int64_t size, fv_error *error) {
    enum { PIECE = 1 << 20 };
    char name[FV_LINK_NAME];
    int  fd;
    bool well = size >= FV_LINK_NAME && fv__link_receive(&v->link, name, sizeof name);
    if (!well || !memchr(name, 0, sizeof name) || strchr(name, '/'))
        return fv_fail(error, FV_ERROR_IO, "a file of the run came damaged");
    char     *path = fv__sprintf("%s/%s", v->folder, name), *piece = fv__alloc(PIECE);
    fv_status status = fv__file_open_write(path, &fd, error);
    for (int64_t at = 0, left = size - FV_LINK_NAME; status == FV_OK && left > 0;) {
        size_t n = (size_t)FV_MIN(left, (int64_t)PIECE);
        status = fv__link_receive(&v->link, piece, n) ? fv__file_write_at(fd, piece, n, at, path, error)
                                                      : fv_fail(error, FV_ERROR_IO, "the connection to the engine is lost");
        at += (int64_t)n;
        left -= (int64_t)n;
    }
    if (status == FV_OK) status = fv__file_close(fd, path, error);
    free(piece);
    free(path);
    return status;
}

/* What the engine sends first. */
static fv_status receive_run(visitor *v, fv_worker_hello *hello, fv_error *error) {
    fv_link_head head;
    while (fv__link_receive_head(&v->link, &head)) {
        if (head.kind == FV_LINK_FILE) {
            FV_TRY(receive_file(v, head.size, error));
            continue;
        }
        if (head.kind == FV_LINK_HELLO && head.size == sizeof *hello && fv__link_receive(&v->link, hello, sizeof *hello))
            return FV_OK;
        break;
    }
    return fv_fail(error, FV_ERROR_IO, "the program that started the run has closed the connection before it began");
}

static fv_status arrive(visitor *v, fv_error *error) {
    fv_worker_hello hello;
    v->folder = fv__sprintf("%s/fovea-apart-XXXXXX", fv__file_scratch());
    if (!mkdtemp(v->folder)) {
        fv_fail(error, FV_ERROR_IO, "no folder can be made in %s", fv__file_scratch());
        free(v->folder);
        v->folder = NULL;
        return FV_ERROR_IO;
    }
    v->server.scratch = v->folder;
    v->home = (fv_store_home){ give, ask, v };
    FV_TRY(receive_run(v, &hello, error));
    fv_store_options options = { .folder = fv__temporary_place(), .writer = "apart", .transient = true, .home = &v->home };
    return fv__task_server_open(&v->server, v->folder, &hello, options, error);
}

/* True: the engine has said that there is nothing left to do. */
static bool serve(visitor *v) {
    fv_bytes     message = { 0 }, answer = { 0 };
    fv_link_head head = { 0 };
    while (!v->lost && fv__link_receive_head(&v->link, &head) && head.kind == FV_LINK_JOB) {
        if (!fv__link_receive_bytes(&v->link, (size_t)head.size, &message)) break;
        fv__task_server_run(&v->server, &message, &answer);
        fv_link_head back = { .kind = FV_LINK_ANSWER, .size = (int64_t)answer.size };
        if (!answer.size || v->lost || !fv__link_send(&v->link, back, answer.data)) break;
    }
    fv__bytes_release(&message);
    fv__bytes_release(&answer);
    return head.kind == FV_LINK_END;
}

int fv_task_serve_apart(void) {
    visitor  v = { .link = { .fd = STDIN_FILENO } };
    fv_error error = { 0 };
    fv__task_server_obey();
    fv_status status = arrive(&v, &error);
    int       code = status == FV_OK && serve(&v) ? 0 : 1;
    if (status != FV_OK) fprintf(stderr, "fovea task: %s\n", error.message);
    fv__task_server_close(&v.server);
    if (v.folder) fv__path_remove(v.folder, NULL);
    free(v.folder);
    return code;
}
