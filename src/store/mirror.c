/* Sending commits to an address, and reading what was sent. */
#include "store/mirror.h"
#include "base/remote.h"
#include "base/take.h"
#include "store/pack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { GAP = 1 << 16 };               /* bytes between blobs that are sent along, so that there are fewer objects */
#define LARGEST ((int64_t)1 << 30)    /* object, unless one blob is larger */
#define FIRST_TIME 0x1000000000000ull /* a writer's name ends with a later time, or with that and a number */

typedef struct piece {
    char   *writer;
    int64_t start, size;
    bool    log;
} piece;

struct fv_mirror {
    char    *address; /* with /store */
    piece   *pieces;  /* those of packs, in order of writer and start */
    size_t   count;
    int64_t  sent; /* of the own log */
    uint64_t since;
};

/* ---------------------------------------------------------------- the address */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool read_address(const char *folder, fv_bytes *text, uint64_t *since) {
    char *path = fv__path_inside(folder, "address");
    bool  there = !access(path, R_OK) && fv__file_read_all(path, 1 << 16, text, NULL) == FV_OK;
    free(path);
    if (!there) return false;
    fv__bytes_append(text, "", 1);
    char *line = strchr((char *)text->data, '\n');
    *since = line ? strtoull(line + 1, NULL, 16) : 0;
    if (line) *line = 0;
    return true;
}

char *fv__mirror_address(const char *folder) {
    fv_bytes text = { 0 };
    uint64_t since;
    char    *address = read_address(folder, &text, &since) ? fv__strdup((char *)text.data) : NULL;
    fv__bytes_release(&text);
    return address;
}

fv_status fv__mirror_name(const char *folder, const char *address, bool without_old, fv_error *error) {
    fv_bytes text = { 0 };
    uint64_t since = 0;
    size_t   length = strlen(address);
    while (length && address[length - 1] == '/') length--;
    bool known = read_address(folder, &text, &since) && !without_old;
    fv__bytes_release(&text);
    if (known) return FV_OK;
    FV_TRY(fv__path_make_folders(folder, error));
    char *path = fv__path_inside(folder, "address"),
         *line = fv__sprintf("%.*s\n%llx\n", (int)length, address, without_old ? (unsigned long long)now_ns() : 0ull);
    fv_status status = fv__file_write_all(path, line, strlen(line), true, error);
    free(line);
    free(path);
    return status;
}

/* ---------------------------------------------------------------- what is there */

static int by_place(const void *a_, const void *b_) {
    const piece *a = a_, *b = b_;
    int          order = a->log - b->log;
    if (!order) order = strcmp(a->writer, b->writer);
    if (!order) order = (a->start > b->start) - (a->start < b->start);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

/* WRITER.START-SIZE.pack or .log, or something else that lies there. */
static bool parse(const char *name, piece *p) {
    const char *end = strrchr(name, '.'), *numbers = end;
    long long   start, size;
    int         used = 0;
    if (!end || (strcmp(end, ".pack") && strcmp(end, ".log"))) return false;
    while (numbers > name && numbers[-1] != '.') numbers--;
    if (numbers - name < 2 || sscanf(numbers, "%lld-%lld%n", &start, &size, &used) != 2 || numbers + used != end) return false;
    if (start < 0 || size <= 0 || start > INT64_MAX - size || memchr(name, '/', (size_t)(numbers - name))) return false;
    *p = (piece){ fv__sprintf("%.*s", (int)(numbers - name - 1), name), start, size, !strcmp(end, ".log") };
    return true;
}

/* A writer is called HOST-PID-TIME, or so with a number behind it. Names of hosts have all kinds of words, so the last one counts
 * that is a time. */
static uint64_t time_of(const char *writer) {
    uint64_t time = 0;
    for (const char *word = writer; (word = strchr(word, '-')); word++) {
        char    *end;
        uint64_t value = strtoull(word + 1, &end, 16);
        if (value >= FIRST_TIME && (!*end || *end == '-')) time = value;
    }
    return time;
}

static char *object_of(const fv_mirror *m, const char *writer, int64_t start, int64_t size, const char *extension) {
    return fv__sprintf("%s/%s.%lld-%lld.%s", m->address, writer, (long long)start, (long long)size, extension);
}

/* Bytes of a whole object, or some of it. */
static fv_status get(const char *path, int64_t whole, int64_t offset, void *data, size_t size, fv_error *error) {
    fv_remote_facts facts = { .size = whole };
    bool            in_parts;
    FV_TRY(fv__remote_get(path, &facts, offset, size, data, &in_parts, error));
    return in_parts ? FV_OK : fv_fail(error, FV_ERROR_IO, "%s: the server gives whole files only", path);
}

static fv_status fetch_piece(const fv_mirror *m, const piece *p, int fd, const char *path, fv_error *error) {
    char     *object = object_of(m, p->writer, p->start, p->size, "log");
    void     *data;
    fv_status status = FV_TAKE(data, (size_t)p->size, error);
    if (status == FV_OK) status = get(object, p->size, 0, data, (size_t)p->size, error);
    if (status == FV_OK) status = fv__file_write_at(fd, data, (size_t)p->size, p->start, path, error);
    free(data);
    free(object);
    return status;
}

/* The log of a writer, as far as it is there and not here. Of one that was made here nothing is missing. */
static fv_status fetch_log(const fv_mirror *m, const char *folder, const piece *pieces, size_t count, fv_error *error) {
    char       *path = fv__sprintf("%s/%s.log", folder, pieces[0].writer);
    struct stat s;
    int64_t     at = stat(path, &s) ? 0 : s.st_size;
    int         fd = -1;
    fv_status   status = FV_OK;
    for (size_t i = 0; i < count && status == FV_OK && pieces[i].start <= at; i++) {
        if (pieces[i].start + pieces[i].size <= at) continue;
        if (fd < 0) fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0) status = fv_fail(error, FV_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
        if (status == FV_OK) status = fetch_piece(m, &pieces[i], fd, path, error);
        at = pieces[i].start + pieces[i].size;
    }
    if (fd >= 0) close(fd);
    free(path);
    return status;
}

static fv_status fetch_logs(const fv_mirror *m, const char *folder, const piece *pieces, size_t count, fv_error *error) {
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && !strcmp(pieces[next].writer, pieces[i].writer);) next++;
        FV_TRY(fetch_log(m, folder, pieces + i, next - i, error));
    }
    return FV_OK;
}

static fv_status look(fv_mirror *m, const char *folder, fv_error *error) {
    FV_TRY(fv__path_make_folders(folder, error));
    char     *place = fv__sprintf("%s/", m->address), **names = NULL;
    size_t    count = 0, n = 0;
    fv_status status = fv__remote_list(place, &names, &count, error);
    m->pieces = fv__calloc(FV_MAX(count, (size_t)1) * sizeof *m->pieces);
    for (size_t i = 0; i < count; i++) {
        piece *p = &m->pieces[n];
        bool   known = status == FV_OK && parse(names[i], p), counts = known && (!m->since || time_of(p->writer) >= m->since);
        if (known && !counts) free(p->writer);
        n += counts;
        free(names[i]);
    }
    free(names);
    free(place);
    if (n) qsort(m->pieces, n, sizeof *m->pieces, by_place);
    m->count = n;
    for (n = 0; n < m->count && !m->pieces[n].log;) n++;
    return status == FV_OK ? fetch_logs(m, folder, m->pieces + n, m->count - n, error) : status;
}

fv_status fv__mirror_open(const char *folder, fv_mirror **mirror, fv_error *error) {
    fv_bytes text = { 0 };
    uint64_t since;
    *mirror = NULL;
    if (!read_address(folder, &text, &since)) return FV_OK;
    fv_mirror *m = fv__calloc(sizeof *m);
    char      *store = fv__path_inside(folder, "store");
    m->address = fv__path_inside((char *)text.data, "store");
    m->since = since;
    fv__bytes_release(&text);
    fv_status status = look(m, store, error);
    free(store);
    if (status == FV_OK)
        *mirror = m;
    else
        fv__mirror_close(m);
    return status;
}

void fv__mirror_close(fv_mirror *m) {
    if (!m) return;
    for (size_t i = 0; i < m->count; i++) free(m->pieces[i].writer);
    free(m->pieces);
    free(m->address);
    free(m);
}

/* ---------------------------------------------------------------- reading */

/* A piece of a writer's pack that has so many bytes at an offset: one of the last that begin there or before, since one that was
 * sent again after a failure may be larger. */
static const piece *piece_at(const fv_mirror *m, const char *writer, int64_t offset, int64_t size) {
    piece  wanted = { (char *)(uintptr_t)writer, offset, INT64_MAX, false };
    size_t first = 0, end = m->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (by_place(&m->pieces[middle], &wanted) <= 0)
            first = middle + 1;
        else
            end = middle;
    }
    for (const piece *p = m->pieces + first; p-- > m->pieces && !p->log && !strcmp(p->writer, writer);)
        if (size <= p->start + p->size - offset) return p;
    return NULL;
}

int64_t fv__mirror_extent(const fv_mirror *m, const char *writer) {
    int64_t end = 0;
    for (size_t i = 0; i < m->count && !m->pieces[i].log; i++)
        if (!strcmp(m->pieces[i].writer, writer)) end = FV_MAX(end, m->pieces[i].start + m->pieces[i].size);
    return end;
}

fv_status fv__mirror_read(const fv_mirror *m, const char *writer, int64_t offset, void *data, size_t size, fv_error *error) {
    const piece *p = piece_at(m, writer, offset, (int64_t)size);
    if (!p) return fv_fail(error, FV_ERROR_INPUT, "%s lacks bytes of %s.pack", m->address, writer);
    char     *object = object_of(m, writer, p->start, p->size, "pack");
    fv_status status = get(object, p->size, offset - p->start, data, size, error);
    free(object);
    return status;
}

/* ---------------------------------------------------------------- sending */

static int by_offset(const void *a, const void *b) {
    int64_t x = ((const piece *)a)->start, y = ((const piece *)b)->start;
    return (x > y) - (x < y);
}

/* Where the bytes of blobs are that lines speak of: pieces without names, in order, neighbours together. */
static void gather(const fv_line *lines, int64_t count, fv_bytes *out) {
    for (int64_t i = 0; i < count; i++) {
        piece p = { NULL, lines[i].offset, lines[i].size, false };
        if (lines[i].kind == FV_LINE_COMMITTED && p.size) fv__bytes_append(out, &p, sizeof p);
    }
    piece *pieces = (piece *)(void *)out->data;
    size_t all = out->size / sizeof *pieces, n = 0;
    if (all) qsort(pieces, all, sizeof *pieces, by_offset);
    for (size_t i = 0; i < all; i++) {
        piece  *last = n ? &pieces[n - 1] : NULL;
        int64_t end = pieces[i].start + pieces[i].size;
        if (last && pieces[i].start - (last->start + last->size) <= GAP && end - last->start <= LARGEST)
            last->size = FV_MAX(last->size, end - last->start);
        else
            pieces[n++] = pieces[i];
    }
    out->size = n * sizeof *pieces;
}

static fv_status send(const fv_mirror *m, const fv_pack *pack, const piece *p, bool log, fv_error *error) {
    char     *object = object_of(m, pack->writer, p->start, p->size, log ? "log" : "pack");
    fv_error  cause;
    fv_status status = fv__remote_put_part(log ? pack->log_fd : pack->pack_fd, p->start, p->size, object, &cause);
    free(object);
    if (status == FV_OK) return FV_OK;
    return fv_fail(error, status, "results cannot be kept in %s: %.400s; what is there stays, and the same command goes on",
                   m->address, cause.message);
}

fv_status fv__mirror_push(fv_mirror *m, const fv_pack *pack, int64_t log_end, fv_error *error) {
    piece    own = { NULL, m->sent, log_end - m->sent, true };
    fv_bytes pieces = { 0 };
    if (own.size <= 0) return FV_OK;
    FV_TRY(fv__fault_point("mirror-push", error));
    fv_line  *lines;
    fv_status status = FV_TAKE(lines, (size_t)own.size, error);
    if (status == FV_OK) status = fv__file_read_at(pack->log_fd, lines, (size_t)own.size, own.start, pack->log_path, error);
    if (status == FV_OK) gather(lines, own.size / (int64_t)sizeof *lines, &pieces);
    free(lines);
    const piece *p = (const piece *)(const void *)pieces.data;
    for (size_t i = 0; status == FV_OK && i < pieces.size / sizeof *p; i++) status = send(m, pack, &p[i], false, error);
    fv__bytes_release(&pieces);
    if (status == FV_OK) status = send(m, pack, &own, true, error);
    if (status == FV_OK) m->sent = log_end;
    return status;
}
