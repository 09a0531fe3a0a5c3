/* The node's scheduler of devices: a service on a Unix socket.
 *
 * Clients send lines and get lines. A lease belongs to its connection: when that ends, in whatever way, the device is free again.
 *
 *     lease BYTES        granted TICKET INDEX BYTES NAME, when there is a device; or refused REASON
 *     lease BYTES BITS   the same for some devices only: a bit for each, in hexadecimal
 *     return TICKET      ok
 *     status             one line of JSON
 *     policy NAME        ok
 *
 * Every event is a line of the record, from which a restarted service knows the leases that are still out. Only the socket's
 * owner, root and members of the socket's group are listened to.
 */
#ifndef FV_DEVICE_SERVICE_H
#define FV_DEVICE_SERVICE_H

#include "devices/broker.h"

typedef struct fv_device_service_options {
    const char             *socket;
    const char             *record; /* file to which events are appended; NULL: the socket's name with .record */
    fv_policy               policy;
    uint64_t                seed; /* of the policy random */
    const fv_broker_device *devices;
    int                     ndevices;
    int                     most_waiting, most_waiting_user; /* requests; 0: any number */
    const volatile int     *stop;                            /* set: the service ends */
    void (*ready)(void *context);                            /* it listens; may be NULL */
    void *context;
} fv_device_service_options;

/* Returns when it was asked to stop, or with what went wrong. */
fv_status fv__device_service_run(const fv_device_service_options *options, fv_error *error);

#endif
