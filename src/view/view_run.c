/* The results of a run, from its folder: files that are complete, and of a solver that goes on, its last step. */
#include "base/file.h"
#include "story/run_story.h"
#include "view/view_parts.h"
#include <stdlib.h>

enum { MOST_ALONE = 6 }; /* images of one kind that are shown one by one; more of them are a collection */

typedef struct {
    char **paths;
    int    count;
} list;

static bool is_there(const char *path) { return fv__story_may_open(path) && (fv__file_exists(path) || fv__path_is_folder(path)); }

/* Takes the path over, unless it is there already or no such file is. */
static void keep(list *l, char *path) {
    bool wanted = is_there(path);
    for (int i = 0; i < l->count && wanted; i++) wanted = strcmp(l->paths[i], path) != 0;
    if (wanted) {
        l->paths = fv__realloc(l->paths, (size_t)(l->count + 1) * sizeof *l->paths);
        l->paths[l->count++] = path;
    } else
        free(path);
}

static void free_list(list *l) {
    for (int i = 0; i < l->count; i++) free(l->paths[i]);
    free(l->paths);
}

static char *placed(const fv_story *story, const char *name) {
    const char *folder = fv__story_fact(story, "folder");
    return name[0] == '/' || !folder ? fv__strdup(name) : fv__sprintf("%s/%s", folder, name);
}

/* The list of a solver's steps, which leads to the last one that is there; of formats without lists, that step itself. */
static void keep_steps(list *l, const fv_story *story, const fv_graph_part *part) {
    char *last = NULL;
    for (int k = 0; k < part->nsinks; k++) {
        const fv_graph_sink *sink = &part->sinks[k];
        bool                 more = k + 1 < part->nsinks && part->sinks[k + 1].step > sink->step;
        if (!sink->step) continue;
        if (*sink->series)
            keep(l, placed(story, sink->series));
        else {
            char *path = placed(story, sink->name);
            bool  there = is_there(path);
            free(there ? last : path);
            last = there ? path : last;
        }
        if (!more && last) keep(l, last);
        if (!more) last = NULL;
    }
}

static bool is_step(const fv_story *story, const char *name) {
    for (int p = 0; p < story->graph->nparts; p++)
        for (int k = 0; k < story->graph->parts[p].nsinks; k++) {
            const fv_graph_sink *sink = &story->graph->parts[p].sinks[k];
            if (sink->step && !strcmp(sink->name, name)) return true;
        }
    return false;
}

static void find_files(const fv_story *story, list *l) {
    int            count;
    fv_story_file *files = fv__story_outputs(story, &count);
    for (int p = 0; p < story->graph->nparts; p++) keep_steps(l, story, &story->graph->parts[p]);
    for (int i = 0; i < count; i++)
        if (!is_step(story, files[i].name)) keep(l, fv__strdup(files[i].path));
    fv__story_outputs_free(files, count);
}

/* Whether an image holds numbers of objects, which go over the others: integers of 32 bits and more. */
static bool has_labels(const char *path) {
    fv_reader *reader;
    if (fv__reader_acquire(path, &(fv_read_options){ 0 }, &reader, NULL) != FV_OK) return false;
    bool labels = fv_dtype_is_integer(reader->type.dtype) && fv_dtype_size(reader->type.dtype) >= 4;
    fv__reader_release(reader);
    return labels;
}

static const char *extension(const char *path) {
    const char *dot = strrchr(fv__path_name(path), '.');
    return dot ? dot : "";
}

static int count_alike(const list *l, int i) {
    int alike = 0;
    for (int k = 0; k < l->count; k++) alike += !strcmp(extension(l->paths[k]), extension(l->paths[i]));
    return alike;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static fv_status add_collection(fv_view_files *files, const list *l, int first, fv_error *error) {
    const char *kind = extension(l->paths[first]);
    char      **paths = fv__calloc((size_t)l->count * sizeof *paths);
    int         count = 0;
    for (int k = first; k < l->count; k++)
        if (!strcmp(extension(l->paths[k]), kind)) paths[count++] = l->paths[k];
    qsort(paths, (size_t)count, sizeof *paths, by_name); /* they became complete in any order */
    char     *name = fv__sprintf("%d results (%s)", count, *kind ? kind + 1 : "files");
    fv_status status = fv_view_files_collection(files, name, paths, count, error);
    free(name);
    free(paths);
    return status;
}

/* Images first, then labels, which lie over them; what is neither an image nor a table, such as a plot, is left out. */
static fv_status add_images(fv_view_files *files, const list *l, bool labels, fv_error *error) {
    for (int i = 0; i < l->count; i++) {
        const fv_format *format;
        bool             first = true;
        if (fv_view_is_table(l->paths[i]) || fv__format_for_reading(l->paths[i], &format, NULL) != FV_OK) continue;
        if (count_alike(l, i) > MOST_ALONE) {
            for (int k = 0; k < i; k++) first = first && strcmp(extension(l->paths[k]), extension(l->paths[i])) != 0;
            if (first && !labels) FV_TRY(add_collection(files, l, i, error));
        } else if (has_labels(l->paths[i]) == labels)
            FV_TRY(fv_view_files_image(files, l->paths[i], NULL, labels, error));
    }
    return FV_OK;
}

bool fv_view_is_run(const char *path) {
    char *manifest = fv__sprintf("%s/manifest.json", path), *graph = fv__sprintf("%s/graph.json", path);
    bool  is = fv__path_is_folder(path) && fv__file_exists(manifest) && fv__file_exists(graph);
    free(manifest);
    free(graph);
    return is;
}

fv_status fv_view_files_run(fv_view_files *files, const char *folder, fv_error *error) {
    fv_story *story;
    list      found = { 0 };
    int       before = files->nimages + files->ntables;
    FV_TRY(fv__story_open(folder, &story, error));
    find_files(story, &found);
    fv_status status = add_images(files, &found, false, error);
    if (status == FV_OK) status = add_images(files, &found, true, error);
    for (int i = 0; i < found.count && status == FV_OK; i++)
        if (fv_view_is_table(found.paths[i])) status = fv_view_files_table(files, found.paths[i], error);
    if (status == FV_OK && files->nimages + files->ntables == before)
        status =
            fv_fail(error, FV_ERROR_USAGE, "%s: no image or table of this run is complete%s; `fovea watch` shows how far it is",
                    folder, fv__story_state(story) == FV_STORY_RUNNING ? " yet" : "");
    fv__story_close(story);
    free_list(&found);
    return status;
}
