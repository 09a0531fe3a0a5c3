/* Messages over a socket. */
#include "engines/apart/link.h"
#include "base/file.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MARK = 0x46564c4b, PIECE = 1 << 20, LOOK = 200 /* milliseconds */ };

static bool wait_for(const fv_link *link, short events) {
    struct pollfd ready = { .fd = link->fd, .events = events };
    for (;;) {
        int found = poll(&ready, 1, LOOK);
        if (found > 0) return true;
        if (found < 0 && errno != EINTR) return false;
        if (link->given_up && link->given_up(link->context)) return false;
    }
}

static bool send_all(const fv_link *link, const void *data, size_t size) {
    const char *at = data;
    while (size > 0) {
        ssize_t n = send(link->fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (n < 0 && !wait_for(link, POLLOUT)) return false;
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool fv__link_receive(const fv_link *link, void *data, size_t size) {
    char *at = data;
    while (size > 0) {
        ssize_t n = recv(link->fd, at, size, MSG_DONTWAIT);
        if (!n || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
        if (n < 0 && !wait_for(link, POLLIN)) return false;
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool fv__link_send(const fv_link *link, fv_link_head head, const void *data) {
    head.mark = MARK;
    return send_all(link, &head, sizeof head) && (!head.size || send_all(link, data, (size_t)head.size));
}

bool fv__link_send_file(const fv_link *link, const char *path, const char *name) {
    fv_file_id id;
    int        fd;
    char       padded[FV_LINK_NAME] = "";
    if (fv__file_identify(path, &id, NULL) != FV_OK || fv__file_open_read(path, &fd, NULL) != FV_OK) return false;
    snprintf(padded, sizeof padded, "%s", name);
    fv_link_head head = { .mark = MARK, .kind = FV_LINK_FILE, .size = FV_LINK_NAME + id.size };
    bool         well = send_all(link, &head, sizeof head) && send_all(link, padded, sizeof padded);
    char        *piece = fv__alloc(PIECE);
    for (int64_t at = 0; well && at < id.size; at += PIECE) {
        size_t n = (size_t)FV_MIN((int64_t)PIECE, id.size - at);
        well = fv__file_read_at(fd, piece, n, at, path, NULL) == FV_OK && send_all(link, piece, n);
    }
    free(piece);
    close(fd);
    return well;
}

bool fv__link_receive_head(const fv_link *link, fv_link_head *head) {
    return fv__link_receive(link, head, sizeof *head) && head->mark == MARK && head->kind <= FV_LINK_END && head->size >= 0;
}

bool fv__link_receive_bytes(const fv_link *link, size_t size, fv_bytes *bytes) {
    char piece[4096];
    fv__bytes_clear(bytes);
    while (size > 0) { /* grows as it comes: a damaged size takes no memory */
        size_t n = FV_MIN(size, sizeof piece);
        if (!fv__link_receive(link, piece, n)) return false;
        fv__bytes_append(bytes, piece, n);
        size -= n;
    }
    return true;
}
