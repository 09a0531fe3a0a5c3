/* The ledger of outputs. */
#include "run/ledger.h"
#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE = 66 }; /* two hashes in hex, a blank, a line end */

typedef struct entry {
    fv_hash file, key;
    bool    used;
} entry;

struct fv_ledger {
    char           *path;
    int             fd;
    int64_t         read; /* bytes of the file that are in the table */
    entry          *table;
    size_t          size, count;
    pthread_mutex_t mutex;
};

static entry *slot(entry *table, size_t size, fv_hash file) {
    for (uint64_t i = file.low;; i++) {
        entry *e = &table[i % size];
        if (!e->used || fv__hash_equal(e->file, file)) return e;
    }
}

static void remember(fv_ledger *ledger, fv_hash file, fv_hash key) {
    if (2 * ledger->count >= ledger->size) {
        size_t size = FV_MAX(4 * ledger->size, (size_t)256);
        entry *table = fv__calloc(size * sizeof *table);
        for (size_t i = 0; i < ledger->size; i++)
            if (ledger->table[i].used) *slot(table, size, ledger->table[i].file) = ledger->table[i];
        free(ledger->table);
        ledger->table = table;
        ledger->size = size;
    }
    entry *e = slot(ledger->table, ledger->size, file);
    ledger->count += !e->used;
    *e = (entry){ file, key, true };
}

static bool parse_hash(const char *text, fv_hash *hash) {
    uint64_t part[2] = { 0, 0 };
    for (int i = 0; i < 32; i++) {
        char c = text[i];
        int  digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return false;
        part[i / 16] = part[i / 16] << 4 | (uint64_t)digit;
    }
    *hash = (fv_hash){ .high = part[0], .low = part[1] };
    return true;
}

/* Takes up lines that were added since. Mutex held, so the file is read without lending the turn to compute: who waits for
 * the mutex would have it and never give it back. */
static fv_status catch_up(fv_ledger *ledger, fv_error *error) {
    struct stat s;
    if (fstat(ledger->fd, &s) || s.st_size < ledger->read + LINE) return FV_OK;
    size_t  size = (size_t)(s.st_size - ledger->read), at = 0, got = 0;
    char   *bytes = fv__alloc(size);
    ssize_t n;
    while (got < size && (n = pread(ledger->fd, bytes + got, size - got, ledger->read + (int64_t)got)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            free(bytes);
            return fv_fail(error, FV_ERROR_IO, "cannot read %s: %s", ledger->path, strerror(errno));
        }
        got += (size_t)n;
    }
    size = got;
    while (at + LINE <= size) {
        fv_hash file, key;
        if (bytes[at + LINE - 1] == '\n' && bytes[at + 32] == ' ' && parse_hash(bytes + at, &file) &&
            parse_hash(bytes + at + 33, &key)) {
            remember(ledger, file, key);
            at += LINE;
        } else { /* damage: go on behind the next line end */
            const char *end = memchr(bytes + at, '\n', size - at);
            if (!end) break;
            at = (size_t)(end - bytes) + 1;
        }
    }
    ledger->read += (int64_t)at;
    free(bytes);
    return FV_OK;
}

fv_status fv__ledger_open(const char *path, fv_ledger **out, fv_error *error) {
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return fv_fail(error, FV_ERROR_IO, "cannot open %s", path);
    fv_ledger *ledger = fv__calloc(sizeof *ledger);
    *ledger = (fv_ledger){ .path = fv__strdup(path), .fd = fd };
    pthread_mutex_init(&ledger->mutex, NULL);
    *out = ledger;
    return catch_up(ledger, error);
}

void fv__ledger_close(fv_ledger *ledger) {
    if (!ledger) return;
    close(ledger->fd);
    pthread_mutex_destroy(&ledger->mutex);
    free(ledger->path);
    free(ledger->table);
    free(ledger);
}

bool fv__ledger_find(fv_ledger *ledger, fv_hash file, fv_hash *key) {
    pthread_mutex_lock(&ledger->mutex);
    entry *e = ledger->size ? slot(ledger->table, ledger->size, file) : NULL;
    if ((!e || !e->used) && catch_up(ledger, NULL) == FV_OK && ledger->size) e = slot(ledger->table, ledger->size, file);
    bool found = e && e->used;
    if (found) *key = e->key;
    pthread_mutex_unlock(&ledger->mutex);
    return found;
}

/* A line that a power cut has torn would swallow the next one. */
static bool ends_in_a_line(const fv_ledger *ledger) {
    struct stat s;
    char        last = '\n';
    return fstat(ledger->fd, &s) || s.st_size == 0 || pread(ledger->fd, &last, 1, s.st_size - 1) != 1 || last == '\n';
}

fv_status fv__ledger_add(fv_ledger *ledger, const fv_hash *files, const fv_hash *keys, int count, fv_error *error) {
    fv_bytes lines = { 0 };
    char     file[33], key[33];
    if (!ends_in_a_line(ledger)) fv__bytes_append(&lines, "\n", 1);
    for (int i = 0; i < count; i++) {
        fv__hash_format(files[i], file);
        fv__hash_format(keys[i], key);
        fv__bytes_printf(&lines, "%s %s\n", file, key);
    }
    fv_status status = fv__fault_point("ledger", error);
    if (status == FV_OK && write(ledger->fd, lines.data, lines.size) != (ssize_t)lines.size)
        status = fv_fail(error, FV_ERROR_FULL, "cannot write %s: the disk may be full", ledger->path);
    fv__bytes_release(&lines);
    return status == FV_OK ? fv__file_sync(ledger->fd, ledger->path, error) : status;
}
