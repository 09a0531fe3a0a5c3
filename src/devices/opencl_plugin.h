/* The little that Fovea asks of OpenCL. src/plugins/opencl_plugin.c is compiled against it into a plug-in that is loaded when
 * devices are asked for; nothing else knows OpenCL.
 *
 * Any thread may call any function; a queue is used by one thread at a time. Functions that can fail return false, NULL or -1 and
 * put a sentence into message.
 */
#ifndef FV_OPENCL_PLUGIN_H
#define FV_OPENCL_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FV_OPENCL_VERSION = 2, FV_OPENCL_MESSAGE = 512 };
#define FV_OPENCL_SYMBOL "fv_opencl_plugin_get"

typedef struct fv_opencl_about {
    char    name[64];  /* of the device, without blanks around it */
    char    kind[320]; /* platform, device, driver and their versions: two devices of one kind give the same bits */
    bool    processor; /* it is the host's own */
    int     units;
    int64_t memory, largest; /* bytes in all, and of one buffer */
} fv_opencl_about;

typedef struct fv_opencl_argument { /* of a kernel */
    void       *buffer;             /* memory of the device; NULL: a value */
    const void *value;
    size_t      size;
} fv_opencl_argument;

typedef struct fv_opencl {
    int version;
    /* Devices of all platforms in their order. */
    int (*count)(char *message);
    bool (*about)(int index, fv_opencl_about *about, char *message);
    void *(*open)(int index, char *message);
    void (*close)(void *device);
    /* From a binary that binary() gave, or from text. */
    void *(*build)(void *device, const char *source, const char *options, char *message);
    void *(*load)(void *device, const void *binary, size_t size, const char *options, char *message);
    bool (*binary)(void *program, void **data, size_t *size, char *message); /* the caller frees */
    void (*drop)(void *program);
    /* memory: of the host, for a device that is its processor; NULL: the device's own. */
    void *(*buffer_new)(void *device, void *memory, size_t size, char *message);
    void (*buffer_free)(void *buffer);
    /* Commands of a queue follow each other; those of two queues may go on at once. */
    void *(*queue_new)(void *device, char *message);
    void (*queue_free)(void *queue);
    /* The first bytes of a buffer as the host sees them until release. To write: undefined until written, and at once. To read:
     * once all before it in the queue is done. */
    void *(*map)(void *queue, void *buffer, size_t size, bool to_write, char *message);
    bool (*release)(void *queue, void *buffer, void *place, char *message);
    bool (*run)(void *queue, void *program, const char *kernel, const size_t items[3], const size_t group[3],
                const fv_opencl_argument *arguments, int count, char *message);
    bool (*finish)(void *queue, char *message);
} fv_opencl;

#endif
