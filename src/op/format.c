/* Finding formats and sharing open readers. */
#include "op/format.h"
#include "base/remote.h"
#include "base/session.h"
#include "op/output_slices.h"
#include "op/registry.h"
#include "op/table_parts.h"
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Length of the longest of the extensions that the path ends in; 0 if none. */
static size_t match(const char *path, const char *extensions) {
    size_t best = 0;
    char   word[32];
    for (const char *p = extensions; *p;) {
        size_t n = strcspn(p, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        if (n > best && fv__path_has_extension(path, word)) best = n;
        p += n + strspn(p + n, " ");
    }
    return best;
}

static bool has_magic(const fv_format *format, const uint8_t *start, size_t size) {
    for (int i = 0; i < FV_COUNT(format->magic) && format->magic[i].bytes; i++) {
        size_t offset = (size_t)format->magic[i].offset, n = (size_t)format->magic[i].size;
        if (offset + n <= size && !memcmp(start + offset, format->magic[i].bytes, n)) return true;
    }
    return false;
}

/* How many there are; none of a folder, nor, with the reason in error, where they cannot be had. */
static size_t first_bytes(const char *path, uint8_t *start, size_t most, fv_error *error) {
    int        fd;
    fv_file_id id;
    if (fv__path_is_folder(path) || fv__file_identify(path, &id, error) != FV_OK) return 0;
    if (id.size <= 0 || fv__file_open_read(path, &fd, error) != FV_OK) return 0;
    size_t size = FV_MIN(most, (size_t)id.size);
    if (fv__file_read_at(fd, start, size, 0, path, error) != FV_OK) size = 0;
    close(fd);
    return size;
}

static const fv_format *by_magic(const char *path, fv_error *error) {
    uint8_t start[1024];
    size_t  size = first_bytes(path, start, sizeof start, error);
    for (int i = 0; size && i < fv__format_count(); i++)
        if (fv__format_at(i)->open && has_magic(fv__format_at(i), start, size)) return fv__format_at(i);
    return NULL;
}

/* The format of a folder of files that are one image: what the first of them in order of name is. */
static const fv_format *by_series(const char *path) {
    struct dirent  **names = NULL;
    const fv_format *found = NULL;
    int              count = fv__path_is_folder(path) ? scandir(path, &names, NULL, alphasort) : 0;
    for (int i = 0; i < count; i++) {
        char *file = fv__sprintf("%s/%s", path, names[i]->d_name);
        if (!found && names[i]->d_name[0] != '.' && !fv__path_is_folder(file)) found = by_magic(file, NULL);
        if (found && !found->series) found = NULL;
        free(file);
        free(names[i]);
    }
    free(names);
    return found;
}

/* The format of a folder that holds one of the files that tell it. */
static const fv_format *by_marks(const char *path) {
    for (int i = 0; i < fv__format_count(); i++)
        for (const char *p = fv__format_at(i)->marks; p && *p;) {
            size_t n = strcspn(p, " ");
            char  *file = fv__sprintf("%s/%.*s", path, (int)n, p);
            bool   there = fv__file_exists(file);
            free(file);
            if (there) return fv__format_at(i);
            p += n + strspn(p + n, " ");
        }
    return NULL;
}

/* The format of a folder whose name are the first `length` characters. */
static const fv_format *folder_format(const char *path, size_t length) {
    char            *name = fv__sprintf("%.*s", (int)length, path);
    const fv_format *found = NULL;
    for (int i = 0; i < fv__format_count() && !found; i++)
        if (fv__format_at(i)->folder && match(name, fv__format_at(i)->extensions)) found = fv__format_at(i);
    free(name);
    return found;
}

bool fv__format_is_folder(const char *path) { return folder_format(path, strlen(path)) != NULL; }

size_t fv__format_around(const char *path) {
    for (int i = 0; i < fv__format_count(); i++)
        if (match(path, fv__format_at(i)->extensions)) return 0;
    for (size_t length = 1, end = fv__path_length(path); length < end; length++)
        if (path[length] == '/' && path[length - 1] != '/' && folder_format(path, length)) return length;
    return 0;
}

typedef struct kind_of_file { /* in a folder */
    char extension[24];
    int  count;
} kind_of_file;

/* Counts a file under its extension, if that is one of an image. */
static void count_image(const char *name, kind_of_file *kinds, int *nkinds, int most) {
    size_t length = 0;
    for (int i = 0; i < fv__format_count(); i++)
        if (fv__format_at(i)->open) length = FV_MAX(length, match(name, fv__format_at(i)->extensions));
    const char *extension = name + strlen(name) - length;
    int         k = 0;
    while (k < *nkinds && strcmp(kinds[k].extension, extension)) k++;
    if (!length || k == most || length >= sizeof kinds->extension) return;
    if (k == *nkinds) {
        snprintf(kinds[k].extension, sizeof kinds[k].extension, "%s", extension);
        ++*nkinds;
    }
    kinds[k].count++;
}

/* A folder that is no image: what to write to read what it holds. */
static fv_status explain_folder(const char *path, fv_error *error) {
    kind_of_file   kinds[8] = { { "", 0 } };
    int            nkinds = 0, best = 0, length = (int)fv__path_length(path);
    bool           deeper = false;
    DIR           *folder = opendir(path);
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        if (*entry->d_name == '.') continue;
        char *file = fv__path_inside(path, entry->d_name);
        bool  plain = fv__path_is_folder(file) && !fv__format_is_folder(file);
        if (plain)
            deeper = true;
        else
            count_image(entry->d_name, kinds, &nkinds, FV_COUNT(kinds));
        free(file);
    }
    if (folder) closedir(folder);
    for (int k = 1; k < nkinds; k++)
        if (kinds[k].count > kinds[best].count ||
            (kinds[k].count == kinds[best].count && strcmp(kinds[k].extension, kinds[best].extension) < 0))
            best = k;
    if (nkinds)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s is a folder with %d .%s file%s%s: \"%.*s/*.%s\" reads each as an image of its own, and with "
                       "stack = \"z\" they are the slices of one",
                       path, kinds[best].count, kinds[best].extension, kinds[best].count == 1 ? "" : "s",
                       nkinds > 1 ? " and others" : "", length, path, kinds[best].extension);
    return fv_fail(error, FV_ERROR_USAGE, "%s is a folder that holds no image files%s%.*s%s", path,
                   deeper ? "; a pattern such as \"" : "", deeper ? length : 0, path,
                   deeper ? "/**/*.tif\" searches the folders in it" : "");
}

static fv_status find(const char *path, bool writing, const fv_format **format, fv_error *error) {
    size_t best = 0;
    *format = NULL;
    for (int i = 0; i < fv__format_count(); i++) {
        const fv_format *candidate = fv__format_at(i);
        if (writing ? !candidate->layout : !candidate->open) continue;
        size_t length = writing && candidate->per_slice && fv__slices_named(path) ? SIZE_MAX : match(path, candidate->extensions);
        if (length > best) {
            best = length;
            *format = candidate;
        }
    }
    size_t around = *format ? 0 : fv__format_around(path);
    if (around) *format = folder_format(path, around);
    bool     folder = fv__path_is_folder(path);
    fv_error reason = { 0 };
    if (!*format && !writing) *format = folder ? by_marks(path) : by_magic(path, &reason);
    if (!*format && !writing && folder) *format = by_series(path);
    if (*format) return FV_OK;
    if (reason.code != FV_OK && fv__file_exists(path)) return fv_fail(error, reason.code, "%s", reason.message);
    if (folder && !writing) return explain_folder(path, error);
    fv_bytes known = { 0 };
    for (int i = 0; i < fv__format_count(); i++) {
        const fv_format *candidate = fv__format_at(i);
        bool             fits = writing ? candidate->layout != NULL : candidate->open != NULL;
        if (fits && *candidate->extensions) fv__bytes_printf(&known, " %s", candidate->extensions);
    }
    fv_fail(error, FV_ERROR_USAGE, "%s: no image format has this extension; known for %s:%s", path,
            writing ? "writing" : "reading", known.data ? (char *)known.data : "");
    fv__bytes_release(&known);
    return FV_ERROR_USAGE;
}

fv_status fv__format_for_reading(const char *path, const fv_format **format, fv_error *error) {
    return find(path, false, format, error);
}
fv_status fv__format_for_writing(const char *path, const fv_format **format, fv_error *error) {
    FV_TRY(find(path, true, format, error));
    if (!fv__is_remote(path)) return FV_OK;
    bool parts = (*format)->parts && match(path, (*format)->parts);
    if (!parts && !(*format)->per_slice && !fv__format_around(path)) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE,
                   "%s: to http and s3 only whole images are written, in one file or as Zarr, and this one %s", path,
                   parts                  ? "has its voxels in files beside it"
                   : (*format)->per_slice ? "has a file for each slice"
                                          : "lies inside another");
}

bool fv__format_in_parts(const char *path) {
    const fv_format *format;
    return find(path, true, &format, NULL) == FV_OK && format->parts && match(path, format->parts);
}

const fv_table_format *fv__table_format_for(const char *path) {
    const fv_table_format *found = NULL;
    size_t                 best = 0;
    for (int i = 0; i < fv__table_format_count(); i++) {
        size_t length = match(path, fv__table_format_at(i)->extensions);
        if (length > best) {
            best = length;
            found = fv__table_format_at(i);
        }
    }
    return found;
}

const fv_table_format *fv__table_format_of_file(const char *path) {
    const fv_table_format *format = fv__table_format_for(path);
    if (format && format->holds_image && format->holds_image(path)) return NULL;
    if (fv__table_is_parts(path)) return &fv_table_of_parts;
    return format && format->open ? format : NULL;
}

fv_status fv__table_format_for_reading(const char *path, const fv_table_format **format, fv_error *error) {
    fv_bytes known = { 0 };
    uint8_t  start[32];
    *format = fv__table_is_parts(path) ? &fv_table_of_parts : fv__table_format_for(path);
    if (*format && (*format)->open) return FV_OK;
    size_t size = first_bytes(path, start, sizeof start, NULL);
    for (int i = 0; i < fv__table_format_count(); i++) {
        const fv_table_format *candidate = fv__table_format_at(i);
        size_t                 n = (size_t)candidate->magic.size;
        if (!candidate->open) continue;
        if (n && n <= size && !memcmp(start, candidate->magic.bytes, n)) {
            *format = candidate;
            fv__bytes_release(&known);
            return FV_OK;
        }
        fv__bytes_printf(&known, " %s", candidate->extensions);
    }
    fv_fail(error, FV_ERROR_USAGE, "%s: no table format has this extension; known for reading:%s", path,
            known.data ? (char *)known.data : "");
    fv__bytes_release(&known);
    return FV_ERROR_USAGE;
}

/* ---------------------------------------------------------------- shared readers
 * Invariants: 1. the mutex is held while the list is looked at, never while a file is opened or read; 2. an entry with users
 * is never closed; 3. a sequential reader has at most one user, a second one gets its own. */

enum { MOST_IDLE = 32 };
typedef struct entry {
    struct entry *next;
    fv_reader    *reader;
    char         *options;
    fv_file_id    id;
    int           users;
    int64_t       used;
} entry;

typedef struct readers { /* of a session */
    entry          *entries;
    int64_t         ticks;
    pthread_mutex_t mutex;
} readers;

/* Voxels in a file of their own are written anew without a change of the header. Those of a server are believed. */
static bool has_its_voxels(const fv_reader *reader) {
    fv_file_id id;
    if (!reader->voxels || fv__is_remote(reader->voxels)) return true;
    return fv__file_identify(reader->voxels, &id, NULL) == FV_OK && id.size == reader->voxels_id.size &&
           id.mtime_ns == reader->voxels_id.mtime_ns;
}

static bool same(const entry *e, const char *path, const char *options, const fv_file_id *id) {
    return !strcmp(e->reader->path, path) && !strcmp(e->options, options) && e->id.size == id->size &&
           e->id.mtime_ns == id->mtime_ns && has_its_voxels(e->reader);
}

static void close_entry(entry *e) {
    e->reader->format->close(e->reader);
    free(e->options);
    free(e);
}

static void begin_readers(void *part) { pthread_mutex_init(&((readers *)part)->mutex, NULL); }

static void close_readers(void *part) {
    readers *all = part;
    while (all->entries) {
        entry *e = all->entries;
        all->entries = e->next;
        close_entry(e);
    }
}

static readers *readers_here(void) {
    static const fv_session_type type = { sizeof(readers), begin_readers, close_readers };
    return fv__session_part(FV_PART_READERS, &type);
}

/* Takes the least recently used idle entries beyond the limit off the list. */
static entry *trim(readers *all) {
    entry *taken = NULL;
    for (;;) {
        int     idle = 0;
        entry **oldest = NULL;
        for (entry **p = &all->entries; *p; p = &(*p)->next)
            if (!(*p)->users) {
                idle++;
                if (!oldest || (*p)->used < (*oldest)->used) oldest = p;
            }
        if (idle <= MOST_IDLE) return taken;
        entry *e = *oldest;
        *oldest = e->next;
        e->next = taken;
        taken = e;
    }
}

/* All options in one text. The caller frees. */
static char *options_text(const fv_read_options *options) {
    fv_bytes text = { 0 };
    if (options && options->path_inside) fv__bytes_printf(&text, "%s", options->path_inside);
    if (options) fv__bytes_printf(&text, "\n%d %lld", options->has_dtype ? (int)options->dtype : -1, (long long)options->offset);
    for (int d = 0; options && d < options->ndim; d++) fv__bytes_printf(&text, " %lld", (long long)options->shape[d]);
    fv__bytes_append(&text, "", 1);
    return (char *)text.data;
}

/* An open reader that may be used; NULL: none. */
static fv_reader *find_open(const char *path, const char *options, const fv_file_id *id) {
    fv_reader *found = NULL;
    readers   *all = readers_here();
    pthread_mutex_lock(&all->mutex);
    for (entry *e = all->entries; e && !found; e = e->next)
        if (same(e, path, options, id) && !(e->reader->sequential && e->users)) {
            e->users++;
            e->used = ++all->ticks;
            found = e->reader;
        }
    pthread_mutex_unlock(&all->mutex);
    return found;
}

fv_status fv__reader_acquire(const char *path, const fv_read_options *options, fv_reader **reader, fv_error *error) {
    fv_file_id       id;
    const fv_format *format;
    FV_TRY(fv__file_identify(path, &id, error));
    char *text = options_text(options);
    *reader = find_open(path, text, &id);
    bool      open = *reader != NULL;
    fv_status status = open ? FV_OK : fv__format_for_reading(path, &format, error);
    if (status == FV_OK && !open) status = format->open(path, options, reader, error);
    if (status != FV_OK || open) {
        free(text);
        return status;
    }
    entry *e = fv__calloc(sizeof *e);
    *e = (entry){ .reader = *reader, .options = text, .id = id, .users = 1 };
    readers *all = readers_here();
    pthread_mutex_lock(&all->mutex);
    e->used = ++all->ticks;
    e->next = all->entries;
    all->entries = e;
    entry *closing = trim(all);
    pthread_mutex_unlock(&all->mutex);
    while (closing) {
        entry *next = closing->next;
        close_entry(closing);
        closing = next;
    }
    return FV_OK;
}

void fv__reader_release(fv_reader *reader) {
    readers *all = readers_here();
    pthread_mutex_lock(&all->mutex);
    for (entry *e = all->entries; e; e = e->next)
        if (e->reader == reader) e->users--;
    entry *closing = trim(all);
    pthread_mutex_unlock(&all->mutex);
    while (closing) {
        entry *next = closing->next;
        close_entry(closing);
        closing = next;
    }
}

fv_status fv__reader_read(fv_reader *reader, const fv_block *block, fv_error *error) {
    fv_region whole = fv__region_whole(&reader->type);
    if (fv__region_inside(&block->region, &whole) && block->dtype == reader->type.dtype)
        return reader->format->read(reader, block, error);
    char asked[256], there[256];
    fv__region_format(&block->region, asked, sizeof asked);
    fv__region_format(&whole, there, sizeof there);
    return fv_fail(error, FV_ERROR_INTERNAL, "%s: the voxels %s (%s) were asked for, but it has %s (%s)", reader->path, asked,
                   fv_dtype_name(block->dtype), there, fv_dtype_name(reader->type.dtype));
}

/* ---------------------------------------------------------------- helpers for formats */

void *fv__reader_new(size_t size, const fv_format *format, const char *path) {
    fv_reader *reader = fv__calloc(size);
    reader->format = format;
    reader->path = fv__strdup(path);
    return reader;
}

void fv__reader_free(fv_reader *reader) {
    fv__bytes_release(&reader->facts);
    free(reader->angles);
    free(reader->diffraction);
    free(reader->voxels);
    free(reader->path);
    free(reader);
}

fv_status fv__writer_check(const char *path, const fv_image_type *type, fv_error *error) {
    if (type->ndim >= 1 && fv_image_type_bytes(type) >= 0) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "%s: an image without axes or beyond 2^63 bytes cannot be written", path);
}

void *fv__writer_new(size_t size, const fv_format *format, const fv_image_file *file, const fv_file_layout *layout,
                     const char *temporary) {
    fv_writer *writer = fv__calloc(size);
    writer->format = format;
    writer->path = fv__strdup(temporary);
    writer->type = *file->type;
    writer->options = *file->options;
    writer->layout = *layout;
    return writer;
}

void fv__writer_free(fv_writer *writer) {
    free(writer->path);
    free(writer);
}

fv_status fv__write_options_check(const fv_format *format, const fv_write_options *options, fv_error *error) {
    const struct {
        const char *name;
        bool        given;
    } words[] = {
        { "shard", options->shard_ndim > 0 }, { "levels", options->levels > 0 },     { "version", options->version != NULL },
        { "quality", options->quality > 0 },  { "hyperstack", options->hyperstack },
    };
    for (int i = 0; i < FV_COUNT(words); i++)
        if (words[i].given && !(format->takes && strstr(format->takes, words[i].name)))
            return fv_fail(error, FV_ERROR_USAGE, "%s: the %s format has no such choice", words[i].name, format->name);
    return FV_OK;
}

fv_status fv__compression_choose(const fv_format *format, const fv_write_options *options, int *index, fv_error *error) {
    *index = 0;
    if (!options || !options->compression || !*options->compression) return FV_OK;
    int i = 0;
    for (const char *p = format->compressions ? format->compressions : ""; *p; i++) {
        size_t n = strcspn(p, "|");
        if (strlen(options->compression) == n && !strncmp(options->compression, p, n)) {
            *index = i;
            return FV_OK;
        }
        p += n + (p[n] == '|');
    }
    return fv_fail(error, FV_ERROR_USAGE, "compression = \"%s\": the %s format knows %s", options->compression, format->name,
                   format->compressions ? format->compressions : "none");
}
