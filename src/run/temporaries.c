/* Names of temporaries. A folder is read once and what was found there remembered, since a folder of results may be very full. */
#include "run/temporaries.h"
#include "base/file.h"
#include "base/remote.h"
#include "op/format.h"
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { FOLDERS = 16 }; /* remembered at a time */

typedef struct listing {
    char  *folder; /* with its slash; empty: the current one */
    char **names;  /* of temporaries and of folders of parts, in order */
    size_t count;
} listing;

struct fv_temporaries {
    pthread_mutex_t mutex;
    listing         listings[FOLDERS];
    int             next; /* to be replaced */
};

fv_temporaries *fv__temporaries_new(void) {
    fv_temporaries *t = fv__calloc(sizeof *t);
    pthread_mutex_init(&t->mutex, NULL);
    return t;
}

static void release(listing *l) {
    for (size_t i = 0; i < l->count; i++) free(l->names[i]);
    free(l->names);
    free(l->folder);
    *l = (listing){ 0 };
}

void fv__temporaries_free(fv_temporaries *t) {
    for (int i = 0; i < FOLDERS; i++) release(&t->listings[i]);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

/* What ends the name of a temporary: a dot, 16 digits of the key, perhaps - and 8 of the epoch, .fovea */
static bool is_ending(const char *rest) {
    static const char digits[] = "0123456789abcdef";
    if (*rest++ != '.' || strspn(rest, digits) != 16) return false;
    rest += 16;
    if (*rest == '-' && strspn(rest + 1, digits) == 8) rest += 9;
    return !strcmp(rest, ".fovea");
}

/* What ends the name of a folder of parts: a dot and 16 digits of the key. */
static bool is_key(const char *rest) { return *rest == '.' && strlen(rest) == 17 && strspn(rest + 1, "0123456789abcdef") == 16; }

static bool is_parts(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && dot > name && is_key(dot);
}

char *fv__temporaries_owner(const char *name) {
    const char *dot = name[0] == '.' ? strrchr(name, '.') : NULL;
    for (const char *p = dot; p && p > name + 1; p--)
        if (is_ending(p)) return fv__sprintf("%.*s", (int)(p - name - 1), name + 1);
    return NULL;
}

static bool is_temporary(const char *name) {
    char *owner = fv__temporaries_owner(name);
    bool  is = owner != NULL;
    free(owner);
    return is;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void read_folder(listing *l, const char *folder) {
    DIR           *d = opendir(*folder ? folder : ".");
    struct dirent *entry;
    fv_bytes       names = { 0 };
    while (d && (entry = readdir(d))) {
        if (!is_temporary(entry->d_name) && !is_parts(entry->d_name)) continue;
        char *name = fv__strdup(entry->d_name);
        fv__bytes_append(&names, &name, sizeof name);
    }
    if (d) closedir(d);
    release(l);
    *l = (listing){ fv__strdup(folder), (char **)(void *)names.data, names.size / sizeof(char *) };
    if (l->count) qsort(l->names, l->count, sizeof *l->names, by_name);
}

static const listing *list(fv_temporaries *t, const char *folder, bool again) {
    for (int i = 0; i < FOLDERS; i++) {
        listing *l = &t->listings[i];
        if (!l->folder || strcmp(l->folder, folder)) continue;
        if (again) read_folder(l, folder);
        return l;
    }
    listing *l = &t->listings[t->next];
    t->next = (t->next + 1) % FOLDERS;
    read_folder(l, folder);
    return l;
}

/* Copies of those names that begin with that, a dot at its end, and go on with an ending of that kind; their number in *count. */
static char **find_names(const listing *l, const char *start, bool (*ends)(const char *rest), size_t *count) {
    fv_bytes found = { 0 };
    size_t   length = strlen(start), low = 0, high = l->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(l->names[middle], start) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < l->count && !strncmp(l->names[low], start, length); low++) {
        if (!ends(l->names[low] + length - 1)) continue; /* of NAME.MORE */
        char *copy = fv__strdup(l->names[low]);
        fv__bytes_append(&found, &copy, sizeof copy);
    }
    *count = found.size / sizeof(char *);
    return (char **)(void *)found.data;
}

/* Temporaries of an output. */
static char **of_output(const listing *l, const char *name, size_t *count) {
    char  *shown = fv__path_short_name(name), *start = fv__sprintf(".%s.", shown);
    char **names = find_names(l, start, is_ending, count);
    free(shown);
    free(start);
    return names;
}

static char *take_up(const char *folder, const char *start, char **names, size_t count, bool parallel) {
    char *taken = NULL;
    for (size_t i = 0; i < count; i++) {
        char *whole = fv__sprintf("%s%s", folder, names[i]);
        bool  same = parallel && !taken && !strncmp(names[i], start, strlen(start)) && names[i][strlen(start)] == '-';
        if (same && fv__file_exists(whole)) {
            taken = whole;
        } else {
            fv__path_remove(whole, NULL);
            free(whole);
        }
        free(names[i]);
    }
    free(names);
    return taken;
}

char *fv__temporaries_stand_in(const char *path) {
    char *name = fv__is_remote(path) ? fv__sprintf(".fovea/remote/%.*s", (int)fv__path_length(path), path) : fv__strdup(path);
    for (char *p = name + strlen(".fovea/remote/"); fv__is_remote(path) && *p; p++)
        if (*p == '/') *p = ':';
    if (fv__is_remote(path)) return name;
    for (char *p = name + fv__format_around(path); p > name && *p; p++)
        if (*p == '/') *p = ':';
    return name;
}

static char *name_beside(fv_temporaries *t, const char *path, fv_hash key, fv_temporary_kind kind, bool again) {
    const char *name = fv__path_name(path);
    char       *folder = fv__sprintf("%.*s", (int)(name - path), path), *found = NULL;
    char        hex[33];
    size_t      count = 0;
    fv__hash_format(key, hex);
    char  *shown = fv__path_short_name(name), *start = fv__sprintf(".%s.%.16s", shown, hex);
    char **names = NULL;
    free(shown);
    if (kind != FV_TEMPORARY_ADDED) {
        pthread_mutex_lock(&t->mutex);
        names = of_output(list(t, folder, again), name, &count);
        pthread_mutex_unlock(&t->mutex);
    }
    found = take_up(folder, start, names, count, kind == FV_TEMPORARY_TAKEN_UP);
    if (!found && kind != FV_TEMPORARY_FIXED) {
        struct {
            double  now;
            int     pid;
            fv_hash key;
        } seed = { fv__now(), getpid(), key };
        fv_hash random = fv__hash_bytes(&seed, sizeof seed);
        found = fv__sprintf("%s%s-%08x.fovea", folder, start, (unsigned)random.low);
    } else if (!found)
        found = fv__sprintf("%s%s.fovea", folder, start);
    free(start);
    free(folder);
    return found;
}

char *fv__temporaries_name(fv_temporaries *t, const char *path, fv_hash key, fv_temporary_kind kind, bool again) {
    char *stand_in = fv__temporaries_stand_in(path), *name = name_beside(t, stand_in, key, kind, again);
    free(stand_in);
    return name;
}

void fv__temporaries_outdated(fv_temporaries *t, const char *path, const char *in_use) {
    const char *name = fv__path_name(path);
    char       *folder = fv__sprintf("%.*s", (int)(name - path), path), *shown = fv__path_short_name(name);
    char       *start = fv__sprintf("%s.", shown);
    size_t      count = 0;
    free(shown);
    pthread_mutex_lock(&t->mutex);
    char **names = find_names(list(t, folder, false), start, is_key, &count);
    pthread_mutex_unlock(&t->mutex);
    for (size_t i = 0; i < count; i++) {
        char *whole = fv__sprintf("%s%s", folder, names[i]);
        if (strcmp(names[i], in_use)) fv__path_remove(whole, NULL);
        free(whole);
        free(names[i]);
    }
    free(names);
    free(start);
    free(folder);
}

void fv__temporaries_tidy(const char *path) {
    const char *name = fv__path_name(path);
    char       *folder = fv__sprintf("%.*s", (int)(name - path), path);
    listing     found = { 0 };
    size_t      count;
    read_folder(&found, folder);
    char **names = of_output(&found, name, &count);
    free(take_up(folder, "", names, count, false));
    release(&found);
    free(folder);
}
