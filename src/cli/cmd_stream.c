/* fovea stream: a pipeline on frames while they come in. */
#include "pipeline_options.h"
#include "stopping.h"
#include <fovea/memory.h>
#include <fovea/stream.h>
#include <fovea/text.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    FV_PIPELINE_FIELDS;
    const char *bind;
    const char *scan;
    int64_t     count;
    const char *window;
    double      silence;
    const char *preview;
    const char *to;
    const char *dead;
    const char *on_alert;
    const char *kafka_config;
    int64_t     workers;
    fv_size     memory;
    fv_size     most;
    int64_t     limit;
    int64_t     metrics;
    const char *store;
    bool        once;
    bool        overwrite;
    bool        quiet;
    bool        json;
} stream_options;

static const fv_option options[] = {
    FV_PIPELINE_OPTIONS(stream_options),
    FV_OPTION(stream_options, bind, .argument = "NAME=ADDRESS", .once = true,
              .doc =
                  "where the frames come from that the text reads by this name: watch:FOLDER, kafka://HOST:PORT/TOPIC?group=NAME "
                  "or - for standard input. NAME is a variable of the text, its pattern or the folder of that"),
    FV_OPTION(stream_options, scan, .argument = "AXIS",
              .doc = "frames of one key become slices of one image along this axis, such as angle, t or z; each scan is run when "
                     "it is complete. If left out, each frame is an image of its own"),
    FV_OPTION(stream_options, count, .min = 1, .max = 1e9, .argument = "N", .doc = "frames that make a scan complete"),
    FV_OPTION(stream_options, silence, .min = 0, .max = 1e6, .argument = "SECONDS",
              .doc = "a scan is complete when no frame came for so long"),
    FV_OPTION(stream_options, window, .argument = "N|TIME",
              .doc = "with --scan: so many frames in a row make a scan, whatever their key; or those of so long a time, such as "
                     "10s or 5m"),
    FV_OPTION(stream_options, preview, .argument = "every=N",
              .doc =
                  "run the pipeline after each N frames of a scan too, on those that are there; results are named NAME-preview. "
                  "every=N,rounds=M: solvers end after M iterations then"),
    FV_OPTION(stream_options, to, .argument = "ADDRESS", .doc = "send results there as messages, too: kafka://HOST:PORT/TOPIC"),
    FV_OPTION(stream_options, dead, .argument = "PLACE",
              .doc = "folder or kafka://HOST:PORT/TOPIC for frames that cannot be used, with the reason"),
    FV_OPTION(stream_options, on_alert, .argument = "COMMAND",
              .doc = "run this for each row that alert(...) in the text tells, with the row as JSON on its input"),
    FV_OPTION(stream_options, kafka_config, .argument = "FILE",
              .doc = "settings of the Kafka client, one key=value a line, such as security.protocol=SASL_SSL"),
    FV_OPTION(stream_options, workers, .min = 1, .max = 256, .argument = "N", .doc = "threads; all cores if left out"),
    FV_OPTION(stream_options, memory, .argument = "SIZE",
              .doc = "memory to use at most, such as 2G; half of what is free if left out"),
    FV_OPTION(stream_options, most, .argument = "SIZE", .doc = "bytes of a frame at most; larger ones are put aside"),
    FV_OPTION(stream_options, limit, .min = 1, .max = 1e15, .argument = "N", .doc = "end after so many frames"),
    FV_OPTION(stream_options, metrics, .min = 1, .max = 65535, .argument = "PORT",
              .doc = "answer Prometheus on this port, for programs of this machine"),
    FV_OPTION(stream_options, store, .argument = "FOLDER", .doc = "where the stream keeps how far it is; .fovea if left out"),
    FV_OPTION(stream_options, once, .doc = "end when there is nothing more, instead of waiting"),
    FV_OPTION(stream_options, overwrite, .doc = "replace files that Fovea did not make"),
    FV_OPTION(stream_options, quiet, .letter = 'q', .doc = "no messages but errors"),
    FV_OPTION(stream_options, json, .doc = "print what happens as lines of JSON"),
    FV_OPTION_END,
};

static const fv_absent absent[] = {
    { "engine", "a stream runs on the threads of one process. More of them share the partitions of a Kafka topic: start the same "
                "command again, here or on other machines that share the folder, or as mpiexec -n 4 fovea stream ..." },
    { "into", "results are written where the text says; start the stream in another folder instead" },
    { NULL, NULL },
};

static void print_line(void *context, const char *line) {
    (void)context;
    puts(line);
    fflush(stdout);
}

static void show(void *context, const fv_stream_facts *f) {
    bool   terminal = isatty(STDERR_FILENO);
    double seconds = f->seconds > 0 ? f->seconds : 1;
    (void)context;
    if (!terminal) return;
    fprintf(stderr, "\r\033[K%lld frame%s, %.1f a second, %lld under way, %.1f ms", (long long)f->done, f->done == 1 ? "" : "s",
            (double)f->done / seconds, (long long)f->waiting, 1e3 * f->latency);
}

static void print_summary(const fv_stream_facts *f) {
    const struct {
        const char *one, *more;
        int64_t     count;
    } all[] = { { "scan", "s", f->scans },
                { "row", "s", f->rows },
                { "failed", "", f->failed },
                { "known already", "", f->duplicate },
                { "too late", "", f->late },
                { "malformed", "", f->malformed },
                { "alert", "s", f->alerts },
                { "too large", "", f->oversized },
                { "out of order", "", f->disordered } };
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
    fprintf(stderr, "fovea: %lld of %lld frame%s done in %.2f s", (long long)f->done, (long long)f->frames,
            f->frames == 1 ? "" : "s", f->seconds);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].count)
            fprintf(stderr, ", %lld %s%s", (long long)all[i].count, all[i].one, all[i].count == 1 ? "" : all[i].more);
    fprintf(stderr, "\n");
}

/* Frames or a time. */
static bool read_window(const char *text, long long *frames, double *seconds) {
    char more;
    if (sscanf(text, "%lld%c", frames, &more) == 1) return *frames > 0;
    *frames = 0;
    return fv_time_parse(text, seconds) && *seconds >= 1e-3 && *seconds < 1e9;
}

/* "every=10" or "every=10,rounds=5". */
static bool read_preview(const char *text, long long *every, long long *rounds) {
    char more;
    int  n = sscanf(text, "every=%lld,rounds=%lld%c", every, rounds, &more);
    return *every > 0 && (n == 2 ? *rounds > 0 : sscanf(text, "every=%lld%c", every, &more) == 1);
}

static int run(const void *options_, int nargs, char **args) {
    const stream_options *o = options_;
    int                   status;
    long long             every = 0, rounds = 0, window = 0;
    double                period = 0;
    fv_error              error = { 0 };
    fv_stream_facts       facts;
    if (o->preview && !read_preview(o->preview, &every, &rounds)) {
        fv_complain("stream", "--preview %s: expected every=N, as every=10, or every=N,rounds=M", o->preview);
        return FV_EXIT_REFUSED;
    }
    if (o->window && !read_window(o->window, &window, &period)) {
        fv_complain("stream", "--window %s: expected a number of frames, as 100, or a time, as 10s or 5m", o->window);
        return FV_EXIT_REFUSED;
    }
    fv_pipeline *pipeline = fv_pipeline_from_options("stream", &o->expression, &o->set, o->chunk, nargs, args, &status);
    if (!pipeline) return status;
    fv_stream_options stream = { .bind = o->bind,
                                 .scan = o->scan,
                                 .count = o->count,
                                 .window = window,
                                 .period = period,
                                 .silence = o->silence,
                                 .preview = every,
                                 .preview_rounds = rounds,
                                 .to = o->to,
                                 .dead = o->dead,
                                 .on_alert = o->on_alert,
                                 .kafka_config = o->kafka_config,
                                 .store = o->store,
                                 .workers = (int)o->workers,
                                 .memory = o->memory.bytes,
                                 .most = o->most.bytes,
                                 .limit = o->limit,
                                 .metrics = (int)o->metrics,
                                 .overwrite = o->overwrite,
                                 .once = o->once,
                                 .event = o->json ? print_line : NULL,
                                 .printed = o->json ? NULL : print_line,
                                 .progress = o->quiet ? NULL : show,
                                 .cancel = fv_stopping(true) };
    signal(SIGPIPE, SIG_IGN);
    fv_messages(o->quiet ? 0 : 1, NULL, NULL);
    fv_status result = fv_stream(pipeline, &stream, &facts, &error);
    bool      partly = result == FV_ERROR_INPUT && facts.unused > 0;
    if (!o->quiet && (result == FV_OK || partly)) print_summary(&facts);
    if (partly) fv_complain("stream", "%s", error.message);
    status = partly ? FV_EXIT_FAILED : result == FV_OK ? FV_EXIT_WELL : fv_explain("stream", pipeline, result, &error);
    fv_pipeline_free(pipeline);
    return status;
}

const fv_command fv_cmd_stream = {
    .name = "stream",
    .brief = "run a pipeline on frames while they come in",
    .usage = "[FILE]",
    .least = 0,
    .most = 1,
    .doc = "Runs the same text as fovea run, on data that are not all there yet. Every frame counts once in files and tables, "
           "also after the stream was killed: the same command goes on where it stopped. Tables grow in SQLite databases, CSV, "
           "TSV and JSON lines.\n"
           "Ctrl-C ends it in order. Exit status: 0 all is well, 1 some frames failed or were put aside, 2 nothing was started.",
    .examples = "fovea stream count.fov --bind scans=watch:incoming\n"
                "fovea stream tomo.fov --bind scans=kafka://localhost:9092/frames?group=lab --scan angle --count 180\n"
                "python3 camera.py | fovea stream count.fov --bind scans=-",
    .options = options,
    .options_size = sizeof(stream_options),
    .absent = absent,
    .run = run,
};
