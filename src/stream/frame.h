/* Frames of a stream: what one message or one file brings, and where it comes from.
 *
 * A source gives frames one after another, in one thread. A frame is owned by whoever has it; fv__frame_free gives everything
 * back, from any thread.
 */
#ifndef FV_FRAME_H
#define FV_FRAME_H

#include "base/base.h"
#include <fovea/image.h>

typedef struct fv_frame {
    char         *scan;  /* what it belongs to: the key of a message, the name of a file without its number */
    int64_t       index; /* its number there */
    char         *path;  /* of the item, as the text sees it */
    char         *where; /* for people: "topic 0:17", a file */
    fv_image_type type;
    const void   *data; /* dense, at any address; NULL: it is in the file `path` */
    size_t        bytes;
    bool          end;    /* the last one of its scan */
    int64_t       length; /* frames of the scan, if the frame says so; 0: it does not */
    double        time;   /* seconds since 1970 at which it was sent; NaN: unknown */
    double        angle;  /* of a projection, in degrees; NaN: unknown */
    double        arrived;
    char         *why; /* it is of no use: what is wrong with it */

    /* The source's own. */
    int     partition;
    int64_t offset; /* of the message that it came in; frames of one message have the same */
    int     more;   /* frames of that message that follow its first one; -1: this is one of those */
    void   *held;
    void (*release)(void *held);
    struct fv_frame *next; /* of the same message, as long as the source has them */
} fv_frame;

fv_frame *fv__frame_new(void);
void      fv__frame_free(fv_frame *frame); /* NULL is fine */

/* How frames are named: path and extension are those of the pattern that they stand for. */
typedef struct fv_frame_names {
    char *folder, *extension; /* "scans/" and ".tif" */
} fv_frame_names;
void fv__frame_names_init(fv_frame_names *names, const char *pattern);
void fv__frame_names_release(fv_frame_names *names);
/* Path of frame `index` of a scan; index -1: of the scan. The caller frees. */
char *fv__frame_path(const fv_frame_names *names, const char *scan, int64_t index);
/* Splits the stem of a file into scan and number: "beads_0012" is 12 of "beads"; without digits at its end it is 0 of itself. */
char *fv__frame_split(const char *stem, int64_t *index);

/* ---- messages ---- */
typedef struct fv_header {
    const char *name, *value; /* value: text, not ended by NUL */
    size_t      size;
} fv_header;

typedef struct fv_message {
    const fv_header *headers;
    int              nheaders;
    const void      *key, *body;
    size_t           key_size, body_size;
    const char      *fallback; /* scan of messages without a key */
    int64_t          number;   /* index of frames that tell none */
    int64_t          most;     /* bytes of a frame; more is refused */
    int              partition;
    int64_t          offset;
    const char      *where;
    void            *held; /* lives as long as its frames do */
    void (*release)(void *held);
} fv_message;

/* Takes a message apart: one frame, or several that follow each other (next). One that makes no sense is a frame with `why`. */
fv_frame *fv__message_frames(const fv_message *message, const fv_frame_names *names);

/* ---- sources ---- */
typedef struct fv_frame_source {
    /* Waits at most so many seconds for a frame; *frame NULL: there was none. *over: there will never be one again. */
    fv_status (*next)(struct fv_frame_source *source, double seconds, fv_frame **frame, bool *over, fv_error *error);
    /* No frames are wanted for now; next goes on being called. NULL: frames that are not asked for wait by themselves. */
    void (*pause)(struct fv_frame_source *source, bool paused);
    /* What comes before this message of a partition is durable, and need never be given again. NULL: nobody has to know. */
    void (*committed)(struct fv_frame_source *source, int partition, int64_t offset);
    /* Messages that wait at the source; -1: unknown. NULL: unknown. */
    int64_t (*lag)(struct fv_frame_source *source);
    void (*close)(struct fv_frame_source *source);
} fv_frame_source;

typedef struct fv_source_options {
    const char           *address; /* behind "NAME=" */
    const fv_frame_names *names;
    int64_t               most;   /* bytes of a message */
    int64_t               memory; /* bytes that it may hold ahead */
    const char           *config; /* file with settings of the Kafka client; NULL: none */
    const char           *group;  /* of Kafka, if the address has none */
    bool                  once;   /* ends when there is nothing more */
    bool                  scans;  /* frames are parts of scans: files are named after these, and numbered */
    /* What is known of a partition, when it is given to this process: where to go on; -1: nothing is known. */
    int64_t (*position)(void *context, const char *topic, int partition);
    /* A partition goes to another process: everything of it that is under way has to be durable before. */
    void (*leaving)(void *context, int partition);
    void *context;
} fv_source_options;

fv_status fv__watch_source(const fv_source_options *options, const char *folder, const char *pattern, fv_frame_source **source,
                           fv_error *error);
fv_status fv__pipe_source(const fv_source_options *options, int fd, fv_frame_source **source, fv_error *error);
fv_status fv__kafka_source(const fv_source_options *options, fv_frame_source **source, fv_error *error);

#endif
