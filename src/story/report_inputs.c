/* What a run has read: files with size, time and hash, and whether they are still the same. */
#include "base/file.h"
#include "base/sha256.h"
#include "story/story_parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SHOWN = 100 };

static bool hash_file(const char *path, char hex[65]) {
    uint8_t   digest[32];
    size_t    room = 1 << 20;
    int       fd;
    ssize_t   got = -1;
    fv_sha256 sha;
    if (fv__file_open_read(path, &fd, NULL) != FV_OK) return false;
    char *piece = fv__alloc(room);
    fv__sha256_init(&sha);
    while ((got = read(fd, piece, room)) > 0) fv__sha256_add(&sha, piece, (size_t)got);
    free(piece);
    close(fd);
    fv__sha256_finish(&sha, digest);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return got == 0;
}

/* The hash is that of the run's input only if the file was not touched since. */
static void put_hash(fv_bytes *out, const fv_input_file *file, int64_t *limit) {
    fv_file_id id = { 0 };
    char       hex[65];
    if (!fv__story_may_open(file->path))
        fv__bytes_printf(out, "an address, which the report does not ask");
    else if (fv__file_identify(file->path, &id, NULL) != FV_OK)
        fv__bytes_printf(out, "not there any more, or not to be reached from here");
    else if (file->size >= 0 && (id.size != file->size || id.mtime_ns != file->mtime_ns))
        fv__bytes_printf(out, "changed since the run");
    else if (fv__path_is_folder(file->path))
        fv__bytes_printf(out, "a folder");
    else if (id.size > *limit)
        fv__bytes_printf(out, "unchanged; <code>--hash</code> reads it");
    else if (hash_file(file->path, hex)) {
        *limit -= id.size;
        fv__bytes_printf(out, "<code class=\"hash\">%s</code>", hex);
    } else
        fv__bytes_printf(out, "cannot be read");
}

static void put_row(fv_bytes *out, const fv_input_file *file, int64_t *limit) {
    char words[FV_WORDS];
    fv__bytes_printf(out, "<tr><td>");
    fv__html_text(out, file->path);
    fv__bytes_printf(out, "</td><td class=\"n\">");
    if (file->size >= 0) fv__html_text(out, fv__say_bytes((double)file->size, words));
    fv__bytes_printf(out, "</td><td>");
    if (file->mtime_ns) fv__html_text(out, fv__say_time((double)file->mtime_ns * 1e-9, words));
    fv__bytes_printf(out, "</td><td>");
    put_hash(out, file, limit);
    fv__bytes_printf(out, "</td></tr>\n");
}

void fv__put_inputs(fv_bytes *out, const fv_story *story, int64_t limit) {
    const fv_run_graph *g = story->graph;
    char                words[FV_WORDS];
    fv__bytes_printf(out, "<h3>Inputs</h3>\n");
    if (g->large) {
        fv__bytes_printf(
            out, "<p>They are too many to be listed; <code>manifest.json</code> in the folder of the run has them.</p>\n");
        return;
    }
    if (!g->ninputs) {
        fv__bytes_printf(out, "<p>No file was read.</p>\n");
        return;
    }
    double bytes = 0;
    for (int64_t i = 0; i < g->ninputs; i++) bytes += (double)FV_MAX(g->inputs[i].size, 0);
    fv__html_printf(out, "%s file%s", fv__say_count(g->ninputs, words), g->ninputs == 1 ? "" : "s");
    fv__html_printf(out, ", %s", fv__say_bytes(bytes, words));
    if (g->ninputs > SHOWN) fv__bytes_printf(out, "; the first %d are listed", SHOWN);
    fv__bytes_printf(out, ".\n<table><tr><th>file</th><th>size</th><th>changed</th><th>SHA-256, as of this report</th></tr>\n");
    for (int64_t i = 0; i < FV_MIN(g->ninputs, SHOWN); i++) put_row(out, &g->inputs[i], &limit);
    fv__bytes_printf(out, "</table>\n");
}
