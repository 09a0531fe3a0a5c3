/* Live data: a pipeline on frames while they come in, from a folder, a pipe or Kafka.
 *
 *     fv_stream_options options = { .bind = "scans=watch:incoming", .once = true };
 *     fv_stream_facts   facts;
 *     if (fv_stream(pipeline, &options, &facts, &error) == FV_OK) printf("%lld frames\n", (long long)facts.done);
 *
 * Every frame counts once in the results, whatever is killed when. See docs/streaming.md.
 */
#ifndef FOVEA_STREAM_H
#define FOVEA_STREAM_H

#include <fovea/api.h>
#include <fovea/pipeline.h>

typedef struct fv_stream_facts {
    int64_t frames;                /* that came */
    int64_t done, failed;          /* results are durable; the pipeline could not do it */
    int64_t scans, previews;       /* that were done whole, and shown before */
    int64_t duplicate, late;       /* put aside: known already; after the end of their scan */
    int64_t malformed, oversized;  /* put aside: of no use */
    int64_t unused;                /* when it has ended well otherwise: failed, late, malformed and oversized together */
    int64_t disordered;            /* came after one with a higher number; done all the same */
    int64_t rows, bytes, alerts;   /* of tables; of frames; rows that the text calls alerts */
    int64_t waiting, lag;          /* here; at the source (-1: unknown) */
    double  seconds;               /* since it began */
    double  latency, latency_high; /* seconds from arrival until durable: middle and 99th of a hundred of the last ones */
} fv_stream_facts;

typedef struct fv_stream_options {
    const char *bind;           /* NAME=ADDRESS: what the text reads by that name comes from there */
    const char *scan;           /* frames become slices of scans along an axis of this name; NULL: each is an item */
    int64_t     count;          /* frames of a scan; 0: frames say, or silence */
    int64_t     window;         /* so many frames in a row are a scan, whatever their key; 0: the key tells */
    double      period;         /* frames of so many seconds are a scan, whatever their key; 0: the key tells */
    double      silence;        /* seconds without a new frame that end a scan; 0: none do */
    int64_t     preview;        /* frames of a scan between previews; 0: none */
    int64_t     preview_rounds; /* iterations of a solver in a preview at most; 0: as many as the text says */
    const char *to;             /* kafka://HOST/TOPIC for results, too; NULL: none */
    const char *dead;           /* folder or kafka://HOST/TOPIC for what cannot be used; NULL: it is only counted */
    const char *kafka_config;   /* file with settings of librdkafka, one key=value a line; NULL: none */
    const char *on_alert;       /* command to run for each alert of the text, with it on its input; NULL: none */
    const char *store;
    int         workers; /* 0: all cores */
    int64_t     memory;  /* bytes; 0: half of what is free */
    int64_t     most;    /* bytes of a frame; 0: 256 MiB, or less of a small memory */
    int64_t     limit;   /* end after so many frames; 0: never */
    int         metrics; /* port of this machine for Prometheus; 0: none */
    bool        overwrite;
    bool        once; /* end when there is nothing more */
    /* Values that the text prints, alerts, and what happens, as lines of JSON; NULL: nobody wants to know. From one thread at a
     * time. */
    void (*event)(void *context, const char *json);
    void (*printed)(void *context, const char *line);
    void (*progress)(void *context, const fv_stream_facts *facts); /* once a second */
    void         *context;
    volatile int *cancel; /* set: ends in order */
} fv_stream_options;

/* FV_OK: the source is at its end, or it was told to stop; all that came is durable. FV_ERROR_INPUT with facts->unused > 0: some
 * frames failed or were put aside, and all others are done. */
FV_API fv_status fv_stream(fv_pipeline *pipeline, const fv_stream_options *options, fv_stream_facts *facts, fv_error *error);

/* Streams of a store that run, or ran last, for people or programs; the caller frees. NULL: there are none. */
FV_API char *fv_stream_status(const char *store, fv_form form);

typedef struct fv_publish_options {
    const char *to;           /* kafka://HOST/TOPIC */
    const char *key;          /* scan of all frames; NULL: the name of each file, without its number */
    const char *kafka_config; /* as above */
    const char *codec;        /* none, lz4 or zstd; NULL: none */
    double      frames;       /* a second; 0: no bound */
    double      bytes;        /* a second; 0: no bound */
    int64_t     first;        /* number of the first frame */
    bool        slices;       /* files are scans: slices of their first axis are frames */
    bool        end;          /* the last frame of a scan says so */
    bool        loop;
    void (*progress)(void *context, int64_t frames, int64_t bytes, double seconds);
    void         *context;
    volatile int *cancel;
} fv_publish_options;

/* Sends images like a detector does. All were taken by the broker when it returns. */
FV_API fv_status fv_publish(char *const *files, int nfiles, const fv_publish_options *options, int64_t *frames, fv_error *error);

#endif
