/* What is known of programs.
 *
 * A folder gets its final name when its lock is held: one with that name and without a holder belonged to a process that has
 * died.
 */
#include "base/program.h"
#include "base/child.h"
#include "base/file.h"
#include "base/session.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

typedef struct known { /* a file that was looked at */
    struct known *next;
    char         *path, *version, *line; /* line: what it said of its version, asked with this option */
    fv_file_id    id;
    fv_hash       bytes;
} known;

typedef struct programs {
    pthread_mutex_t mutex;
    known          *files;
    bool            allowed, swept;
} programs;

static void begin(void *part) { pthread_mutex_init(&((programs *)part)->mutex, NULL); }

static void end(void *part) {
    programs *p = part;
    while (p->files) {
        known *file = p->files;
        p->files = file->next;
        free(file->path);
        free(file->version);
        free(file->line);
        free(file);
    }
    pthread_mutex_destroy(&p->mutex);
}

static programs *here(void) {
    static const fv_session_type type = { sizeof(programs), begin, end };
    return fv__session_part(FV_PART_PROGRAMS, &type);
}

void fv__programs_allow(bool allowed) {
    programs *p = here();
    pthread_mutex_lock(&p->mutex);
    p->allowed = allowed;
    pthread_mutex_unlock(&p->mutex);
}

/* ---------------------------------------------------------------- what a program is */

static fv_status hash_file(const char *path, fv_hash *hash, fv_error *error) {
    enum { STEP = 1 << 18 };
    int       fd;
    ssize_t   size;
    fv_hasher hasher;
    FV_TRY(fv__file_open_read(path, &fd, error));
    char *buffer = fv__alloc(STEP);
    fv__hasher_init(&hasher);
    while ((size = read(fd, buffer, STEP)) > 0) fv__hasher_add(&hasher, buffer, (size_t)size);
    *hash = fv__hasher_finish(&hasher);
    free(buffer);
    close(fd);
    return size < 0 ? fv_fail(error, FV_ERROR_IO, "cannot read %s", path) : FV_OK;
}

/* The first line that a program prints for an option; "" if it prints nothing. The caller frees. */
static char *ask_version(const char *path, const char *option) {
    char        *words[] = { (char *)(uintptr_t)path, (char *)(uintptr_t)option, NULL };
    fv_child     child = { .limit = 10 };
    fv_child_end how;
    fv_bytes     line = { 0 };
    fv__children_adopt(true);
    if (fv__child_start(&child, words, NULL, NULL, NULL) == FV_OK) {
        fv__child_wait(&child, NULL, &how);
        fv__bytes_append(&child.printed, "", 1);
        fv__bytes_printf(&line, "%.*s", (int)strcspn((char *)child.printed.data, "\n"), (char *)child.printed.data);
    }
    fv__children_adopt(false);
    fv__child_release(&child);
    fv__bytes_append(&line, "", 1);
    return (char *)line.data;
}

static bool same(const known *file, const char *path, const fv_file_id *id, const char *version) {
    return !strcmp(file->path, path) && file->id.size == id->size && file->id.mtime_ns == id->mtime_ns &&
           !strcmp(file->version, version);
}

/* The mutex is held. */
static fv_status look(programs *p, const char *path, const char *version, const known **out, fv_error *error) {
    fv_file_id id;
    fv_hash    bytes;
    FV_TRY(fv__file_identify(path, &id, error));
    for (const known *file = p->files; file; file = file->next)
        if (same(file, path, &id, version)) {
            *out = file;
            return FV_OK;
        }
    FV_TRY(hash_file(path, &bytes, error));
    known *file = fv__calloc(sizeof *file);
    *file = (known){ .next = p->files, .path = fv__strdup(path), .version = fv__strdup(version), .id = id, .bytes = bytes };
    file->line = *version ? ask_version(path, version) : fv__strdup("");
    p->files = file;
    *out = file;
    return FV_OK;
}

static fv_status identify(const char *path, const char *version, fv_hasher *hasher, fv_error *error) {
    programs    *p = here();
    const known *file;
    pthread_mutex_lock(&p->mutex);
    fv_status status = look(p, path, p->allowed ? version : "", &file, error);
    if (status == FV_OK) {
        fv__hasher_add(hasher, &file->bytes, sizeof file->bytes);
        fv__hasher_text(hasher, file->line);
    }
    pthread_mutex_unlock(&p->mutex);
    return status;
}

fv_status fv__program_identify(const char *word, const char *version, fv_hasher *hasher, fv_error *error) {
    char *path = fv__executable_find(word);
    if (!path) return fv_fail(error, FV_ERROR_USAGE, "there is no program %s; the command's first word must be one", word);
    fv__hasher_text(hasher, path);
    fv_status status = identify(path, version, hasher, error);
    free(path);
    return status;
}

void fv__script_identify(const char *path, fv_hasher *hasher) {
    if (fv__file_exists(path) && !fv__path_is_folder(path)) identify(path, "", hasher, NULL);
}

/* ---------------------------------------------------------------- folders */

static const char OURS[] = "fovea-command-";

static int open_lock(const char *folder, int flags) {
    char *path = fv__path_inside(folder, ".lock");
    int   fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        close(fd);
        fd = -1;
    }
    free(path);
    return fd;
}

/* What is left of processes that were killed goes. */
static void sweep(void) {
    DIR *all = opendir(fv__file_scratch());
    for (struct dirent *entry; all && (entry = readdir(all));) {
        if (strncmp(entry->d_name, OURS, sizeof OURS - 1)) continue;
        char *path = fv__path_inside(fv__file_scratch(), entry->d_name);
        int   lock = open_lock(path, O_RDWR);
        if (lock >= 0) {
            fv__path_remove(path, NULL);
            close(lock);
        }
        free(path);
    }
    if (all) closedir(all);
}

fv_status fv__program_folder_make(fv_program_folder *folder, fv_error *error) {
    programs *p = here();
    pthread_mutex_lock(&p->mutex);
    if (!p->swept) sweep();
    p->swept = true;
    pthread_mutex_unlock(&p->mutex);
    char *fresh = fv__sprintf("%s/fovea-new-XXXXXX", fv__file_scratch());
    *folder = (fv_program_folder){ .lock = -1 };
    if (!mkdtemp(fresh)) {
        free(fresh);
        return fv_fail(error, FV_ERROR_IO, "cannot make a folder in %s, where files for programs go (TMPDIR chooses another)",
                       fv__file_scratch());
    }
    folder->lock = open_lock(fresh, O_RDWR | O_CREAT);
    folder->path = fv__sprintf("%s/%s%s", fv__file_scratch(), OURS, fresh + strlen(fresh) - 6);
    if (folder->lock >= 0 && !rename(fresh, folder->path)) {
        free(fresh);
        return FV_OK;
    }
    fv__path_remove(fresh, NULL);
    free(fresh);
    return fv_fail(error, FV_ERROR_IO, "cannot make %s", folder->path);
}

void fv__program_folder_remove(fv_program_folder *folder) {
    if (folder->path && folder->lock >= 0) fv__path_remove(folder->path, NULL);
    if (folder->lock >= 0) close(folder->lock);
    free(folder->path);
    *folder = (fv_program_folder){ .lock = -1 };
}

/* ---------------------------------------------------------------- the environment */

static bool looks_secret(const char *name, size_t length) {
    static const char *const parts[] = { "KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CREDENTIAL", "COOKIE" };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (size_t at = 0; at + strlen(parts[i]) <= length; at++)
            if (!strncasecmp(name + at, parts[i], strlen(parts[i]))) return true;
    return false;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

char *fv__environment_keep(const char *folder) {
    fv_bytes text = { 0 };
    char     hex[33];
    size_t   count = 0;
    while (environ[count]) count++;
    char **sorted = fv__calloc((count + 1) * sizeof *sorted);
    memcpy(sorted, environ, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_text);
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(sorted[i], "=");
        bool   secret = looks_secret(sorted[i], length);
        fv__bytes_printf(&text, "%.*s%s\n", (int)length, sorted[i], secret ? "=(not kept)" : sorted[i] + length);
    }
    free(sorted);
    fv__hash_format(fv__hash_bytes(text.data, text.size), hex);
    char *name = fv__sprintf("environment-%.16s.txt", hex), *path = fv__path_inside(folder, name);
    bool  kept = fv__file_exists(path) || fv__file_write_all(path, text.data, text.size, false, NULL) == FV_OK;
    if (!kept) free(name);
    free(path);
    fv__bytes_release(&text);
    return kept ? name : NULL;
}
