/* Kafka by way of librdkafka: a consumer of a group whose positions are kept by the caller, and a producer that loses nothing. */
#include "stream/kafka_plugin.h"
#include <librdkafka/rdkafka.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct complaint { /* the last thing that the library could not do: what a broker says to a wrong password, for example */
    pthread_mutex_t mutex; /* it comes from the library's own threads */
    char            text[256];
} complaint;

struct fv_kafka_reader {
    complaint               complaint; /* first: the library knows either struct by it */
    rd_kafka_t             *client;
    rd_kafka_queue_t       *queue;
    fv_kafka_reader_options options;
    char                   *topic, *group;
    bool                    paused, fatal;
    bool                    looks_itself; /* the library looks by itself whether there is room for more */
    int64_t                 taken;        /* bytes, since it was made to look */
    int64_t                *ends;         /* once: by partition, where it ends; -1: not given to us */
    bool                   *over;         /* once: by partition, it was reached */
    int                     npartitions;
    char                    why[FV_KAFKA_TEXT], note[FV_KAFKA_TEXT];
    double                  told;
};

struct fv_kafka_writer {
    complaint       complaint; /* first, as above */
    rd_kafka_t     *client;
    char           *brokers, *topic, *config;
    char           *transaction; /* NULL: none */
    pthread_mutex_t mutex;       /* guards what follows, which delivery reports change */
    char            why[FV_KAFKA_TEXT];
    bool            failed;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---------------------------------------------------------------- settings */

static bool set(rd_kafka_conf_t *conf, const char *name, const char *value, char *why) {
    char text[256];
    if (rd_kafka_conf_set(conf, name, value, text, sizeof text) == RD_KAFKA_CONF_OK) return true;
    snprintf(why, FV_KAFKA_TEXT, "%s", text); /* which names the setting, and not its value */
    return false;
}

static bool set_number(rd_kafka_conf_t *conf, const char *name, int64_t value, char *why) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return set(conf, name, text, why);
}

/* Lines key=value; # begins a comment. */
static bool set_all(rd_kafka_conf_t *conf, const char *config, char *why) {
    char *copy = strdup(config ? config : ""), *rest = copy;
    bool  good = copy != NULL;
    for (char *line; good && (line = strsep(&rest, "\n"));) {
        while (*line == ' ' || *line == '\t') line++;
        char *equal = strchr(line, '='), *end;
        if (!*line || *line == '#' || *line == '\r') continue;
        if (!equal) {
            snprintf(why, FV_KAFKA_TEXT, "a line of the settings is not key=value");
            good = false;
            break;
        }
        for (end = equal; end > line && end[-1] == ' '; end--) {
        }
        *end = 0;
        char *value = equal + 1 + strspn(equal + 1, " \t");
        value[strcspn(value, "\r")] = 0;
        good = set(conf, line, value, why);
    }
    free(copy);
    return good;
}

/* A connection that was lost is tried again by the library; why is told if it never comes to be. Of
 * "[thrd:...]: sasl_ssl://host:9093/bootstrap: SASL authentication error: ... (after 3ms in state AUTH_REQ)" the middle is said.
 */
static void on_log(const rd_kafka_t *client, int level, const char *facility, const char *text) {
    enum { ERROR = 3 };
    complaint  *c = rd_kafka_opaque(client);
    const char *begin = strstr(text, "]: "), *place = begin ? strstr(begin + 3, ": ") : NULL;
    if (level > ERROR || strcmp(facility, "FAIL") || !c || !place) return;
    const char *end = strstr(place, " (after ");
    pthread_mutex_lock(&c->mutex);
    snprintf(c->text, sizeof c->text, "%.*s", end ? (int)(end - place - 2) : 200, place + 2);
    pthread_mutex_unlock(&c->mutex);
}

static void say_silence(rd_kafka_t *client, const char *brokers, rd_kafka_resp_err_t error, char *why) {
    complaint *c = rd_kafka_opaque(client);
    pthread_mutex_lock(&c->mutex);
    bool old = strstr(c->text, "SCRAM") && rd_kafka_version() < 0x020601ff; /* it sends its part of the nonce twice */
    snprintf(why, FV_KAFKA_TEXT, "no broker answers at %s (%s)%s", brokers, *c->text ? c->text : rd_kafka_err2str(error),
             old ? "; if the password is right: SCRAM with Kafka 4 needs librdkafka 2.6.1 or newer" : "");
    pthread_mutex_unlock(&c->mutex);
}

/* Whether the broker answers and has the topic: a clear sentence now is better than silence later. */
static bool find_topic(rd_kafka_t *client, const char *brokers, const char *name, bool make, double patience, int *partitions,
                       char *why) {
    rd_kafka_topic_t               *topic = rd_kafka_topic_new(client, name, NULL);
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_resp_err_t             error = RD_KAFKA_RESP_ERR_NO_ERROR;
    double                          until = now() + patience;
    bool                            there = false;
    do {
        error = rd_kafka_metadata(client, 0, topic, &metadata, 3000);
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
            const rd_kafka_metadata_topic_t *t = &metadata->topics[0];
            there = metadata->topic_cnt > 0 && t->err == RD_KAFKA_RESP_ERR_NO_ERROR && t->partition_cnt > 0;
            if (there && partitions) *partitions = t->partition_cnt;
            bool missing = t->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
            snprintf(why, FV_KAFKA_TEXT, missing ? "the broker has no topic %s" : "the topic %s cannot be used: %s", name,
                     rd_kafka_err2str(t->err));
            rd_kafka_metadata_destroy(metadata);
            if (!there && missing && !make) break;
        } else
            say_silence(client, brokers, error, why);
        if (!there) nanosleep(&(struct timespec){ 0, 200000000 }, NULL);
    } while (!there && now() < until);
    rd_kafka_topic_destroy(topic);
    return there;
}

/* ---------------------------------------------------------------- reading */

/* The group has read some of these partitions before, and this stream has not: its text may be new and its group is not, which
 * looks as if messages were missing. */
static void note_group(fv_kafka_reader *r, rd_kafka_t *client, rd_kafka_topic_partition_list_t *unknown) {
    enum { PATIENCE = 5000 }; /* milliseconds */
    bool read = false;
    if (!unknown->cnt || rd_kafka_committed(client, unknown, PATIENCE)) return;
    for (int i = 0; i < unknown->cnt; i++) read = read || unknown->elems[i].offset > 0;
    if (read)
        snprintf(r->note, sizeof r->note,
                 "the group %s has read some of this topic before, with another text, other options or in another folder, and "
                 "goes on behind that; another group=NAME begins with the oldest message",
                 r->group);
}

static void assign(fv_kafka_reader *r, rd_kafka_t *client, rd_kafka_topic_partition_list_t *list) {
    rd_kafka_topic_partition_list_t *unknown = rd_kafka_topic_partition_list_new(list->cnt);
    for (int i = 0; i < list->cnt; i++) {
        int64_t at = r->options.position(r->options.context, list->elems[i].partition);
        if (at >= 0)
            list->elems[i].offset = at;
        else
            rd_kafka_topic_partition_list_add(unknown, r->topic, list->elems[i].partition);
    }
    note_group(r, client, unknown);
    rd_kafka_topic_partition_list_destroy(unknown);
    if (r->options.once) {
        for (int p = 0; p < r->npartitions; p++) r->ends[p] = -1;
        for (int i = 0; i < list->cnt; i++) {
            int     p = list->elems[i].partition;
            int64_t low, high;
            if (p >= r->npartitions) continue;
            /* Without an answer it is read until its end is met. */
            if (rd_kafka_query_watermark_offsets(client, r->topic, p, &low, &high, 10000)) low = 0, high = INT64_MAX;
            int64_t at = list->elems[i].offset;
            r->ends[p] = high;
            r->over[p] = high == low || (at >= 0 && at >= high);
        }
    }
    rd_kafka_assign(client, list);
    if (r->paused) rd_kafka_pause_partitions(client, list);
}

static void rebalance(rd_kafka_t *client, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t *list, void *opaque) {
    fv_kafka_reader *r = opaque;
    if (error == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        assign(r, client, list);
        return;
    }
    for (int i = 0; i < list->cnt; i++) r->options.leaving(r->options.context, list->elems[i].partition);
    if (error == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS && !rd_kafka_assignment_lost(client)) rd_kafka_commit(client, NULL, 0);
    rd_kafka_assign(client, NULL);
}

static void reader_close(fv_kafka_reader *r) {
    if (!r) return;
    if (r->client) {
        rd_kafka_consumer_close(r->client);
        rd_kafka_destroy(r->client);
    }
    pthread_mutex_destroy(&r->complaint.mutex);
    free(r->ends);
    free(r->over);
    free(r->topic);
    free(r->group);
    free(r);
}

static bool configure(rd_kafka_conf_t *conf, const fv_kafka_reader_options *o, char *why) {
    /* A message that is larger than what is fetched at once comes all the same, alone. */
    int64_t ahead = o->ahead > 1 << 20 ? o->ahead : 1 << 20, fetch = ahead < 16 << 20 ? ahead : 16 << 20;
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_rebalance_cb(conf, rebalance);
    return set(conf, "bootstrap.servers", o->brokers, why) && set(conf, "group.id", o->group, why) &&
           set(conf, "enable.auto.commit", "false", why) && set(conf, "enable.auto.offset.store", "false", why) &&
           set(conf, "auto.offset.reset", o->from_end ? "latest" : "earliest", why) &&
           set(conf, "allow.auto.create.topics", "false", why) && set_number(conf, "fetch.message.max.bytes", fetch, why) &&
           set_number(conf, "fetch.max.bytes", fetch, why) && set(conf, "receive.message.max.bytes", "1000000000", why) &&
           set_number(conf, "queued.max.messages.kbytes", ahead / 1024 < 2000000 ? ahead / 1024 : 2000000, why) &&
           set(conf, "queued.min.messages", "1000000", why) && set(conf, "fetch.wait.max.ms", "100", why) &&
           set(conf, "fetch.error.backoff.ms", "50", why) && set(conf, "session.timeout.ms", "10000", why) &&
           set(conf, "heartbeat.interval.ms", "1000", why) && set(conf, "reconnect.backoff.max.ms", "1000", why) &&
           set(conf, "topic.metadata.refresh.interval.ms", "10000", why) && /* partitions may be added */
           set(conf, "enable.partition.eof", o->once ? "true" : "false", why) && set_all(conf, o->config, why);
}

/* The library takes memory for each answer of the broker, and whoever has done its last frame gives it back. What the system gets
 * back would be cleared and mapped page by page for the next one, so it is kept. */
static void keep_memory(int64_t ahead) {
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most there can be */
    mallopt(M_TRIM_THRESHOLD, (int)(ahead < 256 << 20 ? ahead : 256 << 20));
}

static fv_kafka_reader *reader_open(const fv_kafka_reader_options *o, char *why) {
    fv_kafka_reader *r = calloc(1, sizeof *r);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char             text[256];
    pthread_mutex_init(&r->complaint.mutex, NULL);
    keep_memory(o->ahead);
    r->options = *o;
    r->topic = strdup(o->topic);
    r->group = strdup(o->group);
    rd_kafka_conf_set_opaque(conf, r);
    r->looks_itself = rd_kafka_conf_set(conf, "fetch.queue.backoff.ms", "5", text, sizeof text) == RD_KAFKA_CONF_OK;
    if (!configure(conf, o, why)) {
        rd_kafka_conf_destroy(conf);
        reader_close(r);
        return NULL;
    }
    r->client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof text);
    if (!r->client) {
        snprintf(why, FV_KAFKA_TEXT, "%s", text);
        rd_kafka_conf_destroy(conf);
        reader_close(r);
        return NULL;
    }
    rd_kafka_poll_set_consumer(r->client);
    if (!find_topic(r->client, o->brokers, o->topic, false, o->patience, &r->npartitions, why)) {
        rd_kafka_destroy(r->client);
        r->client = NULL;
        reader_close(r);
        return NULL;
    }
    r->ends = calloc((size_t)r->npartitions, sizeof *r->ends);
    r->over = calloc((size_t)r->npartitions, sizeof *r->over);
    for (int p = 0; p < r->npartitions; p++) r->ends[p] = -2;
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, o->topic, RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t error = rd_kafka_subscribe(r->client, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    if (!error) return r;
    snprintf(why, FV_KAFKA_TEXT, "%s", rd_kafka_err2str(error));
    reader_close(r);
    return NULL;
}

static void take_headers(rd_kafka_message_t *from, fv_kafka_message *message) {
    rd_kafka_headers_t *headers;
    const char         *name;
    const void         *value;
    size_t              size;
    message->nheaders = 0;
    if (rd_kafka_message_headers(from, &headers)) return;
    while (message->nheaders < FV_KAFKA_HEADERS &&
           !rd_kafka_header_get_all(headers, (size_t)message->nheaders, &name, &value, &size))
        message->headers[message->nheaders++] = (fv_kafka_header){ name, value ? value : "", value ? size : 0 };
}

/* Whether all partitions that this process has were read to where they ended when it got them. */
static bool is_over(const fv_kafka_reader *r) {
    bool any = false;
    for (int p = 0; p < r->npartitions; p++) {
        if (r->ends[p] == -2) return false;
        if (r->ends[p] >= 0 && !r->over[p]) return false;
        any = any || r->ends[p] >= 0;
    }
    return any;
}

/* Troubles that pass are told, not too often. Not every offset is a message: the last ones may be marks of transactions, or were
 * compacted away, so that the end is known by the end alone. */
static fv_kafka_news trouble(fv_kafka_reader *r, rd_kafka_message_t *m, char *why) {
    rd_kafka_resp_err_t error = m->err;
    if (error == RD_KAFKA_RESP_ERR__PARTITION_EOF && r->options.once && m->partition < r->npartitions &&
        (m->offset >= r->ends[m->partition] || r->ends[m->partition] == INT64_MAX))
        r->over[m->partition] = true;
    bool fatal = error == RD_KAFKA_RESP_ERR__FATAL || error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
                 error == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED || error == RD_KAFKA_RESP_ERR__AUTHENTICATION;
    bool quiet = error == RD_KAFKA_RESP_ERR__PARTITION_EOF || (!fatal && now() - r->told < 5);
    if (!quiet) snprintf(why, FV_KAFKA_TEXT, "%s%s", rd_kafka_message_errstr(m), fatal ? "" : "; trying again");
    if (!quiet) r->told = now();
    rd_kafka_message_destroy(m);
    return fatal ? FV_KAFKA_FAILED : FV_KAFKA_NOTHING;
}

/* The library stops fetching when `ahead` bytes wait, and an older one looks only once a second whether they have become fewer: a
 * reader that is faster than that would starve. Any question to the broker of the partition makes it look. */
static void keep_fetching(fv_kafka_reader *r, const rd_kafka_message_t *m) {
    enum { PATIENCE = 20 }; /* milliseconds; the answer is of no interest */
    int64_t low, high;
    r->taken += (int64_t)m->len;
    if (r->looks_itself || r->taken < r->options.ahead / 4) return;
    r->taken = 0;
    if (rd_kafka_get_watermark_offsets(r->client, r->topic, m->partition, &low, &high)) return;
    if ((double)(high - m->offset) * (double)m->len < 0.5 * (double)r->options.ahead) return; /* no more can have waited */
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, r->topic, m->partition)->offset = RD_KAFKA_OFFSET_END;
    rd_kafka_offsets_for_times(r->client, list, PATIENCE);
    rd_kafka_topic_partition_list_destroy(list);
}

static fv_kafka_news reader_next(fv_kafka_reader *r, double seconds, fv_kafka_message *message, char *why) {
    *why = 0;
    if (*r->note) {
        snprintf(why, FV_KAFKA_TEXT, "%s", r->note);
        *r->note = 0;
        return FV_KAFKA_NOTHING;
    }
    if (r->options.once && is_over(r)) return FV_KAFKA_END;
    rd_kafka_message_t *m = rd_kafka_consumer_poll(r->client, (int)(seconds * 1000));
    if (!m) return FV_KAFKA_NOTHING;
    if (m->err) return trouble(r, m, why);
    rd_kafka_timestamp_type_t kind;
    int64_t                   stamp = rd_kafka_message_timestamp(m, &kind);
    *message = (fv_kafka_message){ .key = m->key,
                                   .body = m->payload,
                                   .key_size = m->key_len,
                                   .body_size = m->len,
                                   .partition = m->partition,
                                   .offset = m->offset,
                                   .time = kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : 1e-3 * (double)stamp,
                                   .held = m };
    take_headers(m, message);
    keep_fetching(r, m);
    if (r->options.once && m->partition < r->npartitions && m->offset + 1 >= r->ends[m->partition]) r->over[m->partition] = true;
    return FV_KAFKA_MESSAGE;
}

static void reader_release(void *held) { rd_kafka_message_destroy(held); }

static void reader_pause(fv_kafka_reader *r, bool paused) {
    rd_kafka_topic_partition_list_t *list;
    r->paused = paused;
    if (rd_kafka_assignment(r->client, &list)) return;
    if (paused)
        rd_kafka_pause_partitions(r->client, list);
    else
        rd_kafka_resume_partitions(r->client, list);
    rd_kafka_topic_partition_list_destroy(list);
}

static void reader_commit(fv_kafka_reader *r, int partition, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, r->topic, partition)->offset = offset;
    rd_kafka_offsets_store(r->client, list); /* what is committed when the partition is given away */
    rd_kafka_commit(r->client, list, 1);     /* the log knows better: this is for those who look at the group */
    rd_kafka_topic_partition_list_destroy(list);
}

static int64_t reader_lag(fv_kafka_reader *r) {
    rd_kafka_topic_partition_list_t *list;
    int64_t                          lag = 0;
    if (rd_kafka_assignment(r->client, &list)) return -1;
    rd_kafka_position(r->client, list);
    for (int i = 0; i < list->cnt; i++) {
        int64_t low, high;
        if (rd_kafka_get_watermark_offsets(r->client, r->topic, list->elems[i].partition, &low, &high)) continue;
        int64_t at = list->elems[i].offset >= 0 ? list->elems[i].offset : low;
        if (high > at) lag += high - at;
    }
    rd_kafka_topic_partition_list_destroy(list);
    return lag;
}

/* ---------------------------------------------------------------- writing */

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    fv_kafka_writer *w = opaque;
    (void)client;
    if (!message->err) return;
    pthread_mutex_lock(&w->mutex);
    if (!w->failed) snprintf(w->why, sizeof w->why, "%s", rd_kafka_err2str(message->err));
    w->failed = true;
    pthread_mutex_unlock(&w->mutex);
}

static void writer_close(fv_kafka_writer *w) {
    if (!w) return;
    if (w->client) rd_kafka_destroy(w->client);
    pthread_mutex_destroy(&w->complaint.mutex);
    pthread_mutex_destroy(&w->mutex);
    free(w->brokers);
    free(w->topic);
    free(w->config);
    free(w->transaction);
    free(w);
}

enum {
    PATIENCE = 30000, /* milliseconds that the broker has for a step of a transaction */
    QUEUE = 65536     /* KiB of messages on their way */
};

static bool is_done(rd_kafka_error_t *error, char *why) {
    if (!error) return true;
    snprintf(why, FV_KAFKA_TEXT, "%s", rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    return false;
}

static bool init_transactions(fv_kafka_writer *w, char *why) {
    rd_kafka_error_t *error;
    double            until = now() + 1e-3 * PATIENCE;
    while ((error = rd_kafka_init_transactions(w->client, PATIENCE)) && rd_kafka_error_is_retriable(error) && now() < until)
        rd_kafka_error_destroy(error);
    return is_done(error, why);
}

static char *copy_of(const char *text) { return text ? strdup(text) : NULL; }

static fv_kafka_writer *writer_open(const char *brokers, const char *topic, const char *config, const char *transaction,
                                    char *why) {
    fv_kafka_writer *w = calloc(1, sizeof *w);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char             text[256];
    pthread_mutex_init(&w->complaint.mutex, NULL);
    pthread_mutex_init(&w->mutex, NULL);
    w->brokers = strdup(brokers);
    w->topic = strdup(topic);
    w->config = copy_of(config);
    w->transaction = copy_of(transaction);
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_set_opaque(conf, w);
    bool good =
        set(conf, "bootstrap.servers", brokers, why) && set(conf, "enable.idempotence", "true", why) &&
        set(conf, "message.max.bytes", "1000000000", why) && set(conf, "linger.ms", "0.5", why) &&
        set_number(conf, "queue.buffering.max.kbytes", QUEUE, why) &&
        (transaction ? set(conf, "transactional.id", transaction, why) : set(conf, "message.timeout.ms", "120000", why)) &&
        set(conf, "reconnect.backoff.max.ms", "1000", why) && set_all(conf, config, why);
    if (good && !(w->client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text))) {
        snprintf(why, FV_KAFKA_TEXT, "%s", text);
        good = false;
    }
    if (!w->client) rd_kafka_conf_destroy(conf);
    good = good && find_topic(w->client, brokers, topic, true, 10, NULL, why);
    if (good && (!transaction || init_transactions(w, why))) return w;
    writer_close(w);
    return NULL;
}

static bool is_fine(fv_kafka_writer *w, char *why) {
    pthread_mutex_lock(&w->mutex);
    bool fine = !w->failed;
    if (!fine) snprintf(why, FV_KAFKA_TEXT, "%s", w->why);
    pthread_mutex_unlock(&w->mutex);
    return fine;
}

static bool writer_send(fv_kafka_writer *w, const void *key, size_t key_size, const fv_kafka_header *headers, int nheaders,
                        const void *body, size_t body_size, char *why) {
    rd_kafka_headers_t *all = rd_kafka_headers_new((size_t)nheaders);
    rd_kafka_resp_err_t error;
    bool                empty = false; /* nothing else was on its way when it was tried last */
    for (int h = 0; h < nheaders; h++) rd_kafka_header_add(all, headers[h].name, -1, headers[h].value, (ssize_t)headers[h].size);
    while ((error = rd_kafka_producev(w->client, RD_KAFKA_V_TOPIC(w->topic), RD_KAFKA_V_KEY(key, key_size),
                                      RD_KAFKA_V_VALUE((void *)(uintptr_t)body, body_size), RD_KAFKA_V_HEADERS(all),
                                      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END)) ==
           RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        if (empty || !is_fine(w, why)) break;
        rd_kafka_poll(w->client, 100);
        empty = !rd_kafka_outq_len(w->client);
    }
    if (error) {
        rd_kafka_headers_destroy(all);
        if (!is_fine(w, why)) return false;
        if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            snprintf(why, FV_KAFKA_TEXT, "it has %zu bytes, and at most %d MiB are held for sending", body_size, QUEUE >> 10);
        else
            snprintf(why, FV_KAFKA_TEXT, "%s", rd_kafka_err2str(error));
        return false;
    }
    rd_kafka_poll(w->client, 0);
    return is_fine(w, why);
}

static bool writer_flush(fv_kafka_writer *w, char *why) {
    while (rd_kafka_outq_len(w->client) > 0 && is_fine(w, why)) rd_kafka_flush(w->client, 200);
    return is_fine(w, why);
}

static bool writer_begin(fv_kafka_writer *w, char *why) { return is_done(rd_kafka_begin_transaction(w->client), why); }

/* The number is a position of a group that nobody belongs to: positions are committed together with messages. */
static bool writer_commit(fv_kafka_writer *w, int64_t number, char *why) {
    rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new(w->transaction);
    rd_kafka_topic_partition_list_t    *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_error_t                   *error = NULL;
    double                              until = now() + 1e-3 * PATIENCE;
    rd_kafka_topic_partition_list_add(list, w->topic, 0)->offset = number;
    bool good = is_done(rd_kafka_send_offsets_to_transaction(w->client, list, group, PATIENCE), why);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_consumer_group_metadata_destroy(group);
    while (good && (error = rd_kafka_commit_transaction(w->client, PATIENCE)) && rd_kafka_error_is_retriable(error) &&
           now() < until)
        rd_kafka_error_destroy(error);
    good = good && is_done(error, why);
    return is_fine(w, why) && good; /* what is wrong with a message says more than that there is one */
}

static bool writer_number(fv_kafka_writer *w, int64_t *number, char *why) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char             text[256];
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_opaque(conf, w);
    bool good = set(conf, "bootstrap.servers", w->brokers, why) && set(conf, "group.id", w->transaction, why) &&
                set_all(conf, w->config, why);
    rd_kafka_t *client = good ? rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof text) : NULL;
    if (!client) {
        if (good) snprintf(why, FV_KAFKA_TEXT, "%s", text);
        rd_kafka_conf_destroy(conf);
        return false;
    }
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, w->topic, 0);
    rd_kafka_resp_err_t error = rd_kafka_committed(client, list, PATIENCE);
    if (!error) error = list->elems[0].err;
    if (error) snprintf(why, FV_KAFKA_TEXT, "%s", rd_kafka_err2str(error));
    *number = list->elems[0].offset >= 0 ? list->elems[0].offset : -1;
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(client);
    return !error;
}

static const fv_kafka_plugin plugin = { .version = FV_KAFKA_VERSION,
                                        .reader_open = reader_open,
                                        .reader_next = reader_next,
                                        .reader_release = reader_release,
                                        .reader_pause = reader_pause,
                                        .reader_commit = reader_commit,
                                        .reader_lag = reader_lag,
                                        .reader_close = reader_close,
                                        .writer_open = writer_open,
                                        .writer_send = writer_send,
                                        .writer_flush = writer_flush,
                                        .writer_begin = writer_begin,
                                        .writer_commit = writer_commit,
                                        .writer_number = writer_number,
                                        .writer_close = writer_close };

const fv_kafka_plugin *fv_kafka_plugin_get(void) { return &plugin; }
