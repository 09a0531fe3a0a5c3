/* fovea publish: replays images like a detector. */
#include "pipeline_options.h"
#include "stopping.h"
#include <fovea/stream.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *to;
    const char *rate;
    const char *key;
    const char *codec;
    const char *kafka_config;
    int64_t     first;
    bool        slices;
    bool        end;
    bool        loop;
    bool        quiet;
} publish_options;

static const fv_option options[] = {
    FV_OPTION(publish_options, to, .argument = "ADDRESS", .doc = "where the frames go: kafka://HOST:PORT/TOPIC"),
    FV_OPTION(publish_options, rate, .argument = "N/s",
              .doc = "frames a second, as 100/s, or bytes a second, as 200M/s; as fast as it goes if left out"),
    FV_OPTION(publish_options, key, .argument = "NAME",
              .doc = "scan of all frames, which are numbered in their order; if left out, each file is named after its scan and "
                     "its number there, as beads_0012.tif"),
    FV_OPTION(publish_options, slices, .doc = "the files are scans: send slices of their first axis one by one"),
    FV_OPTION(publish_options, end, .doc = "say with the last frame of a scan that it is complete"),
    FV_OPTION(publish_options, first, .min = 0, .max = 1e15, .argument = "N", .doc = "add this to the numbers of frames"),
    FV_OPTION(publish_options, codec, .choices = "none|lz4|zstd", .argument = "NAME", .doc = "pack the frames"),
    FV_OPTION(publish_options, loop, .doc = "begin again at the end, under new keys, until Ctrl-C"),
    FV_OPTION(publish_options, kafka_config, .argument = "FILE", .doc = "settings of the Kafka client, one key=value a line"),
    FV_OPTION(publish_options, quiet, .letter = 'q', .doc = "no messages but errors"),
    FV_OPTION_END,
};

static void show(void *context, int64_t frames, int64_t bytes, double seconds) {
    (void)context;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%lld frame%s, %.1f a second, %.1f MB a second", (long long)frames, frames == 1 ? "" : "s",
                (double)frames / seconds, (double)bytes / seconds / 1e6);
}

/* "100/s" frames, "200M/s" bytes. */
static bool read_rate(const char *text, fv_publish_options *o) {
    char    number[32], *end;
    int64_t bytes;
    size_t  length = strlen(text);
    if (length < 3 || length >= sizeof number || strcmp(text + length - 2, "/s")) return false;
    memcpy(number, text, length - 2);
    number[length - 2] = 0;
    o->frames = strtod(number, &end);
    if (end > number && !*end) return o->frames > 0;
    o->frames = 0;
    if (!fv_size_parse(number, &bytes) || bytes < 1) return false;
    o->bytes = (double)bytes;
    return true;
}

static bool add_files(const char *pattern, char ***files, int *count, fv_error *error) {
    char **found;
    int    n;
    if (fv_match_files(pattern, &found, &n, error) != FV_OK) return false;
    char **more = realloc(*files, (size_t)(*count + n) * sizeof **files);
    if (more) *files = more;
    for (int i = 0; more && i < n; i++) more[(*count)++] = strdup(found[i]);
    free(found);
    return more != NULL;
}

static int run(const void *options_, int nargs, char **args) {
    const publish_options *o = options_;
    fv_publish_options     publish = { .to = o->to,
                                       .key = o->key,
                                       .codec = o->codec,
                                       .kafka_config = o->kafka_config,
                                       .first = o->first,
                                       .slices = o->slices,
                                       .end = o->end,
                                       .loop = o->loop,
                                       .progress = o->quiet ? NULL : show,
                                       .cancel = fv_stopping(true) };
    fv_error               error = { 0 };
    char                 **files = NULL;
    int                    count = 0;
    int64_t                frames = 0;
    if (!o->to) {
        fv_complain("publish", "say where the frames go: --to kafka://localhost:9092/scans");
        return FV_EXIT_REFUSED;
    }
    if (o->rate && !read_rate(o->rate, &publish)) {
        fv_complain("publish", "--rate %s: expected frames or bytes a second, as 100/s or 200M/s", o->rate);
        return FV_EXIT_REFUSED;
    }
    fv_status status = FV_OK;
    for (int i = 0; i < nargs && status == FV_OK; i++)
        if (!add_files(args[i], &files, &count, &error)) status = error.code;
    if (status == FV_OK) status = fv_publish(files, count, &publish, &frames, &error);
    if (status == FV_OK && !o->quiet)
        fprintf(stderr, "%sfovea: %lld frame%s sent\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", (long long)frames,
                frames == 1 ? "" : "s");
    for (int i = 0; i < count; i++) free(files[i]);
    free(files);
    return status == FV_OK ? FV_EXIT_WELL : fv_explain("publish", NULL, status, &error);
}

const fv_command fv_cmd_publish = {
    .name = "publish",
    .brief = "send images as messages, like a detector",
    .usage = "FILE...",
    .least = 1,
    .most = -1,
    .doc = "Each file becomes a message of a Kafka topic, or each slice of it with --slices, with headers that fovea stream "
           "reads: shape, type, number, time. All frames of a scan have its name as their key, so they stay in order.",
    .examples = "fovea publish scan_*.tif --to kafka://localhost:9092/scans --rate 100/s\n"
                "fovea publish tomo.tif --slices --end --to kafka://localhost:9092/scans --rate 200M/s",
    .options = options,
    .options_size = sizeof(publish_options),
    .run = run,
};
