/* fovea devices lease -- COMMAND, for cmd_devices.c. */
#ifndef FV_DEVICES_LEASE_H
#define FV_DEVICES_LEASE_H

#include <stdint.h>

/* Runs the command with a device of so much memory, for which it waits so many seconds (below 0: for ever). Its exit status. */
int fv_devices_lease(const char *socket, int64_t memory, double wait, int count, char **command);

#endif
