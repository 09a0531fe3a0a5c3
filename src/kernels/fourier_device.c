/* Filters of rows by their spectrum on OpenCL devices. */
#include "kernels/fourier_device.h"
#include "fourier_cl.h"

enum { TURN, RESPONSE, WORK }; /* of the buffers for the filter */

static int64_t work_bytes(int64_t n, int64_t nangles, int64_t bundles) {
    return (nangles + 1) / 2 * bundles * 2 * n * 16 * (int64_t)sizeof(float);
}

int64_t fv__fourier_device_bytes(int64_t n, int64_t nangles, int64_t bundles) {
    return 2 * n * (int64_t)sizeof(float) + work_bytes(n, nangles, bundles);
}

void fv__fourier_device_run(const fv_fourier *f, fv_device *d, int lane, const fv_fourier_rows *r) {
    static const fv_device_program program = { fourier, NULL };
    fv__lane_copy(d, lane, r->room + TURN, f->turn, f->n * (int64_t)sizeof(float));
    fv__lane_copy(d, lane, r->room + RESPONSE, f->response, f->n * (int64_t)sizeof(float));
    fv__lane_room(d, lane, r->room + WORK, work_bytes(f->n, r->nangles, r->bundles));
    FV_LANE_RUN(d, lane, &program, "filter", (r->nangles + 1) / 2, r->bundles, 1, FV_BUFFER(r->buffer),
                FV_VALUE(int32_t, (int32_t)r->nangles), FV_VALUE(int64_t, r->pitch), FV_VALUE(int32_t, (int32_t)r->first),
                FV_VALUE(int32_t, (int32_t)r->step), FV_VALUE(int32_t, (int32_t)r->columns), FV_VALUE(int32_t, (int32_t)f->n),
                FV_BUFFER(r->room + TURN), FV_BUFFER(r->room + RESPONSE), FV_BUFFER(r->room + WORK));
}
