/* Lanes of a device: transfers beside computing, failures that stay, programs that cannot be compiled. */
#include "devices/device.h"
#include "support/test.h"

enum { MEMORY = 1 << 20, PIECES = 5, FLAG = 0, SEEN = 1 };

/* The first device, if it is the host's processor. */
static fv_device *processor(void) {
    int             count;
    fv_device      *device = NULL;
    fv_device_about about;
    fv_error        error = { 0 };
    setenv("POCL_DEVICES", "pthread", 0);
    if (fv__device_count(&count, &error) != FV_OK || fv__device_about_of(0, &about, &error) != FV_OK)
        test_skip(error.message);
    else if (!about.processor)
        test_skip("the first OpenCL device is not the processor");
    else if (fv__device_borrow(0, MEMORY, &device, &error) != FV_OK)
        test_fail(__FILE__, __LINE__, "%s", error.message);
    return device;
}

/* A kernel that ends early only when it sees its flag raised, and says whether it did. */
static const fv_device_program waiting = { "kernel void wait_for(global volatile int *flag, global int *seen, int most) {\n"
                                           "    for (int n = 0; n < most && !flag[0]; n++);\n"
                                           "    seen[0] = flag[0];\n"
                                           "}\n",
                                           NULL };

typedef struct {
    volatile int32_t *flag[PIECES];
    int32_t           seen[PIECES];
} overlap;

/* Filling a piece raises the flag of the one before, which is computed by then: memory of the processor is the host's own. */
static fv_status send(void *context, fv_device *d, int lane, int64_t piece, fv_error *error) {
    (void)error;
    overlap *o = context;
    int32_t *flag = fv__lane_fill(d, lane, FLAG, 64);
    if (!flag) return FV_OK;
    o->flag[piece] = flag;
    *flag = piece == PIECES - 1;
    fv__lane_send(d, lane, FLAG);
    fv__lane_room(d, lane, SEEN, 64);
    FV_LANE_RUN(d, lane, &waiting, "wait_for", 1, 1, 1, FV_BUFFER(FLAG), FV_BUFFER(SEEN), FV_VALUE(int32_t, INT32_MAX));
    if (piece > 0) *o->flag[piece - 1] = 1;
    return FV_OK;
}

static fv_status receive(void *context, fv_device *d, int lane, int64_t piece, fv_error *error) {
    (void)error;
    overlap       *o = context;
    const int32_t *seen = fv__lane_look(d, lane, SEEN, 64);
    if (seen) o->seen[piece] = *seen;
    fv__lane_done(d, lane, SEEN);
    return FV_OK;
}

TEST(a_piece_is_filled_and_sent_while_the_one_before_is_computed) {
    fv_device *d = processor();
    overlap    o = { 0 };
    fv_error   error = { 0 };
    if (!d) return;
    fv_status status = fv__device_pieces(d, PIECES, send, receive, &o, &error);
    fv__device_give_back(d, true);
    CHECK_MESSAGE(status == FV_OK, "%s", error.message);
    for (int i = 0; i < PIECES; i++) CHECK_INT(o.seen[i], 1);
}

TEST(a_failure_stays_until_the_device_is_given_back) {
    fv_device *d = processor();
    fv_error   error = { 0 };
    if (!d) return;
    fv__lane_room(d, 0, 0, 2 * MEMORY);
    void     *after = fv__lane_fill(d, 1, 0, 64);
    fv_status status = fv__device_check(d, &error);
    fv__device_give_back(d, true);
    CHECK_INT(status, FV_ERROR_DEVICE);
    CHECK(!after && strstr(error.message, "more than the 1 MB that it asked for"));
    d = processor();
    CHECK(d && fv__lane_fill(d, 1, 0, 64) && fv__device_check(d, &error) == FV_OK);
    fv__device_give_back(d, true);
}

TEST(a_program_that_cannot_be_compiled_says_why) {
    static const fv_device_program wrong = { "kernel void f(global int *a) { a[0] = nonsense; }\n", NULL };
    fv_device                     *d = processor();
    fv_error                       error = { 0 };
    if (!d) return;
    fv__lane_room(d, 0, 0, 64);
    FV_LANE_RUN(d, 0, &wrong, "f", 1, 1, 1, FV_BUFFER(0));
    fv_status status = fv__device_check(d, &error);
    fv__device_give_back(d, true);
    CHECK_INT(status, FV_ERROR_DEVICE);
    CHECK_MESSAGE(strstr(error.message, "cannot be compiled") && strstr(error.message, "nonsense"), "%s", error.message);
}

TEST_MAIN
