/* A control group of its own for a program, where the system lets us make one (version 2, and our own group is delegated to us):
 * whatever the program starts is in it and is ended with it, also what hides from process groups, and where the system counts
 * memory for groups it keeps the bound itself.
 *
 *     char *group = fv__cgroup_new(name, bound);                // NULL: there are none here
 *     int   file = fv__cgroup_file(group);                      // the new process writes "0" to it
 *     fv__cgroup_kill(group);
 *     fv__cgroup_free(group);
 */
#ifndef FV_CGROUP_H
#define FV_CGROUP_H

#include "base/base.h"

/* name: its own; memory: bytes that all in it may use; 0: any. */
char *fv__cgroup_new(const char *name, int64_t memory);
/* Through which a process enters, closed on exec; -1: none can. */
int fv__cgroup_file(const char *group);
/* Ends all that is in it. */
void fv__cgroup_kill(const char *group);
/* Whether the system has ended something in it because of its memory. */
bool fv__cgroup_ran_out(const char *group);
/* Ends all, and removes it. NULL: nothing. */
void fv__cgroup_free(char *group);

/* Ends and removes those of which `left` says so by their names. */
void fv__cgroups_sweep(bool (*left)(const char *name));

#endif
