/* The lists of trusted texts: lines as sha256sum prints them. */
#include "api/trust.h"
#include "api/pipeline_parts.h"
#include "base/file.h"
#include "base/sha256.h"
#include "cluster/cluster_profile.h"
#include <ctype.h>
#include <errno.h>
#include <fovea/trust.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST = 1 << 20, HEX = 64 };

typedef struct lists {
    char *path[2]; /* the site's, and the user's own */
} lists;

static lists find_lists(void) {
    lists l = { 0 };
    fv__settings_folders(l.path);
    for (int i = 0; i < 2; i++) {
        char *folder = l.path[i];
        l.path[i] = fv__path_inside(folder, "trusted");
        free(folder);
    }
    return l;
}

static void lists_release(lists *l) {
    for (int i = 0; i < 2; i++) free(l->path[i]);
}

static void hash_text(const void *text, size_t size, char hex[HEX + 1]) {
    fv_sha256 sha;
    uint8_t   digest[32];
    fv__sha256_init(&sha);
    fv__sha256_add(&sha, text, size);
    fv__sha256_finish(&sha, digest);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* Nobody but its owner, who is the user or the system, may have written it. A list that is not there is empty. */
static fv_status read_list(const char *path, fv_bytes *text, fv_error *error) {
    struct stat st;
    fv__bytes_clear(text);
    if (stat(path, &st)) {
        fv__bytes_append(text, "", 1);
        return FV_OK;
    }
    if ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & 022)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s is not believed, because somebody else may have written it; it must be yours, and `chmod 600` keeps "
                       "others out",
                       path);
    return fv__file_read_all(path, LONGEST, text, error);
}

/* Start of the line with this hash; NULL: there is none. */
static char *find_line(const fv_bytes *text, const char *hex) {
    for (char *line = (char *)text->data; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (!strncmp(line, hex, HEX) && !isalnum((unsigned char)line[HEX])) return line;
    return NULL;
}

bool fv__text_trusted(const void *text, size_t size) {
    char     hex[HEX + 1];
    lists    l = find_lists();
    fv_bytes list = { 0 };
    fv_error error = { 0 };
    bool     trusted = false;
    hash_text(text, size, hex);
    for (int i = 0; i < 2 && !trusted; i++) {
        if (read_list(l.path[i], &list, &error) == FV_OK)
            trusted = find_line(&list, hex);
        else
            fv__log_failure("%s", error.message);
    }
    fv__bytes_release(&list);
    lists_release(&l);
    return trusted;
}

/* A line of the list, whatever the name holds. */
static void put_line(fv_bytes *list, const char *hex, const char *name) {
    fv__bytes_printf(list, "%s  ", hex);
    for (const char *c = name; *c; c++) fv__bytes_append(list, (unsigned char)*c < 32 ? "?" : c, 1);
    fv__bytes_append(list, "\n", 1);
}

/* The list without the text's line, and with a new one if it is trusted now. */
static fv_status change_list(const char *path, const fv_pipeline *p, bool trusted, fv_error *error) {
    fv_bytes list = { 0 };
    char     hex[HEX + 1], *line, *folder = fv__sprintf("%.*s", (int)(fv__path_name(path) - path), path),
                              *name = realpath(p->name, NULL), *made = fv__sprintf("%s.%d", path, (int)getpid());
    hash_text(p->text.data, p->text.size, hex);
    fv_status status = read_list(path, &list, error);
    while (status == FV_OK && (line = find_line(&list, hex))) {
        char *next = line + strcspn(line, "\n");
        next += *next == '\n';
        memmove(line, next, strlen(next) + 1);
    }
    if (status == FV_OK) {
        list.size = strlen((char *)list.data);
        if (list.size && list.data[list.size - 1] != '\n') fv__bytes_append(&list, "\n", 1);
        if (trusted) put_line(&list, hex, name ? name : p->name);
        status = fv__path_make_folders(folder, error);
    }
    if (status == FV_OK) status = fv__file_write_all(made, list.data, list.size, true, error);
    if (status == FV_OK && chmod(made, 0600)) status = fv_fail(error, FV_ERROR_IO, "cannot change %s: %s", made, strerror(errno));
    if (status == FV_OK) status = fv__path_replace(made, path, error);
    fv__bytes_release(&list);
    free(folder);
    free(name);
    free(made);
    return status;
}

fv_status fv_pipeline_trust(const fv_pipeline *p, bool trusted, char **list, fv_error *error) {
    lists     l = find_lists();
    fv_status status = change_list(l.path[1], p, trusted, error);
    *list = status == FV_OK ? fv__strdup(l.path[1]) : NULL;
    lists_release(&l);
    return status;
}

fv_status fv_trusted_list(char **text, fv_error *error) {
    lists     l = find_lists();
    fv_bytes  list = { 0 }, all = { 0 };
    fv_status status = FV_OK;
    for (int i = 0; i < 2 && status == FV_OK; i++) {
        status = read_list(l.path[i], &list, error);
        if (status == FV_OK) fv__bytes_append(&all, list.data, strlen((char *)list.data));
    }
    fv__bytes_append(&all, "", 1);
    *text = (char *)all.data;
    fv__bytes_release(&list);
    lists_release(&l);
    return status;
}
