/* Output files: claims, temporaries, recognition, commit. */
#include "run/outputs.h"
#include "base/file.h"
#include "base/remote.h"
#include "op/format.h"
#include "op/output_parts.h"
#include "op/output_slices.h"
#include "run/ledger.h"
#include "run/temporaries.h"
#include "store/mirror.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH = 256 };

struct fv_outputs {
    char           *folder;
    fv_ledger      *ledger;
    fv_temporaries *temporaries;
    bool            overwrite, fresh;
    fv_hash        *patterns; /* of the collections that the run reads */
    int             npatterns;
    bool            yields; /* to another worker that has taken over what we were writing, without a complaint */
    pthread_mutex_t mutex;  /* guards what follows */
    fv_output      *claimed;
    fv_output      *waiting[BATCH];
    int             nwaiting;
    double          oldest;
    fv_error        failure; /* the first; code FV_OK: none */
};

fv_status fv__outputs_open(const char *folder, bool overwrite, bool fresh, fv_outputs **out, fv_error *error) {
    fv_ledger *ledger = NULL;
    if (folder) {
        char     *path = fv__sprintf("%s/outputs.log", folder);
        char     *address = fv__mirror_address(folder), *copy = address ? fv__path_inside(address, "outputs") : NULL;
        fv_status status = fv__ledger_open(path, &ledger, error);
        if (status == FV_OK && copy) status = fv__ledger_mirror(ledger, copy, error);
        free(copy);
        free(address);
        free(path);
        if (status != FV_OK) {
            fv__ledger_close(ledger);
            return status;
        }
    }
    fv_outputs *outputs = fv__calloc(sizeof *outputs);
    outputs->folder = folder ? fv__sprintf("%s/outputs", folder) : NULL;
    outputs->ledger = ledger;
    outputs->temporaries = fv__temporaries_new();
    outputs->overwrite = overwrite;
    outputs->fresh = fresh;
    pthread_mutex_init(&outputs->mutex, NULL);
    *out = outputs;
    return FV_OK;
}

void fv__outputs_free(fv_outputs *outputs) {
    while (outputs->claimed) fv__outputs_abandon(outputs, outputs->claimed);
    for (int i = 0; i < outputs->nwaiting; i++) fv__output_leave(outputs->waiting[i]);
    fv__ledger_close(outputs->ledger);
    fv__temporaries_free(outputs->temporaries);
    pthread_mutex_destroy(&outputs->mutex);
    free(outputs->patterns);
    free(outputs->folder);
    free(outputs);
}

/* ---------------------------------------------------------------- recognition */

typedef struct identity {
    int64_t inode, size, mtime_ns;
} identity;

static bool identify_file(const char *path, identity *id) {
    struct stat s;
    if (fv__is_remote(path)) {
        fv_file_id remote;
        if (!fv__file_exists(path) || fv__file_identify(path, &remote, NULL) != FV_OK) return false;
        *id = (identity){ 0, remote.size, remote.mtime_ns };
        return true;
    }
    if (lstat(path, &s)) return false;
    *id = (identity){ (int64_t)s.st_ino, S_ISDIR(s.st_mode) ? 0 : s.st_size,
                      (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec };
    return true;
}

/* Slices are known by their list. */
static bool identify(const char *path, identity *id) {
    char *list = fv__slices_named(path) ? fv__slices_list(path) : NULL;
    bool  there = identify_file(list ? list : path, id);
    free(list);
    return there;
}

char *fv__outputs_place(const char *path) {
    char *copy = fv__strdup(path);
    if (fv__is_remote(path)) return copy;
    for (size_t length = strlen(copy); length > 1 && copy[length - 1] == '/';) copy[--length] = 0;
    const char *name = fv__path_name(copy);
    char       *folder = name == copy ? fv__strdup(".") : fv__sprintf("%.*s", (int)FV_MAX(name - copy - 1, 1), copy);
    char       *place = fv__sprintf("%s/%s", folder, name), *real = realpath(folder, NULL);
    size_t      around = fv__format_around(path);
    if (real) {
        free(place);
        place = fv__sprintf("%s/%s", real, name);
    } else if (around && around < strlen(copy)) { /* its folder is made with it: it counts from the one around that */
        char *outer = fv__sprintf("%.*s", (int)around, copy), *known = fv__outputs_place(outer);
        free(place);
        place = fv__sprintf("%s%s", known, copy + around);
        free(outer);
        free(known);
    }
    free(real);
    free(folder);
    free(copy);
    return place;
}

/* This very file under this name. */
static fv_hash file_hash(const char *path, const identity *id) {
    fv_hasher hasher;
    char     *place = fv__outputs_place(path);
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, place);
    fv__hasher_add(&hasher, id, sizeof *id);
    free(place);
    return fv__hasher_finish(&hasher);
}

/* That a remote file under this name is being sent: with the key of what makes it, or 0 when it is there. */
static fv_hash sending_hash(const char *path) { return file_hash(path, &(identity){ .size = -1 }); }

/* A pattern means other files in another working folder. */
static fv_hash pattern_hash(const char *pattern) {
    fv_hasher hasher;
    char     *here = *pattern == '/' ? NULL : realpath(".", NULL);
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, here ? here : "");
    fv__hasher_text(&hasher, pattern);
    free(here);
    return fv__hasher_finish(&hasher);
}

/* This very file as the result of a run over a collection. */
static fv_hash result_hash(fv_hash file, fv_hash pattern) {
    fv_hash both[2] = { file, pattern };
    return fv__hash_bytes(both, sizeof both);
}

void fv__outputs_note_patterns(fv_outputs *outputs, const fv_bindings *bindings) {
    outputs->patterns = fv__realloc(outputs->patterns, (size_t)(bindings->nlists + 1) * sizeof *outputs->patterns);
    outputs->npatterns = bindings->nlists;
    for (int l = 0; l < bindings->nlists; l++) outputs->patterns[l] = pattern_hash(bindings->lists[l].pattern);
}

bool fv__outputs_recognise(const char *path, const char *pattern, fv_hash *file) {
    identity id;
    if (!identify(path, &id)) return false;
    *file = file_hash(path, &id);
    if (pattern) *file = result_hash(*file, pattern_hash(pattern));
    return true;
}

/* The longest name that the file system takes where this one will be; the folders above it need not be there yet. */
static size_t longest_name(const char *path, size_t length) {
    char *folder = fv__sprintf("%.*s", (int)length, path);
    long  limit = -1;
    while (limit < 0) {
        char *slash = strrchr(folder, '/');
        if (slash) slash[slash == folder] = 0;
        limit = pathconf(slash ? folder : ".", _PC_NAME_MAX);
        if (!slash || slash == folder) break;
    }
    free(folder);
    return limit > 0 ? (size_t)limit : NAME_MAX;
}

fv_status fv__outputs_check_name(const char *path, fv_error *error) {
    enum { SHORT = 100 }; /* every file system takes such a name */
    if (fv__is_remote(path)) return FV_OK;
    if (strlen(path) >= PATH_MAX)
        return fv_fail(error, FV_ERROR_USAGE, "this path would have %zu bytes, and may have at most %d: %.100s...", strlen(path),
                       PATH_MAX - 1, path);
    for (const char *name = path; *name; name += strspn(name, "/")) {
        size_t length = strcspn(name, "/");
        size_t limit = length > SHORT ? longest_name(path, (size_t)(name - path) + length) : SHORT;
        if (length > limit)
            return fv_fail(error, FV_ERROR_USAGE,
                           "the name %.*s would have %zu bytes, and may have at most %zu here; write to a shorter one",
                           (int)length, name, length, limit);
        name += length;
    }
    return FV_OK;
}

/* Whether one of the files that tell the format lies in it. */
static bool has_mark(const char *folder, const fv_format *format) {
    bool there = false;
    for (const char *p = format->marks; p && *p && !there;) {
        size_t n = strcspn(p, " ");
        char  *file = fv__sprintf("%s/%.*s", folder, (int)n, p);
        there = fv__file_exists(file);
        free(file);
        p += n + strspn(p + n, " ");
    }
    return there;
}

/* Whether it is such a file that was being written: "zarr.json.tmp17-1". */
static bool is_growing_mark(const char *name, const fv_format *format) {
    const char *end = strstr(name, ".tmp");
    for (const char *p = format && end ? format->marks : NULL; p && *p;) {
        size_t n = strcspn(p, " ");
        if (n == (size_t)(end - name) && !strncmp(p, name, n)) return true;
        p += n + strspn(p + n, " ");
    }
    return false;
}

/* Whether it holds only what a killed run may have left in it: temporaries, images inside the image, empty folders. */
static bool only_ours(const char *folder, const fv_format *format) {
    DIR           *d = opendir(folder);
    struct dirent *entry;
    bool           ours = d != NULL;
    while (ours && (entry = readdir(d))) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..") || (*name == '.' && strstr(name, "fovea"))) continue;
        if (is_growing_mark(name, format)) continue;
        char *inner = fv__sprintf("%s/%s", folder, name);
        ours = format && (has_mark(inner, format) || only_ours(inner, format));
        free(inner);
    }
    if (d) closedir(d);
    return ours;
}

/* A folder goes with all that it holds: only an image of the same format, or nothing, may be lost by that. */
static fv_status check_folder(const char *path, fv_error *error) {
    const fv_format *format;
    struct stat      s;
    if (fv__is_remote(path) || lstat(path, &s) || !S_ISDIR(s.st_mode)) return FV_OK;
    bool table = fv__table_format_for(path) != NULL;
    bool image = !table && fv__format_for_writing(path, &format, NULL) == FV_OK && format->folder;
    if (only_ours(path, image ? format : NULL) || (image && has_mark(path, format))) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE,
                   "%s is a folder of other files%s%s, and is never replaced; move it away or write to another name", path,
                   image ? ", not an image in the format " : "", image ? format->name : "");
}

fv_status fv__outputs_check(fv_outputs *outputs, const char *path, fv_error *error) {
    identity id;
    fv_hash  key;
    FV_TRY(fv__outputs_check_name(path, error));
    if (fv__slices_named(path)) return outputs->overwrite ? FV_OK : fv__slices_check(path, error);
    if (!identify(path, &id) || fv__ledger_find(outputs->ledger, file_hash(path, &id), &key)) return FV_OK;
    bool broke_off = fv__is_remote(path) && fv__ledger_find(outputs->ledger, sending_hash(path), &key);
    if (broke_off && (key.low || key.high)) return FV_OK; /* a kill left it without its line */
    FV_TRY(check_folder(path, error));
    if (outputs->overwrite) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "%s exists and was not made by Fovea here; --overwrite replaces it", path);
}

/* Whether the parts that its header points into, or the slices of its list, are there, if it has any. */
static bool has_parts(const char *path, fv_hash key) {
    if (fv__slices_named(path)) return fv__slices_there(path);
    if (!fv__format_in_parts(path)) return true;
    char *parts = fv__parts_place(path, key);
    bool  there = fv__path_is_folder(parts);
    free(parts);
    return there;
}

bool fv__outputs_overwrite(const fv_outputs *outputs) { return outputs->overwrite; }

bool fv__outputs_made(fv_outputs *outputs, const fv_output *output) {
    identity id;
    fv_hash  made;
    return identify(output->path, &id) && fv__ledger_find(outputs->ledger, file_hash(output->path, &id), &made) &&
           fv__hash_equal(made, output->key) && has_parts(output->path, output->key);
}

bool fv__outputs_current(fv_outputs *outputs, const fv_output *output) {
    return !outputs->fresh && fv__outputs_made(outputs, output);
}

/* ---------------------------------------------------------------- temporaries */

fv_status fv__outputs_make_parent(const char *path, fv_error *error) {
    char     *copy = fv__strdup(path), *slash = strrchr(copy, '/');
    fv_status status = FV_OK;
    if (slash && slash != copy) {
        *slash = 0;
        status = fv__path_make_folders(copy, error);
    }
    free(copy);
    return status;
}

void fv__outputs_yield(fv_outputs *outputs) { outputs->yields = true; }

void fv__outputs_disclaim(const char *path) {
    fv_lease *lease;
    fv_hash   dead;
    char     *stand_in = fv__temporaries_stand_in(path);
    if (fv__lease_try(stand_in, &lease, &dead, NULL) == FV_OK) fv__lease_release(lease);
    free(stand_in);
}

static fv_status take_lease(const char *path, bool joint, fv_lease **lease, bool *taken_over, fv_error *error) {
    fv_hash dead;
    FV_TRY(fv__outputs_make_parent(path, error));
    return joint ? fv__lease_try(path, lease, &dead, error) : fv__lease_acquire(path, lease, taken_over, error);
}

static fv_status claim(fv_outputs *outputs, fv_output *output, bool joint, fv_error *error) {
    fv_lease *lease;
    char     *stand_in = fv__temporaries_stand_in(output->path);
    fv_status status = take_lease(stand_in, joint, &lease, &output->taken_over, error);
    free(stand_in);
    if (joint && status == FV_ERROR_BUSY) return FV_OK;
    FV_TRY(status);
    if (output->taken_over) fv__log("fovea: %s: the run that was writing it has died; going on from what it left", output->path);
    pthread_mutex_lock(&outputs->mutex);
    output->lease = lease;
    output->next_claimed = outputs->claimed;
    outputs->claimed = fv__output_use(output);
    pthread_mutex_unlock(&outputs->mutex);
    return FV_OK;
}

fv_status fv__outputs_claim(fv_outputs *outputs, const char *path, fv_error *error) {
    fv_output *output = fv__output_new(path, (fv_hash){ 0, 0 });
    fv_status  status = claim(outputs, output, false, error);
    fv__output_leave(output);
    return status;
}

fv_output *fv__outputs_table(fv_outputs *outputs, const char *path, fv_hash key) {
    fv_output *found = NULL;
    pthread_mutex_lock(&outputs->mutex);
    for (fv_output *o = outputs->claimed; o && !found; o = o->next_claimed)
        if (o->state == FV_OUTPUT_NEW && !strcmp(o->path, path)) found = fv__output_use(o);
    pthread_mutex_unlock(&outputs->mutex);
    if (!found) return fv__output_new(path, key);
    found->key = key;
    return found;
}

fv_status fv__outputs_begin(fv_outputs *outputs, fv_output *output, fv_output_way way, fv_output_list *list, fv_error *error) {
    bool              parallel = output->file && output->file->layout.parallel, joint = way == FV_OUTPUT_JOINT;
    fv_temporary_kind kind = parallel ? FV_TEMPORARY_TAKEN_UP : joint ? FV_TEMPORARY_ADDED : FV_TEMPORARY_FIXED;
    if (way == FV_OUTPUT_OWN) kind = FV_TEMPORARY_NEW;
    if (!output->lease) FV_TRY(claim(outputs, output, joint, error));
    char     *name = fv__temporaries_name(outputs->temporaries, output->path, output->key, kind, output->taken_over || joint);
    fv_status status = fv__output_open(output, name, fv__hash_bytes(name, strlen(name)), list, error);
    free(name);
    return status;
}

static void give_back(fv_outputs *outputs, fv_output *output, fv_output_state state) {
    fv_lease *lease;
    pthread_mutex_lock(&outputs->mutex);
    lease = output->lease;
    output->lease = NULL;
    for (fv_output **o = &outputs->claimed; *o; o = &(*o)->next_claimed)
        if (*o == output) {
            *o = output->next_claimed;
            break;
        }
    pthread_mutex_unlock(&outputs->mutex);
    if (lease) fv__lease_release(lease);
    output->state = state;
    if (lease) fv__output_leave(output);
}

void fv__outputs_abandon(fv_outputs *outputs, fv_output *output) { give_back(outputs, output, FV_OUTPUT_GIVEN_UP); }

static bool still_ours(fv_outputs *outputs, const fv_output *output) {
    pthread_mutex_lock(&outputs->mutex);
    bool ours = !output->lease || fv__lease_held(output->lease);
    pthread_mutex_unlock(&outputs->mutex);
    return ours;
}

/* ---------------------------------------------------------------- commit */

/* The folders above an output that lies inside another one, whose time must not change: that is how it is known again. */
static fv_status make_inside(const char *path, size_t around, fv_error *error) {
    char       *outer = fv__sprintf("%.*s", (int)around, path);
    struct stat s;
    bool        there = !stat(outer, &s);
    fv_status   status = fv__outputs_make_parent(path, error);
    if (there) utimensat(AT_FDCWD, outer, (struct timespec[]){ s.st_atim, s.st_mtim }, 0);
    free(outer);
    return status;
}

/* A folder and what lies inside it get their names one after the other: the lock is on the folder that holds it. */
static int lock_neighbours(const char *path, size_t around) {
    char  *outer = around ? fv__sprintf("%.*s", (int)around, path) : fv__strdup(path), *place = fv__outputs_place(outer);
    size_t length = (size_t)(fv__path_name(place) - place);
    place[length > 1 ? length - 1 : 1] = 0;
    int lock = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fv__io_enter();
    if (lock >= 0) flock(lock, LOCK_EX);
    fv__io_leave();
    free(outer);
    free(place);
    return lock;
}

static fv_status name_folder(const fv_format *format, const fv_output *p, fv_error *error) {
    size_t    around = fv__format_around(p->path);
    int       lock = lock_neighbours(p->path, around);
    fv_status status = around ? make_inside(p->path, around, error) : FV_OK;
    if (status == FV_OK && format->adopt) status = format->adopt(p->temporary, p->path, error);
    if (status == FV_OK) status = fv__path_replace(p->temporary, p->path, error);
    if (status == FV_OK && format->named) status = format->named(p->path, error);
    if (lock >= 0) close(lock);
    return status;
}

static fv_status name_parts(fv_outputs *outputs, const fv_output *p, fv_error *error) {
    FV_TRY(fv__parts_name(p->temporary, p->path, error));
    char *in_use = fv__parts_folder(p->temporary);
    fv__temporaries_outdated(outputs->temporaries, p->path, in_use);
    free(in_use);
    return FV_OK;
}

/* What is there under a remote name is only known when it is: the ledger follows it. */
static fv_status send_output(fv_outputs *outputs, const fv_output *p, fv_error *error) {
    identity id;
    fv_hash  name = sending_hash(p->path);
    FV_TRY(fv__ledger_note(outputs->ledger, &name, &p->key, 1, error));
    FV_TRY(fv__path_is_folder(p->temporary) ? fv__remote_upload(p->temporary, p->path, error)
                                            : fv__remote_put_file(p->temporary, p->path, error));
    FV_TRY(fv__path_remove(p->temporary, error));
    if (!identify(p->path, &id)) return fv_fail(error, FV_ERROR_IO, "%s was written but cannot be found", p->path);
    fv_hash file = file_hash(p->path, &id);
    FV_TRY(fv__ledger_add(outputs->ledger, &file, &p->key, 1, error));
    return fv__ledger_note(outputs->ledger, &name, &(fv_hash){ 0 }, 1, error);
}

fv_status fv__output_give_name(const fv_output *p, fv_error *error) {
    const fv_format *format;
    if (fv__slices_named(p->path)) return fv__slices_give_names(p->temporary, p->path, error);
    if (fv__format_for_writing(p->path, &format, NULL) == FV_OK && format->folder) return name_folder(format, p, error);
    if (fv__format_in_parts(p->path)) return fv__parts_name(p->temporary, p->path, error);
    return fv__path_replace(p->temporary, p->path, error);
}

static fv_status name_output(fv_outputs *outputs, const fv_output *p, fv_error *error) {
    if (!still_ours(outputs, p))
        return fv_fail(error, FV_ERROR_BUSY, "%s was taken over by another run while this one stood still", p->path);
    if (fv__is_remote(p->path)) return send_output(outputs, p, error);
    if (!fv__slices_named(p->path) && fv__format_in_parts(p->path)) return name_parts(outputs, p, error);
    return fv__output_give_name(p, error);
}

/* The finished file or folder that will be found under the output's name. */
static bool identify_finished(const fv_output *p, identity *id) {
    bool  slices = fv__slices_named(p->path), parts = !slices && fv__format_in_parts(p->path);
    char *header = slices ? fv__slices_list_inside(p->temporary) : parts ? fv__parts_header(p->temporary) : NULL;
    bool  there = identify_file(header ? header : p->temporary, id);
    free(header);
    return there;
}

static void keep_failure(fv_outputs *outputs, fv_status status, const fv_error *error) {
    if (status == FV_OK) return;
    pthread_mutex_lock(&outputs->mutex);
    if (outputs->failure.code == FV_OK) outputs->failure = *error;
    pthread_mutex_unlock(&outputs->mutex);
}

/* Those of the batch whose temporaries are there, and what the ledger has to say about them. */
static int look_at(fv_outputs *outputs, fv_output *const *batch, int count, fv_output **there, fv_hash *files, fv_hash *keys) {
    int n = 0;
    for (int i = 0; i < count; i++) {
        identity id;
        fv_error error = { 0 };
        if (outputs->yields && !still_ours(outputs, batch[i]))
            fv__path_remove(batch[i]->temporary, NULL);
        else if (identify_finished(batch[i], &id)) {
            there[n] = batch[i];
            files[n] = file_hash(batch[i]->path, &id);
            keys[n++] = batch[i]->key;
        } else
            keep_failure(outputs, fv_fail(&error, FV_ERROR_IO, "%s: its temporary file has vanished", batch[i]->path), &error);
    }
    return n;
}

/* Files and the lines of the ledger that tell whose they are: none has its name before all are durable. */
static fv_status sync_temporaries(fv_outputs *outputs, fv_output *const *there, int count, fv_error *error) {
    fv_paths all = { 0 };
    fv__paths_add(&all, fv__ledger_path(outputs->ledger));
    for (int i = 0; i < count; i++) {
        for (size_t k = 0; k < there[i]->unsynced.count; k++) fv__paths_add(&all, there[i]->unsynced.path[k]);
        fv__paths_add(&all, there[i]->temporary);
    }
    fv_status status = fv__paths_sync(all.path, all.count, error);
    fv__paths_release(&all);
    return status;
}

/* The folder of an output inside another one is away for a moment while that one is replaced. */
static fv_status sync_name(const char *path, fv_error *error) {
    size_t    around = fv__format_around(path);
    int       lock = around ? lock_neighbours(path, around) : -1;
    fv_status status = fv__path_sync_folder(path, error);
    if (lock >= 0) close(lock);
    return status;
}

/* The names are durable when the folders are; most outputs of a run lie in one. */
static void name_outputs(fv_outputs *outputs, fv_output *const *there, int count) {
    char    *folder = NULL;
    fv_error error = { 0 };
    for (int i = 0; i <= count; i++) {
        const char *path = i < count ? there[i]->path : NULL;
        size_t      length = path ? (size_t)(fv__path_name(path) - path) : 0;
        bool        same = folder && path && strlen(folder) == length && !strncmp(folder, path, length);
        bool        local = folder && !fv__is_remote(folder);
        if (local && !same) keep_failure(outputs, sync_name(there[i - 1]->path, &error), &error);
        if (!path) break;
        if (!same) {
            free(folder);
            folder = fv__sprintf("%.*s", (int)length, path);
        }
        fv_status named = name_output(outputs, there[i], &error);
        keep_failure(outputs, named, &error);
        if (named == FV_OK) there[i]->state = FV_OUTPUT_NAMED;
    }
    free(folder);
}

/* The files and their keys, and the files once more as results of each collection. */
static fv_status note_outputs(fv_outputs *outputs, const fv_hash *files, const fv_hash *keys, int count, fv_error *error) {
    int      lines = count * (1 + outputs->npatterns);
    fv_hash *all = fv__alloc((size_t)(2 * lines) * sizeof *all), *of = all + lines;
    for (int i = 0; i < lines; i++) {
        int pattern = i / count - 1;
        all[i] = pattern < 0 ? files[i] : result_hash(files[i % count], outputs->patterns[pattern]);
        of[i] = keys[i % count];
    }
    fv_status status = fv__ledger_note(outputs->ledger, all, of, lines, error);
    free(all);
    return status;
}

static fv_status commit_batch(fv_outputs *outputs, fv_output *const *batch, int count) {
    fv_error   error = { 0 };
    fv_hash    files[BATCH], keys[BATCH];
    fv_output *there[BATCH];
    int        n = look_at(outputs, batch, count, there, files, keys);
    fv_status  status = n ? note_outputs(outputs, files, keys, n, &error) : FV_OK;
    if (status == FV_OK && n) status = sync_temporaries(outputs, there, n, &error);
    keep_failure(outputs, status, &error);
    if (status == FV_OK) name_outputs(outputs, there, n);
    for (int i = 0; i < count; i++) {
        give_back(outputs, batch[i], batch[i]->state == FV_OUTPUT_NAMED ? FV_OUTPUT_NAMED : FV_OUTPUT_GIVEN_UP);
        fv__output_leave(batch[i]);
    }
    return status;
}

/* Takes the waiting ones off the list, so that the mutex is not held while files are synced. */
static int take_batch(fv_outputs *outputs, fv_output **batch) {
    int count = outputs->nwaiting;
    memcpy(batch, outputs->waiting, (size_t)count * sizeof(fv_output *));
    outputs->nwaiting = 0;
    return count;
}

static fv_status take_failure(fv_outputs *outputs, fv_error *error) {
    pthread_mutex_lock(&outputs->mutex);
    fv_status status = outputs->failure.code;
    if (status != FV_OK && error) *error = outputs->failure;
    outputs->failure.code = FV_OK;
    pthread_mutex_unlock(&outputs->mutex);
    return status;
}

fv_status fv__outputs_done(fv_outputs *outputs, fv_output *output, fv_error *error) {
    fv_output *batch[BATCH];
    int        count = 0;
    pthread_mutex_lock(&outputs->mutex);
    if (!outputs->nwaiting) outputs->oldest = fv__now();
    outputs->waiting[outputs->nwaiting++] = fv__output_use(output);
    output->state = FV_OUTPUT_COMPLETE;
    if (outputs->nwaiting == BATCH || fv__now() - outputs->oldest > 1) count = take_batch(outputs, batch);
    pthread_mutex_unlock(&outputs->mutex);
    if (count && commit_batch(outputs, batch, count) == FV_ERROR_FULL) return take_failure(outputs, error);
    return FV_OK;
}

fv_status fv__outputs_commit(fv_outputs *outputs, fv_error *error) {
    fv_output *batch[BATCH];
    pthread_mutex_lock(&outputs->mutex);
    int count = take_batch(outputs, batch);
    pthread_mutex_unlock(&outputs->mutex);
    commit_batch(outputs, batch, count);
    return take_failure(outputs, error);
}

/* ---------------------------------------------------------------- why it is made again */

static void describe(const fv_node *node, bool *seen, fv_bytes *out) {
    if (!node->op || seen[node->id]) return;
    seen[node->id] = true;
    for (int i = 0; i < node->ninputs; i++)
        if (node->in[i]) describe(node->in[i], seen, out);
    fv__bytes_printf(out, "%s(", fv__node_label(node));
    if (strcmp(fv__node_label(node), node->op->name)) fv__bytes_printf(out, "%s: ", node->op->name);
    for (int i = 0; i < node->ninputs; i++) /* constants have no line of their own */
        if (node->in[i] && !node->in[i]->op)
            fv__bytes_printf(out, "%s = %g, ", node->op->inputs[i].name, fv__scalar_number(&node->in[i]->value));
    fv__params_format(node->op, node->params, out);
    if (out->size > 2 && !memcmp(out->data + out->size - 2, ", ", 2)) out->size -= 2;
    fv__bytes_printf(out, ") version %d", node->op->version);
    if (node->op->identity) { /* sources: their identity is not in the parameters */
        char hex[33];
        fv__hash_format(node->key, hex);
        hex[8] = 0;
        fv__bytes_printf(out, ", contents %s", hex);
    }
    fv__bytes_printf(out, "\n");
}

/* A line of which only the part from `same` on is new: what comes long before that is left out. */
static void show_from(const char *line, size_t length, size_t same, char *text, int size) {
    enum { LEAD = 40 };
    size_t skipped = same > LEAD && length >= (size_t)size ? same - LEAD : 0;
    while (skipped && ((uint8_t)line[skipped] & 0xc0) == 0x80) skipped--;
    char *shown = fv__sprintf("%s%.*s", skipped ? "..." : "", (int)(length - skipped), line + skipped);
    fv_text_cut(shown, text, size);
    free(shown);
}

/* First line that differs, in both texts. */
static void first_difference(const char *old, const char *new, char *was, char *is, int size) {
    for (;;) {
        size_t a = strcspn(old, "\n"), b = strcspn(new, "\n");
        if (a != b || strncmp(old, new, a) || !a) {
            size_t same = 0;
            while (same < a && same < b && old[same] == new[same]) same++;
            show_from(old, a, same, was, size);
            show_from(new, b, same, is, size);
            return;
        }
        old += a + 1;
        new += b + 1;
    }
}

void fv__outputs_explain(fv_outputs *outputs, const fv_sink *sink, const fv_graph *graph) {
    fv_bytes new = { 0 }, old = { 0 };
    bool *seen = fv__calloc((size_t)graph->nnodes);
    char  hex[33], was[200], is[200];
    describe(sink->value, seen, &new);
    fv__bytes_append(&new, "", 1);
    fv__hash_format(file_hash(sink->file, &(identity){ 0 }), hex);
    char *note = fv__sprintf("%s/%s", outputs->folder, hex);
    if (identify(sink->file, &(identity){ 0 }) && fv__file_read_all(note, 1 << 20, &old, NULL) == FV_OK) {
        first_difference((char *)old.data, (char *)new.data, was, is, sizeof was);
        if (outputs->fresh)
            fv__log("fovea: %s is made again: --fresh was given", sink->file);
        else if (*was || *is)
            fv__log("fovea: %s is made again: it was %s, now %s", sink->file, *was ? was : "less", *is ? is : "less");
        else
            fv__log("fovea: %s is made again: the file was changed, or other write options were given", sink->file);
    }
    if (fv__path_make_folders(outputs->folder, NULL) == FV_OK) fv__file_write_all(note, new.data, new.size - 1, false, NULL);
    fv__bytes_release(&new);
    fv__bytes_release(&old);
    free(seen);
    free(note);
}
