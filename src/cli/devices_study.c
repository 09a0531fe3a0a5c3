/* fovea devices study: what the policies mean for many processes that share few devices. */
#include "devices_study.h"
#include "pipeline_options.h"
#include "stopping.h"
#include "study_sheet.h"
#include "trying.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB ((double)((int64_t)1 << 30))

static void print_table(const fv_device_study *s) {
    printf("%d workers, %d tasks, %d devices of %.3g GiB, seed %llu\ntasks: %s\n\n", s->workers, s->tasks, s->devices,
           (double)s->memory / GIB, (unsigned long long)s->seed, s->work);
    printf("policy           makespan  mean wait    longest   device  occupied       peak\n");
    for (int i = 0; i < s->nrows; i++) {
        const fv_study_row *r = &s->rows[i];
        printf("%-15s %7.2f s  %7.3f s  %7.3f s", r->policy, r->makespan, r->wait, r->longest_wait);
        for (int d = 0; d < s->devices; d++)
            printf("%*s%9d %7.1f %% %6.2f GiB\n", d ? 47 : 0, "", d, 100 * r->occupancy[d], (double)r->peak[d] / GIB);
    }
    printf("\nno policy can take less than %.2f s: all devices busy all the time\n", s->least);
}

static int present(const fv_study_request *q, const fv_device_study *s) {
    fv_error error = { 0 };
    if (q->json) {
        char *text = fv_device_study_json(s);
        puts(text);
        free(text);
    } else
        print_table(s);
    if (fv_device_study_save(s, q->output, &error) != FV_OK) {
        fv_complain("devices", "%s", error.message);
        return FV_EXIT_FAILED;
    }
    fprintf(stderr, "fovea: tables, leases and pictures are in %s\n", q->output);
    return FV_EXIT_WELL;
}

int fv_devices_study(const fv_study_request *q) {
    fv_study_options how = { .workers = (int)q->workers,
                             .tasks = (int)q->tasks,
                             .devices = (int)q->devices,
                             .memory = q->memory ? q->memory : (int64_t)2 << 30,
                             .seconds = q->seconds,
                             .seed = (uint64_t)q->seed,
                             .policy = q->policy,
                             .folder = q->output,
                             .tell = fv_trying_tell,
                             .cancel = fv_stopping(false) };
    fv_device_study *study;
    fv_error         error = { 0 };
    fv_status        status = fv_device_study_run(&how, &study, &error);
    if (status != FV_OK) {
        int refused = fv_explain("devices", NULL, status, &error);
        return status == FV_ERROR_DEVICE ? FV_EXIT_FAILED : refused; /* it had begun */
    }
    int code = present(q, study);
    fv_device_study_free(study);
    return code;
}
