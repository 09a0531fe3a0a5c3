/* What Fovea wants of a Kafka library: take messages, keep positions, send messages. The plug-in fovea-kafka.so offers it by way
 * of librdkafka. Texts of messages are of the size FV_KAFKA_TEXT.
 */
#ifndef FV_KAFKA_PLUGIN_H
#define FV_KAFKA_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FV_KAFKA_VERSION = 2, FV_KAFKA_TEXT = 512, FV_KAFKA_HEADERS = 32 };

typedef struct fv_kafka_header {
    const char *name, *value;
    size_t      size;
} fv_kafka_header;

typedef struct fv_kafka_message {
    const void     *key, *body;
    size_t          key_size, body_size;
    int             partition;
    int64_t         offset;
    double          time; /* seconds since 1970; below 0: unknown */
    fv_kafka_header headers[FV_KAFKA_HEADERS];
    int             nheaders;
    void           *held; /* for release */
} fv_kafka_message;

typedef struct fv_kafka_reader_options {
    const char *brokers, *topic, *group;
    const char *config;   /* text of lines key=value; NULL: none */
    int64_t     ahead;    /* bytes that it may hold before they are asked for */
    bool        from_end; /* a group without positions begins with what comes next */
    bool        once;     /* end behind what is there now */
    double      patience; /* seconds in which the broker has to answer at first */
    /* Where to go on in a partition that is given to this process; -1: where the group was. Whoever had it before is done. */
    int64_t (*position)(void *context, int partition);
    void (*leaving)(void *context, int partition); /* it goes to somebody else: all under way has to be committed before */
    void *context;
} fv_kafka_reader_options;

typedef enum fv_kafka_news { FV_KAFKA_NOTHING, FV_KAFKA_MESSAGE, FV_KAFKA_END, FV_KAFKA_FAILED } fv_kafka_news;

typedef struct fv_kafka_reader fv_kafka_reader;
typedef struct fv_kafka_writer fv_kafka_writer;

typedef struct fv_kafka_plugin {
    int version;
    /* NULL: why says so. */
    fv_kafka_reader *(*reader_open)(const fv_kafka_reader_options *options, char *why);
    /* From one thread, again and again: also while nothing is wanted for longer, since it says that this process lives. */
    fv_kafka_news (*reader_next)(fv_kafka_reader *reader, double seconds, fv_kafka_message *message, char *why);
    void (*reader_release)(void *held); /* from any thread */
    void (*reader_pause)(fv_kafka_reader *reader, bool paused);
    void (*reader_commit)(fv_kafka_reader *reader, int partition, int64_t offset); /* from any thread */
    int64_t (*reader_lag)(fv_kafka_reader *reader);
    void (*reader_close)(fv_kafka_reader *reader);

    /* transaction: the name under which messages are sent in transactions; NULL: each is for itself. What somebody else has begun
     * under this name and not committed never happened from now on. */
    fv_kafka_writer *(*writer_open)(const char *brokers, const char *topic, const char *config, const char *transaction,
                                    char *why);
    /* Copies the message; waits while too much is on its way. */
    bool (*writer_send)(fv_kafka_writer *writer, const void *key, size_t key_size, const fv_kafka_header *headers, int nheaders,
                        const void *body, size_t body_size, char *why);
    bool (*writer_flush)(fv_kafka_writer *writer, char *why);
    /* Messages between begin and commit appear together, with a number, or not at all. After a failure the writer is of no use.
     */
    bool (*writer_begin)(fv_kafka_writer *writer, char *why);
    bool (*writer_commit)(fv_kafka_writer *writer, int64_t number, char *why);
    bool (*writer_number)(fv_kafka_writer *writer, int64_t *number, char *why); /* of the last commit; -1: there was none */
    void (*writer_close)(fv_kafka_writer *writer);
} fv_kafka_plugin;

const fv_kafka_plugin *fv_kafka_plugin_get(void);

#endif
