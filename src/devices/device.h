/* OpenCL devices as operators see them: a task borrows one, fills buffers, runs kernels and looks at what came out.
 *
 *     float *in = fv__lane_fill(device, lane, 0, bytes);     // host memory that the device will see as buffer 0
 *     if (in) ... write ...
 *     fv__lane_send(device, lane, 0);
 *     fv__lane_room(device, lane, 1, bytes);
 *     FV_LANE_RUN(device, lane, &program, "smooth", n, 1, 1, FV_BUFFER(0), FV_BUFFER(1), FV_VALUE(int32_t, n));
 *     const float *out = fv__lane_look(device, lane, 1, bytes); // waits
 *     if (out) ... read ...
 *     fv__lane_done(device, lane, 1);
 *     return fv__device_check(device, error);
 *
 * A device has two lanes, each with its own buffers and a queue whose commands follow each other: while one lane computes, the
 * other one's data travel. The first failure stays: everything after it does nothing, fill and look give NULL. One thread uses a
 * borrowed device at a time.
 */
#ifndef FV_DEVICE_H
#define FV_DEVICE_H

#include "base/base.h"

enum { FV_LANES = 2, FV_LANE_BUFFERS = 12, FV_LANE_ARGUMENTS = 24 };

typedef struct fv_device fv_device;

typedef struct fv_device_program { /* kernels, compiled once for a device and kept in the user's cache folder */
    const char *source;
    const char *options; /* of the compiler; NULL: none */
} fv_device_program;

int64_t fv__device_memory(const fv_device *device);    /* bytes that the task may use */
bool    fv__device_processor(const fv_device *device); /* a processor: long vectors and private tables are fast */

void *fv__lane_fill(fv_device *device, int lane, int buffer, int64_t bytes);
void  fv__lane_send(fv_device *device, int lane, int buffer);
void  fv__lane_copy(fv_device *device, int lane, int buffer, const void *data, int64_t bytes); /* filled and sent */
/* Memory of the host that a processor uses as it is, until the device is given back. Not for cards. */
void        fv__lane_lend(fv_device *device, int lane, int buffer, void *data, int64_t bytes);
void        fv__lane_room(fv_device *device, int lane, int buffer, int64_t bytes); /* undefined contents */
const void *fv__lane_look(fv_device *device, int lane, int buffer, int64_t bytes);
void        fv__lane_done(fv_device *device, int lane, int buffer);

typedef struct fv_lane_argument {
    int         buffer;
    size_t      size;
    const void *value;
} fv_lane_argument; /* buffer -1: a value */
#define FV_BUFFER(number)                                                                                                        \
    { (number), 0, NULL }
#define FV_VALUE(type, value)                                                                                                    \
    {                                                                                                                            \
        -1, sizeof(type), &(const type) {                                                                                        \
            value                                                                                                                \
        }                                                                                                                        \
    }
/* x, y, z: work-items along each axis; groups are the device's choice on a card, single items on a processor. */
void fv__lane_run(fv_device *device, int lane, const fv_device_program *program, const char *kernel, int64_t x, int64_t y,
                  int64_t z, const fv_lane_argument *arguments, int count);
#define FV_LANE_RUN(device, lane, program, kernel, x, y, z, ...)                                                                 \
    fv__lane_run(device, lane, program, kernel, x, y, z, (const fv_lane_argument[]){ __VA_ARGS__ },                              \
                 (int)(sizeof((const fv_lane_argument[]){ __VA_ARGS__ }) / sizeof(fv_lane_argument)))

/* What went wrong since the device was borrowed. */
fv_status fv__device_check(fv_device *device, fv_error *error);

/* Work in pieces: piece k is sent through lane k % 2, and received when piece k + 1 is under way. */
typedef fv_status (*fv_device_step)(void *context, fv_device *device, int lane, int64_t piece, fv_error *error);
fv_status fv__device_pieces(fv_device *device, int64_t pieces, fv_device_step send, fv_device_step receive, void *context,
                            fv_error *error);

/* ---------------------------------------------------------------- finding and borrowing */

typedef struct fv_device_about {
    char    name[64];
    char    kind[320]; /* devices of one kind give the same bits */
    bool    processor;
    int     units;
    int64_t memory, largest;
} fv_device_about;

/* Loads OpenCL and tells how many devices there are; 0 is an error that says what is missing. */
fv_status fv__device_count(int *count, fv_error *error);
fv_status fv__device_about_of(int index, fv_device_about *about, fv_error *error);
/* Billions of fused multiplications a second, and of bytes copied inside the device. Takes a tenth of a second. */
fv_status fv__device_measure(int index, double *arithmetic, double *bandwidth, fv_error *error);

/* For who gives devices out: a device of that number, of which the task may use so much memory. Kept buffers and queues are used
 * again; forget: its buffers are freed when it comes back. */
fv_status fv__device_borrow(int index, int64_t memory, fv_device **device, fv_error *error);
void      fv__device_give_back(fv_device *device, bool forget);

#endif
