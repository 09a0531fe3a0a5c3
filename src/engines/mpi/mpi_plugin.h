/* The little that Fovea asks of an MPI library. One source, src/plugins/mpi_plugin.c, is compiled against each flavour into a
 * plug-in that is loaded when the process was started by that flavour's launcher; nothing else knows MPI.
 *
 * Messages are whole, arrive in order from each sender, and never block; nobody spins. Any thread may call any function, but only
 * one at a time may take part in the collective ones.
 */
#ifndef FV_MPI_PLUGIN_H
#define FV_MPI_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FV_MPI_VERSION = 2 };
#define FV_MPI_SYMBOL "fv_mpi_plugin_get"

typedef struct fv_mpi_plugin {
    int         version; /* FV_MPI_VERSION */
    const char *flavour; /* "mpich", "openmpi" */
    /* Joins the other ranks. False: the library gives no threads. */
    bool (*init)(int *rank, int *size);
    /* Copies the bytes and returns at once. */
    void (*send)(int to, const void *data, size_t size);
    /* The next message, which the caller frees, or NULL if there is none now. */
    void *(*receive)(int *from, size_t *size);

    /* Collective: all ranks call the same. */
    void (*barrier)(void);
    void (*allgather)(const void *mine, void *all, size_t size); /* size: of each */
    /* Each rank cuts its vectors into slices at the borders, size + 1 offsets in bytes, gives slice r of each to rank r, and
     * gets everybody's vectors of its own slice, one after the other, those of rank 0 first. counts: vectors of each rank. */
    void (*scatter)(const void *const *vectors, const int *counts, const int64_t *borders, void *slices);
    /* The opposite for one vector: slice r of it comes from rank r. */
    void (*gather)(void *vector, const int64_t *borders);
    /* Part i comes to all from rank owners[i]; one without an owner (-1) stays where it is. False: given up on the way, because
     * the caller said so, who must leave the parts where they are then: something may still arrive. */
    bool (*share)(void *const *parts, const int64_t *sizes, const int *owners, int count, bool (*given_up)(void *context),
                  void *context);
    void (*sum_floats)(float *values, int64_t n); /* MPI_Allreduce as it is: what others are measured with */

    void (*abort)(int code); /* ends all ranks */
    void (*finalize)(void);
} fv_mpi_plugin;

typedef const fv_mpi_plugin *fv_mpi_plugin_function(void);

#endif
