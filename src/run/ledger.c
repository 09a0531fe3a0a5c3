/* The ledger of outputs. */
#include "run/ledger.h"
#include "base/hash_table.h"
#include "base/remote.h"
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
} entry;

struct fv_ledger {
    char           *path, *address; /* NULL: there is no copy elsewhere */
    int             fd;
    int64_t         read; /* bytes of the file that are in the entries */
    entry          *entries;
    int64_t         count, capacity;
    fv_hash_table   table; /* of entries by file */
    pthread_mutex_t mutex;
};

typedef struct wanted {
    const fv_ledger *ledger;
    fv_hash          file;
} wanted;

static bool is_wanted(const void *context, uint32_t number) {
    const wanted *w = context;
    return fv__hash_equal(w->ledger->entries[number].file, w->file);
}

static entry *find(const fv_ledger *ledger, fv_hash file) {
    wanted  w = { ledger, file };
    int64_t number = fv__hash_table_number(&ledger->table, file.low, is_wanted, &w);
    return number < 0 ? NULL : &ledger->entries[number];
}

static void remember(fv_ledger *ledger, fv_hash file, fv_hash key) {
    entry *known = find(ledger, file);
    if (known) {
        known->key = key;
        return;
    }
    if (ledger->count == ledger->capacity) {
        ledger->capacity = FV_MAX(2 * ledger->capacity, 64);
        ledger->entries = fv__realloc(ledger->entries, (size_t)ledger->capacity * sizeof *ledger->entries);
    }
    fv__hash_table_reserve(&ledger->table, 128, ledger->count + 1);
    fv__hash_table_add(&ledger->table, true, (uint32_t)file.low, (uint32_t)ledger->count);
    ledger->entries[ledger->count++] = (entry){ file, key };
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
    free(ledger->address);
    free(ledger->entries);
    free(ledger->table.slot);
    free(ledger);
}

bool fv__ledger_find(fv_ledger *ledger, fv_hash file, fv_hash *key) {
    pthread_mutex_lock(&ledger->mutex);
    entry *found = find(ledger, file);
    if (!found && catch_up(ledger, NULL) == FV_OK) found = find(ledger, file);
    if (found) *key = found->key;
    pthread_mutex_unlock(&ledger->mutex);
    return found != NULL;
}

/* A line that a power cut has torn would swallow the next one. */
static bool ends_in_a_line(const fv_ledger *ledger) {
    struct stat s;
    char        last = '\n';
    return fstat(ledger->fd, &s) || s.st_size == 0 || pread(ledger->fd, &last, 1, s.st_size - 1) != 1 || last == '\n';
}

fv_status fv__ledger_note(fv_ledger *ledger, const fv_hash *files, const fv_hash *keys, int count, fv_error *error) {
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
    return status;
}

static fv_status send_line(const fv_ledger *ledger, fv_hash file, fv_hash key, fv_error *error) {
    char names[2][33];
    fv__hash_format(file, names[0]);
    fv__hash_format(key, names[1]);
    char     *path = fv__sprintf("%s/%s-%s", ledger->address, names[0], names[1]);
    fv_status status = fv__remote_put_part(-1, 0, 0, path, error);
    free(path);
    return status;
}

const char *fv__ledger_path(const fv_ledger *ledger) { return ledger->path; }

fv_status fv__ledger_add(fv_ledger *ledger, const fv_hash *files, const fv_hash *keys, int count, fv_error *error) {
    FV_TRY(fv__ledger_note(ledger, files, keys, count, error));
    FV_TRY(fv__file_sync(ledger->fd, ledger->path, error));
    for (int i = 0; ledger->address && i < count; i++) FV_TRY(send_line(ledger, files[i], keys[i], error));
    return FV_OK;
}

fv_status fv__ledger_mirror(fv_ledger *ledger, const char *address, fv_error *error) {
    char    **names = NULL, *place = fv__sprintf("%s/", address);
    size_t    count = 0;
    fv_status status = fv__remote_list(place, &names, &count, error);
    for (size_t i = 0; i < count; i++) {
        fv_hash file, key, known;
        bool    line =
            strlen(names[i]) == 65 && names[i][32] == '-' && parse_hash(names[i], &file) && parse_hash(names[i] + 33, &key);
        bool news = line && (!fv__ledger_find(ledger, file, &known) || !fv__hash_equal(key, known));
        if (status == FV_OK && news) status = fv__ledger_note(ledger, &file, &key, 1, error);
        free(names[i]);
    }
    free(names);
    free(place);
    if (status == FV_OK) ledger->address = fv__strdup(address);
    return status;
}
