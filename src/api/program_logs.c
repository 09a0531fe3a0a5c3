/* What programs have printed: those of a run's commands, and the units of `fovea each`. */
#include "api/latest_run.h"
#include "base/file.h"
#include "store/store_place.h"
#include <dirent.h>
#include <fovea/units.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST_SHOWN = 1 << 16 }; /* bytes of one program */

typedef struct showing {
    bool     failed; /* only those */
    int64_t  count;
    fv_bytes text;
} showing;

typedef void visit(showing *s, const char *path);

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

/* Files and folders of a folder, by name. */
static void each_inside(showing *s, const char *folder, visit *see) {
    struct dirent **entries;
    int             count = scandir(folder, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            char *path = fv__path_inside(folder, entries[i]->d_name);
            see(s, path);
            free(path);
        }
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

static void show(showing *s, const char *path) {
    fv_bytes text = { 0 };
    if (!strncmp(fv__path_name(path), "environment-", 12) || fv__file_read_all(path, SIZE_MAX / 2, &text, NULL) != FV_OK) return;
    bool failed = !strncmp((char *)text.data, "state: failed", 13);
    if (failed || !s->failed) {
        size_t cut = text.size > MOST_SHOWN ? text.size - MOST_SHOWN : 0; /* the end tells why */
        fv__bytes_printf(&s->text, "==> %s <==\n", path);
        if (cut) fv__bytes_printf(&s->text, "[%lld bytes before are left out]\n", (long long)cut);
        for (size_t i = cut; i < text.size; i++) /* programs print anything, and a terminal is not to obey it */
            if (text.data[i] < 32 ? !strchr("\n\t\r", text.data[i]) || !text.data[i] : text.data[i] == 127) text.data[i] = '?';
        fv__bytes_printf(&s->text, "%s%s\n", (char *)text.data + cut, text.size && text.data[text.size - 1] == '\n' ? "" : "\n");
    }
    s->count++;
    fv__bytes_release(&text);
}

static void show_units(showing *s, const char *folder) {
    char *printed = fv__path_inside(folder, "printed");
    each_inside(s, printed, show);
    free(printed);
}

/* When a run's commands last printed something. */
static double printed(const char *folder) {
    struct stat st;
    char       *commands = fv__path_inside(folder, "commands");
    double      when = stat(commands, &st) ? 0 : (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
    free(commands);
    return when;
}

fv_status fv_units_logs(const char *store, const char *run, bool failed, int64_t *count, char **text, fv_error *error) {
    showing s = { .failed = failed };
    char   *place = fv__store_place(store, false), *runs = fv__path_inside(place, "runs"), *each = fv__path_inside(place, "each");
    char   *folder = NULL;
    fv_status status = fv__find_run(runs, run, printed, &folder, error);
    if (status == FV_OK && folder) {
        char *commands = fv__path_inside(folder, "commands");
        each_inside(&s, commands, show);
        free(commands);
    }
    if (status == FV_OK && !run) each_inside(&s, each, show_units);
    fv__bytes_append(&s.text, "", 1);
    *text = (char *)s.text.data;
    *count = s.count;
    free(folder);
    free(place);
    free(runs);
    free(each);
    return status;
}
