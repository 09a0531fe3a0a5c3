/* Kafka: frames from a topic, and messages to one. What touches the library is in the plug-in. */
#include "base/file.h"
#include "base/plugin.h"
#include "stream/kafka_plugin.h"
#include "stream/messages.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_once_t         loading = PTHREAD_ONCE_INIT; /* plug-ins belong to the process */
static const fv_kafka_plugin *plugin;
static fv_error               missing;

static void load(void) {
    const void *found = NULL;
    fv_status status = fv__plugin_load("kafka", "fv_kafka_plugin_get", "a kafka:// address", "librdkafka-dev", &found, &missing);
    plugin = status == FV_OK ? found : NULL;
    if (plugin && plugin->version != FV_KAFKA_VERSION) {
        fv_fail(&missing, FV_ERROR_MISSING, "fovea-kafka.so belongs to another version of Fovea");
        plugin = NULL;
    }
}

static fv_status need_plugin(fv_error *error) {
    pthread_once(&loading, load);
    if (plugin) return FV_OK;
    if (error) *error = missing;
    return missing.code;
}

/* ---------------------------------------------------------------- addresses */

typedef struct address { /* kafka://host:9092,other/topic?group=g&from=end&transactions=no */
    char *text, *brokers, *topic;
    char *group;           /* NULL: none is given */
    bool  from_end, alone; /* messages are sent without transactions */
} address;

static void address_release(address *a) { free(a->text); }

static fv_status address_read(const char *text, address *a, fv_error *error) {
    *a = (address){ .text = fv__strdup(text) };
    a->brokers = a->text + strlen("kafka://");
    char *slash = strchr(a->brokers, '/'), *query = slash ? strchr(slash, '?') : NULL;
    if (!slash || slash == a->brokers || !slash[1] || slash + 1 == query) {
        address_release(a);
        return fv_fail(error, FV_ERROR_USAGE, "%s: expected kafka://HOST:PORT/TOPIC, as kafka://localhost:9092/scans?group=lab",
                       text);
    }
    *slash = 0;
    a->topic = slash + 1;
    if (query) *query++ = 0;
    for (char *part = query; part && *part;) {
        char *end = strchr(part, '&');
        if (end) *end++ = 0;
        if (!strncmp(part, "group=", 6) && part[6])
            a->group = part + 6;
        else if (!strcmp(part, "from=end") || !strcmp(part, "from=start"))
            a->from_end = !strcmp(part, "from=end");
        else if (!strcmp(part, "transactions=no"))
            a->alone = true;
        else {
            fv_fail(error, FV_ERROR_USAGE, "%s: \"%s\" is not known; group=NAME, from=start, from=end and transactions=no are",
                    text, part);
            address_release(a);
            return FV_ERROR_USAGE;
        }
        part = end;
    }
    return FV_OK;
}

static fv_status read_config(const char *file, fv_bytes *text, fv_error *error) {
    if (!file) return FV_OK;
    return fv__file_read_all(file, (size_t)1 << 20, text, error);
}

/* ---------------------------------------------------------------- frames */

typedef struct kafka_source {
    fv_frame_source   base;
    fv_source_options options;
    address           address;
    fv_kafka_reader  *reader;
    fv_frame         *ready;
} kafka_source;

static fv_frame *pop(kafka_source *s) {
    fv_frame *frame = s->ready;
    if (frame) s->ready = frame->next;
    return frame;
}

static fv_frame *make_frame(kafka_source *s, const fv_kafka_message *from) {
    fv_header headers[FV_KAFKA_HEADERS];
    char      fallback[300], where[300];
    for (int h = 0; h < from->nheaders; h++)
        headers[h] = (fv_header){ from->headers[h].name, from->headers[h].value, from->headers[h].size };
    snprintf(fallback, sizeof fallback, "%.250s-%d", s->address.topic, from->partition);
    snprintf(where, sizeof where, "%.200s %d:%lld", s->address.topic, from->partition, (long long)from->offset);
    fv_message message = { .headers = headers,
                           .nheaders = from->nheaders,
                           .key = from->key,
                           .key_size = from->key_size,
                           .body = from->body,
                           .body_size = from->body_size,
                           .fallback = fallback,
                           .number = from->offset,
                           .most = s->options.most,
                           .partition = from->partition,
                           .offset = from->offset,
                           .where = where,
                           .held = from->held,
                           .release = plugin->reader_release };
    s->ready = fv__message_frames(&message, s->options.names);
    for (fv_frame *f = s->ready; f; f = f->next)
        if (isnan(f->time) && from->time >= 0) f->time = from->time;
    return pop(s);
}

static fv_status next(fv_frame_source *source, double seconds, fv_frame **frame, bool *over, fv_error *error) {
    kafka_source    *s = (kafka_source *)source;
    fv_kafka_message message;
    char             why[FV_KAFKA_TEXT] = "";
    *over = false;
    if ((*frame = pop(s))) return FV_OK;
    switch (plugin->reader_next(s->reader, seconds, &message, why)) {
    case FV_KAFKA_MESSAGE: *frame = make_frame(s, &message); break;
    case FV_KAFKA_END: *over = true; break;
    case FV_KAFKA_FAILED: return fv_fail(error, FV_ERROR_INPUT, "%s: %s", s->options.address, why);
    case FV_KAFKA_NOTHING:
        if (*why) fv__log("fovea: %s: %s", s->options.address, why);
    }
    return FV_OK;
}

static void pause_source(fv_frame_source *source, bool paused) { plugin->reader_pause(((kafka_source *)source)->reader, paused); }

static void committed(fv_frame_source *source, int partition, int64_t offset) {
    plugin->reader_commit(((kafka_source *)source)->reader, partition, offset);
}

static int64_t lag(fv_frame_source *source) { return plugin->reader_lag(((kafka_source *)source)->reader); }

static void close_source(fv_frame_source *source) {
    kafka_source *s = (kafka_source *)source;
    for (fv_frame *frame; (frame = pop(s));) fv__frame_free(frame);
    if (s->reader) plugin->reader_close(s->reader);
    address_release(&s->address);
    free(s);
}

static int64_t position(void *context, int partition) {
    const kafka_source *s = context;
    return s->options.position ? s->options.position(s->options.context, s->address.topic, partition) : -1;
}

static void leaving(void *context, int partition) {
    const kafka_source *s = context;
    if (s->options.leaving) s->options.leaving(s->options.context, partition);
}

fv_status fv__kafka_source(const fv_source_options *options, fv_frame_source **out, fv_error *error) {
    char          why[FV_KAFKA_TEXT] = "";
    fv_bytes      config = { 0 };
    kafka_source *s = fv__calloc(sizeof *s);
    s->base = (fv_frame_source){ .next = next, .pause = pause_source, .committed = committed, .lag = lag, .close = close_source };
    s->options = *options;
    fv_status status = need_plugin(error);
    if (status == FV_OK) status = read_config(options->config, &config, error);
    if (status == FV_OK) status = address_read(options->address, &s->address, error);
    if (status != FV_OK) {
        fv__bytes_release(&config);
        free(s);
        return status;
    }
    enum { AHEAD = 64 << 20 }; /* enough for any pace; more would only be cold memory */
    fv_kafka_reader_options reader = { .brokers = s->address.brokers,
                                       .topic = s->address.topic,
                                       .group = s->address.group ? s->address.group : options->group,
                                       .config = (char *)config.data,
                                       .ahead = FV_MIN(options->memory, AHEAD),
                                       .from_end = s->address.from_end,
                                       .once = options->once,
                                       .patience = 10,
                                       .position = position,
                                       .leaving = leaving,
                                       .context = s };
    s->reader = plugin->reader_open(&reader, why);
    fv__bytes_release(&config);
    if (!s->reader) {
        status = fv_fail(error, FV_ERROR_INPUT, "%s: %s", options->address, why);
        close_source(&s->base);
        return status;
    }
    *out = &s->base;
    return FV_OK;
}

/* ---------------------------------------------------------------- messages */

struct fv_sender {
    address          address;
    fv_kafka_writer *writer;
    bool             transactions;
};

fv_status fv__sender_open(const char *to, const char *config_file, const char *transaction, fv_sender **out, fv_error *error) {
    char       why[FV_KAFKA_TEXT] = "";
    fv_bytes   config = { 0 };
    fv_sender *sink = fv__calloc(sizeof *sink);
    fv_status  status = strncmp(to, "kafka://", 8)
                            ? fv_fail(error, FV_ERROR_USAGE, "%s: messages go to kafka://HOST:PORT/TOPIC", to)
                            : need_plugin(error);
    if (status == FV_OK) status = read_config(config_file, &config, error);
    if (status == FV_OK) status = address_read(to, &sink->address, error);
    if (status != FV_OK) {
        fv__bytes_release(&config);
        free(sink);
        return status;
    }
    if (sink->address.alone) transaction = NULL;
    sink->transactions = transaction != NULL;
    sink->writer = plugin->writer_open(sink->address.brokers, sink->address.topic, (char *)config.data, transaction, why);
    fv__bytes_release(&config);
    if (!sink->writer) {
        status = fv_fail(error, FV_ERROR_INPUT, "%s: %s", to, why);
        fv__sender_close(sink);
        return status;
    }
    *out = sink;
    return FV_OK;
}

fv_status fv__message_send(fv_sender *sink, const char *key, const fv_header *headers, int nheaders, const void *body,
                           size_t size, fv_error *error) {
    fv_kafka_header all[FV_KAFKA_HEADERS];
    char            why[FV_KAFKA_TEXT] = "";
    for (int h = 0; h < nheaders; h++) all[h] = (fv_kafka_header){ headers[h].name, headers[h].value, strlen(headers[h].value) };
    if (plugin->writer_send(sink->writer, key, strlen(key), all, nheaders, body, size, why)) return FV_OK;
    return fv_fail(error, FV_ERROR_IO, "a message to the topic %s could not be sent: %s", sink->address.topic, why);
}

fv_status fv__message_flush(fv_sender *sink, fv_error *error) {
    char why[FV_KAFKA_TEXT] = "";
    if (plugin->writer_flush(sink->writer, why)) return FV_OK;
    return fv_fail(error, FV_ERROR_IO, "messages to the topic %s were not taken: %s", sink->address.topic, why);
}

static fv_status told(const fv_sender *sink, bool good, const char *why, fv_error *error) {
    return good ? FV_OK : fv_fail(error, FV_ERROR_IO, "messages to the topic %s: %s", sink->address.topic, why);
}

fv_status fv__sender_begin(fv_sender *sink, fv_error *error) {
    char why[FV_KAFKA_TEXT] = "";
    if (!sink->transactions) return FV_OK;
    return told(sink, plugin->writer_begin(sink->writer, why), why, error);
}

fv_status fv__sender_commit(fv_sender *sink, int64_t number, fv_error *error) {
    char why[FV_KAFKA_TEXT] = "";
    if (!sink->transactions) return fv__message_flush(sink, error);
    return told(sink, plugin->writer_commit(sink->writer, number, why), why, error);
}

fv_status fv__sender_number(fv_sender *sink, int64_t *number, fv_error *error) {
    char why[FV_KAFKA_TEXT] = "";
    *number = -1;
    if (!sink->transactions) return FV_OK;
    return told(sink, plugin->writer_number(sink->writer, number, why), why, error);
}

void fv__sender_close(fv_sender *sink) {
    if (!sink) return;
    if (sink->writer) plugin->writer_close(sink->writer);
    address_release(&sink->address);
    free(sink);
}
