/* What a lease costs: connecting to the scheduler of devices, asking, getting a device, giving it back. Target: 100 us. */
#include "base/base.h"
#include <fovea/device_lease.h>
#include <fovea/devices.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5000, BATCH = 100 };

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void serve(const char *socket) {
    static volatile int never;
    const char         *devices[] = { "a:2G", "b:2G" };
    fv_error            error;
    fv_devices_options  options = { .socket = socket, .devices = devices, .ndevices = 2, .stop = &never };
    if (fv_devices_serve(&options, &error) != FV_OK) fprintf(stderr, "%s\n", error.message);
    _exit(1);
}

int main(void) {
    char socket[108], record[128];
    snprintf(socket, sizeof socket, "/tmp/fovea-bench-%d.sock", (int)getpid());
    snprintf(record, sizeof record, "%s.record", socket);
    pid_t service = fork();
    if (service == 0) serve(socket);
    fv_device_lease lease;
    for (int i = 0; i < 500 && access(socket, F_OK); i++) usleep(10000);
    double *each = fv__alloc((ROUNDS / BATCH) * sizeof *each);
    for (int b = 0; b < ROUNDS / BATCH; b++) {
        double start = fv__now();
        for (int i = 0; i < BATCH; i++) {
            if (!fv_device_lease_take(socket, 1 << 20, 5, &lease)) {
                fprintf(stderr, "%s\n", lease.message);
                return 1;
            }
            fv_device_lease_return(&lease);
        }
        each[b] = (fv__now() - start) / BATCH;
    }
    qsort(each, ROUNDS / BATCH, sizeof *each, by_size);
    printf("a lease and its return, %d times: %.0f us each (median of batches), %.0f us at best   target <= 100 us\n", ROUNDS,
           1e6 * each[ROUNDS / BATCH / 2], 1e6 * each[0]);
    kill(service, SIGKILL);
    waitpid(service, NULL, 0);
    unlink(socket);
    unlink(record);
    free(each);
    return 0;
}
