/* A worker of a study of policies: leases a device, keeps it busy for as long as the task is, gives it back. */
#include "study_worker.h"
#include "devices/device.h"
#include <errno.h>
#include <fovea/device_lease.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { ITEMS = 64, STRIP = 1024, ROUNDS = 16, WINDOW = ITEMS * STRIP * (int)sizeof(float), LANE = 0 };

/* Counts up in floating point, which no compiler may shorten: the end shows how often. */
static const char              source[] = "kernel void begin(global float *data, int n) {\n"
                                          "    for (int i = 0; i < n; i++) data[get_global_id(0) * n + i] = 0;\n"
                                          "}\n"
                                          "kernel void count(global float *data, int n, int rounds, float one) {\n"
                                          "    for (int k = 0; k < rounds; k++)\n"
                                          "        for (int i = 0; i < n; i++) data[get_global_id(0) * n + i] += one;\n"
                                          "}\n";
static const fv_device_program program = { source, NULL };

static void wait_until(double time) {
    double left = time - fv__now();
    if (left > 0) nanosleep(&(struct timespec){ (time_t)left, (long)(1e9 * (left - (double)(time_t)left)) }, NULL);
}

/* The end of a slice of the device's time, which starts when all given out before it are over. */
static double next_slice(fv_study_board *board, int device, double length) {
    double before = atomic_load(&board->busy_until[device]), end;
    do end = FV_MAX(before, fv__now()) + length;
    while (!atomic_compare_exchange_weak(&board->busy_until[device], &before, end));
    return end;
}

/* ---------------------------------------------------------------- on a device */

/* All the memory that the task asked for, in as many buffers as it takes. */
static int take_memory(fv_device *d, int index, int64_t memory, fv_error *error) {
    fv_device_about about;
    if (fv__device_about_of(index, &about, error) != FV_OK) return 0;
    int64_t count = FV_MIN((memory + about.largest - 1) / about.largest, FV_LANE_BUFFERS);
    for (int b = 0; b < count; b++) {
        fv__lane_room(d, LANE, b, FV_MAX(memory / count, WINDOW));
        FV_LANE_RUN(d, LANE, &program, "begin", ITEMS, 1, 1, FV_BUFFER(b), FV_VALUE(int32_t, STRIP));
    }
    return (int)count;
}

static void count_up(fv_device *d, int buffer) {
    FV_LANE_RUN(d, LANE, &program, "count", ITEMS, 1, 1, FV_BUFFER(buffer), FV_VALUE(int32_t, STRIP), FV_VALUE(int32_t, ROUNDS),
                FV_VALUE(float, 1));
}

static float look(fv_device *d, int buffer) {
    const float *values = fv__lane_look(d, LANE, buffer, WINDOW);
    float        last = values ? values[ITEMS * STRIP - 1] : 0;
    fv__lane_done(d, LANE, buffer);
    return last;
}

static fv_status compute(fv_study_board *board, int index, const fv_study_task *task, fv_error *error) {
    fv_device *d;
    FV_TRY(fv__device_borrow(index, FV_MAX(task->memory, WINDOW), &d, error));
    int   buffers = take_memory(d, index, task->memory, error);
    float seen = 0;
    int   slices = 0;
    for (double left = task->length; buffers && left > 1e-9; left -= FV_STUDY_SLICE, slices++) {
        double end = next_slice(board, index, FV_MIN(left, FV_STUDY_SLICE));
        wait_until(end - FV_MIN(left, FV_STUDY_SLICE));
        count_up(d, slices % buffers);
        seen = look(d, slices % buffers);
        wait_until(end);
    }
    fv_status status = buffers ? fv__device_check(d, error) : FV_ERROR_DEVICE;
    fv__device_give_back(d, true);
    float right = slices ? (float)(((slices - 1) / FV_MAX(buffers, 1) + 1) * ROUNDS) : 0;
    if (status == FV_OK && seen != right)
        return fv_fail(error, FV_ERROR_DEVICE, "opencl:%d counted to %g instead of %g", index, (double)seen, (double)right);
    return status;
}

/* Loading OpenCL and compiling is no part of the study. */
static fv_status warm_up(fv_study_board *board, fv_error *error) {
    for (int d = 0; d < board->devices && board->opencl; d++) {
        fv_device *device;
        FV_TRY(fv__device_borrow(d, WINDOW, &device, error));
        if (take_memory(device, d, WINDOW, error)) count_up(device, 0);
        look(device, 0);
        fv_status status = fv__device_check(device, error);
        fv__device_give_back(device, true);
        if (status != FV_OK) return status;
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- tasks */

static void pass_time(fv_study_board *board, int device, double length) {
    for (double left = length; left > 1e-9; left -= FV_STUDY_SLICE)
        wait_until(next_slice(board, device, FV_MIN(left, FV_STUDY_SLICE)));
}

static fv_status do_task(fv_study_board *board, int worker, int number, fv_error *error) {
    const fv_study_task *task = &board->list[number];
    fv_study_lease      *l = &board->leases[number];
    fv_device_lease      lease;
    fv_status            status = FV_OK;
    *l = (fv_study_lease){ .task = number,
                           .worker = worker,
                           .pid = (int)getpid(),
                           .memory = task->memory,
                           .length = task->length,
                           .asked = fv__now() - board->start };
    if (!fv_device_lease_take(board->socket, task->memory, -1, &lease))
        return fv_fail(error, FV_ERROR_DEVICE, "%s", lease.message);
    l->granted = fv__now() - board->start;
    l->device = lease.index;
    if (board->opencl)
        status = compute(board, lease.index, task, error);
    else
        pass_time(board, lease.index, task->length);
    l->returned = fv__now() - board->start; /* before others can have it */
    fv_device_lease_return(&lease);
    return status;
}

int fv__study_work(fv_study_board *board, int worker, int go) {
    fv_error  error = { 0 };
    char      byte;
    fv_status status = warm_up(board, &error);
    atomic_fetch_add(&board->ready, 1);
    while (read(go, &byte, 1) < 0 && errno == EINTR) {
    }
    for (int task; status == FV_OK && !board->failed && (task = atomic_fetch_add(&board->next, 1)) < board->tasks;)
        status = do_task(board, worker, task, &error);
    if (status != FV_OK && atomic_fetch_add(&board->failed, 1) == 0)
        snprintf(board->message, sizeof board->message, "%.500s", error.message);
    return status == FV_OK ? 0 : 1;
}
