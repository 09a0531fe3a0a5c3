/* The plug-in: Fovea's few wishes in terms of OpenCL 1.2. */
#define CL_TARGET_OPENCL_VERSION 120
#include "devices/opencl_plugin.h"
#include <CL/cl.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLATFORMS = 16, MOST_DEVICES = 64 };

typedef struct {
    cl_device_id id;
    cl_context   context;
} device;
typedef struct {
    cl_program id;
    device    *of;
} program;

typedef struct kernel { /* arguments belong to a kernel, so every queue has its own */
    struct kernel *next;
    program       *of;
    char           name[48];
    cl_kernel      id;
} kernel;

typedef struct {
    cl_command_queue id;
    device          *of;
    kernel          *kernels;
} queue;

/* ---------------------------------------------------------------- what went wrong */

static const char *word(cl_int code) {
    switch (code) {
    case CL_DEVICE_NOT_FOUND: return "there is no device";
    case CL_DEVICE_NOT_AVAILABLE: return "the device is not available";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: return "the device has no memory left";
    case CL_OUT_OF_RESOURCES: return "the device is out of resources";
    case CL_OUT_OF_HOST_MEMORY: return "the host has no memory left";
    case CL_BUILD_PROGRAM_FAILURE: return "a kernel cannot be compiled";
    case CL_INVALID_BUFFER_SIZE: return "a buffer is larger than the device allows";
    default: return "the device failed";
    }
}

static bool good(cl_int code, const char *call, char *message) {
    if (code == CL_SUCCESS) return true;
    snprintf(message, FV_OPENCL_MESSAGE, "%s (%s: %d)", word(code), call, (int)code);
    return false;
}

/* ---------------------------------------------------------------- devices */

static int find_all(cl_device_id all[MOST_DEVICES], cl_platform_id of[MOST_DEVICES], char *message) {
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_uint        nplatforms = 0, found;
    int            count = 0;
    cl_int         code = clGetPlatformIDs(MOST_PLATFORMS, platforms, &nplatforms);
    if (code == -1001 || (code == CL_SUCCESS && !nplatforms)) { /* what the loader says when no driver is installed */
        snprintf(message, FV_OPENCL_MESSAGE,
                 "no OpenCL driver is installed; on Debian: apt-get install pocl-opencl-icd, or the card's");
        return 0;
    }
    if (!good(code, "clGetPlatformIDs", message)) return -1;
    if (nplatforms > MOST_PLATFORMS) nplatforms = MOST_PLATFORMS;
    for (cl_uint p = 0; p < nplatforms; p++) {
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, (cl_uint)(MOST_DEVICES - count), all + count, &found) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < found && count < MOST_DEVICES; d++) of[count++] = platforms[p];
    }
    if (!count) snprintf(message, FV_OPENCL_MESSAGE, "OpenCL finds no device");
    return count;
}

static int count_devices(char *message) {
    cl_device_id   all[MOST_DEVICES];
    cl_platform_id of[MOST_DEVICES];
    return find_all(all, of, message);
}

static bool pick(int index, cl_device_id *id, cl_platform_id *platform, char *message) {
    cl_device_id   all[MOST_DEVICES];
    cl_platform_id of[MOST_DEVICES];
    int            count = find_all(all, of, message);
    if (count > 0 && (index < 0 || index >= count))
        snprintf(message, FV_OPENCL_MESSAGE, "there is no device %d; there are %d, counted from 0", index, count);
    if (index < 0 || index >= count) return false;
    *id = all[index];
    *platform = of[index];
    return true;
}

static void trim(char *text) {
    size_t start = strspn(text, " \t"), length = strlen(text);
    while (length > start && isspace((unsigned char)text[length - 1])) length--;
    memmove(text, text + start, length - start);
    text[length - start] = 0;
}

static void device_text(cl_device_id id, cl_device_info what, char *text, size_t size) {
    char whole[512] = "";
    clGetDeviceInfo(id, what, sizeof whole - 1, whole, NULL);
    trim(whole);
    snprintf(text, size, "%s", whole);
}

static bool about_device(int index, fv_opencl_about *about, char *message) {
    cl_device_id   id;
    cl_platform_id platform;
    cl_ulong       memory = 0, largest = 0;
    cl_uint        units = 0;
    cl_device_type type = 0;
    char           version[64], driver[64], maker[64] = "";
    if (!pick(index, &id, &platform, message)) return false;
    *about = (fv_opencl_about){ 0 };
    device_text(id, CL_DEVICE_NAME, about->name, sizeof about->name);
    device_text(id, CL_DEVICE_VERSION, version, sizeof version);
    device_text(id, CL_DRIVER_VERSION, driver, sizeof driver);
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof maker - 1, maker, NULL);
    clGetDeviceInfo(id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, NULL);
    clGetDeviceInfo(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
    clGetDeviceInfo(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    snprintf(about->kind, sizeof about->kind, "%s, %s, %s, %s", maker, about->name, version, driver);
    about->processor = type & CL_DEVICE_TYPE_CPU;
    about->units = (int)units;
    about->memory = (int64_t)memory;
    about->largest = (int64_t)(largest < memory ? largest : memory);
    return true;
}

static void *open_device(int index, char *message) {
    device        *d = calloc(1, sizeof *d);
    cl_platform_id platform;
    cl_int         code;
    if (!d || !pick(index, &d->id, &platform, message)) {
        free(d);
        return NULL;
    }
    cl_context_properties properties[] = { CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0 };
    d->context = clCreateContext(properties, 1, &d->id, NULL, NULL, &code);
    if (good(code, "clCreateContext", message)) return d;
    free(d);
    return NULL;
}

static void close_device(void *device_) {
    device *d = device_;
    clReleaseContext(d->context);
    free(d);
}

/* ---------------------------------------------------------------- programs */

static void *finish_build(device *d, cl_program id, const char *options, char *message) {
    cl_int   code = clBuildProgram(id, 1, &d->id, options, NULL, NULL);
    program *p = code == CL_SUCCESS ? malloc(sizeof *p) : NULL;
    if (p) {
        *p = (program){ id, d };
        return p;
    }
    static const size_t most = 1 << 16;
    char               *log = calloc(1, most);
    good(code, "clBuildProgram", message);
    if (log && clGetProgramBuildInfo(id, d->id, CL_PROGRAM_BUILD_LOG, most - 1, log, NULL) == CL_SUCCESS && *log)
        snprintf(message, FV_OPENCL_MESSAGE, "a kernel cannot be compiled: %.400s", log);
    free(log);
    clReleaseProgram(id);
    return NULL;
}

static void *build(void *device_, const char *source, const char *options, char *message) {
    device    *d = device_;
    cl_int     code;
    cl_program id = clCreateProgramWithSource(d->context, 1, &source, NULL, &code);
    return good(code, "clCreateProgramWithSource", message) ? finish_build(d, id, options, message) : NULL;
}

static void *load(void *device_, const void *binary, size_t size, const char *options, char *message) {
    device              *d = device_;
    cl_int               code, state = CL_SUCCESS;
    const unsigned char *bytes = binary;
    cl_program           id = clCreateProgramWithBinary(d->context, 1, &d->id, &size, &bytes, &state, &code);
    if (code == CL_SUCCESS && state != CL_SUCCESS) {
        clReleaseProgram(id);
        code = state;
    }
    return good(code, "clCreateProgramWithBinary", message) ? finish_build(d, id, options, message) : NULL;
}

static bool binary(void *program_, void **data, size_t *size, char *message) {
    program *p = program_;
    *size = 0;
    if (!good(clGetProgramInfo(p->id, CL_PROGRAM_BINARY_SIZES, sizeof *size, size, NULL), "clGetProgramInfo", message))
        return false;
    *data = *size ? malloc(*size) : NULL;
    if (!*data) return false;
    if (good(clGetProgramInfo(p->id, CL_PROGRAM_BINARIES, sizeof *data, data, NULL), "clGetProgramInfo", message)) return true;
    free(*data);
    return false;
}

static void drop(void *program_) {
    program *p = program_;
    clReleaseProgram(p->id);
    free(p);
}

/* ---------------------------------------------------------------- memory */

/* Without memory of the host: pages that host and device share where they can, pinned ones elsewhere. */
static void *buffer_new(void *device_, void *memory, size_t size, char *message) {
    device *d = device_;
    cl_int  code;
    cl_mem  buffer = clCreateBuffer(d->context, CL_MEM_READ_WRITE | (memory ? CL_MEM_USE_HOST_PTR : CL_MEM_ALLOC_HOST_PTR), size,
                                    memory, &code);
    return good(code, "clCreateBuffer", message) ? buffer : NULL;
}

static void buffer_free(void *buffer) { clReleaseMemObject(buffer); }

/* ---------------------------------------------------------------- queues */

static void *queue_new(void *device_, char *message) {
    device *d = device_;
    cl_int  code;
    queue  *q = calloc(1, sizeof *q);
    if (!q) return NULL;
    *q = (queue){ .of = d, .id = clCreateCommandQueue(d->context, d->id, 0, &code) };
    if (good(code, "clCreateCommandQueue", message)) return q;
    free(q);
    return NULL;
}

static void queue_free(void *queue_) {
    queue *q = queue_;
    clFinish(q->id);
    for (kernel *k = q->kernels, *next; k; k = next) {
        next = k->next;
        clReleaseKernel(k->id);
        free(k);
    }
    clReleaseCommandQueue(q->id);
    free(q);
}

static void *map(void *queue_, void *buffer, size_t size, bool to_write, char *message) {
    queue *q = queue_;
    cl_int code;
    void  *place = clEnqueueMapBuffer(q->id, buffer, CL_TRUE, to_write ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ, 0, size, 0,
                                      NULL, NULL, &code);
    return good(code, "clEnqueueMapBuffer", message) ? place : NULL;
}

static bool release(void *queue_, void *buffer, void *place, char *message) {
    queue *q = queue_;
    return good(clEnqueueUnmapMemObject(q->id, buffer, place, 0, NULL, NULL), "clEnqueueUnmapMemObject", message) &&
           good(clFlush(q->id), "clFlush", message);
}

static cl_kernel find_kernel(queue *q, program *p, const char *name, char *message) {
    for (kernel *k = q->kernels; k; k = k->next)
        if (k->of == p && !strcmp(k->name, name)) return k->id;
    cl_int    code;
    cl_kernel id = clCreateKernel(p->id, name, &code);
    kernel   *k = good(code, "clCreateKernel", message) ? calloc(1, sizeof *k) : NULL;
    if (!k) return NULL;
    *k = (kernel){ .next = q->kernels, .of = p, .id = id };
    snprintf(k->name, sizeof k->name, "%s", name);
    q->kernels = k;
    return id;
}

static bool run(void *queue_, void *program_, const char *name, const size_t items[3], const size_t group[3],
                const fv_opencl_argument *arguments, int count, char *message) {
    queue    *q = queue_;
    cl_kernel k = find_kernel(q, program_, name, message);
    if (!k) return false;
    for (int i = 0; i < count; i++) {
        const fv_opencl_argument *a = &arguments[i];
        cl_int                    code = a->buffer ? clSetKernelArg(k, (cl_uint)i, sizeof(cl_mem), &a->buffer)
                                                   : clSetKernelArg(k, (cl_uint)i, a->size, a->value);
        if (!good(code, "clSetKernelArg", message)) return false;
    }
    return good(clEnqueueNDRangeKernel(q->id, k, 3, NULL, items, group[0] ? group : NULL, 0, NULL, NULL),
                "clEnqueueNDRangeKernel", message) &&
           good(clFlush(q->id), "clFlush", message);
}

static bool finish(void *queue_, char *message) {
    queue *q = queue_;
    return good(clFinish(q->id), "clFinish", message);
}

extern const void *fv_opencl_plugin_get(void);
const void        *fv_opencl_plugin_get(void) {
           static const fv_opencl plugin = {
               FV_OPENCL_VERSION, count_devices, about_device, open_device, close_device, build,   load, binary, drop,
               buffer_new,        buffer_free,   queue_new,    queue_free,  map,          release, run,  finish
    };
           return &plugin;
}
