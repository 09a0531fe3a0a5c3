/* Watching a run. */
#include "base/host.h"
#include "store/store_place.h"
#include "story/run_story.h"
#include "story/story_parts.h"
#include "story/watch_model.h"
#include <dirent.h>
#include <fovea/watch.h>
#include <stdlib.h>
#include <unistd.h>

struct fv_watch {
    fv_story *story;
};

fv_status fv_watch_open(const char *run_folder, fv_watch **watch, fv_error *error) {
    *watch = fv__calloc(sizeof **watch);
    fv_status status = fv__story_open(run_folder, &(*watch)->story, error);
    if (status != FV_OK) {
        free(*watch);
        *watch = NULL;
    }
    return status;
}

fv_status fv_watch_look(fv_watch *watch, fv_form form, int columns, char **text, bool *over, fv_error *error) {
    *text = NULL;
    FV_TRY(fv__story_update(watch->story, error));
    fv_story_state state = fv__story_state(watch->story);
    *over = state != FV_STORY_RUNNING && state != FV_STORY_WAITING;
    *text = form == FV_FORM_JSON ? fv__watch_json(watch->story) : fv__watch_text(watch->story, columns);
    return FV_OK;
}

char *fv_watch_output(const fv_watch *watch, int number) {
    int            count;
    fv_story_file *files = fv__story_outputs(watch->story, &count);
    char          *path = number >= 0 && number < count ? fv__strdup(files[number].path) : NULL;
    fv__story_outputs_free(files, count);
    return path;
}

bool fv_picture(const char *path, void **png, size_t *size) {
    fv_bytes bytes = { 0 };
    bool     shown = fv__thumbnail_png(&bytes, path);
    *png = bytes.data;
    *size = bytes.size;
    return shown;
}

void fv_watch_close(fv_watch *watch) {
    if (!watch) return;
    fv__story_close(watch->story);
    free(watch);
}

/* Whether a run has a log of this process, whose name follows from host and number. */
static bool has_log(const char *folder, const char *beginning) {
    DIR *dir = opendir(folder);
    bool found = false;
    for (const struct dirent *entry; dir && !found && (entry = readdir(dir));)
        found = !strncmp(entry->d_name, beginning, strlen(beginning));
    if (dir) closedir(dir);
    return found;
}

char *fv_watch_find(const char *store, int pid) {
    char host[40] = "host", *place = fv__store_place(store, false), *runs = fv__sprintf("%s/runs", place), *found = NULL;
    gethostname(host, sizeof host - 1);
    char *beginning = fv__sprintf("task-%s-%d-", host, pid);
    DIR  *dir = opendir(runs);
    for (const struct dirent *entry; dir && !found && (entry = readdir(dir));) {
        char *folder = fv__sprintf("%s/%s", runs, entry->d_name);
        if (entry->d_name[0] != '.' && has_log(folder, beginning))
            found = folder;
        else
            free(folder);
    }
    if (dir) closedir(dir);
    free(beginning);
    free(runs);
    free(place);
    return found;
}
