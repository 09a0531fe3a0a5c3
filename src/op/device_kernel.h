/* What an operator may offer beside its CPU kernel: the same for an OpenCL device. One line of the descriptor points to it;
 * everything else about the operator stays as it is. A node that runs on a device has the device's kind in its key.
 */
#ifndef FV_DEVICE_KERNEL_H
#define FV_DEVICE_KERNEL_H

#include "devices/device.h"
#include "op/op.h"

typedef struct fv_device_kernel {
    double tolerance; /* largest difference from the CPU's result, as a part of its largest value; 0: the same bits */
    /* Whether parameters and types are among those that the kernel knows; n->region is the whole image. NULL: all are. */
    bool (*able)(const fv_need *n);
    /* Bytes of the device: the least with which n->region can be made in pieces, and with which it goes through in few. */
    int64_t (*least)(const fv_need *n);
    int64_t (*wanted)(const fv_need *n);
    /* Fills r->out like the pass's run, with the pass's scratch. The device has at least `least` bytes. */
    fv_status (*run)(fv_run *r, fv_device *device, fv_error *error);
} fv_device_kernel;

#endif
