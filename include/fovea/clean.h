/* What runs have left behind, and taking it away.
 *
 *     fv_clean_options options = { .store = ".fovea", .results = true, .older = 7 * 86400.0, .tell_only = true };
 *     fv_cleaned       found;
 *     if (fv_clean(&options, &found, &error) == FV_OK) printf("%lld bytes\n", (long long)found.results.bytes);
 *
 * Nothing that belongs to a run that lives, or may live on another machine, is touched. All functions may be called from any
 * thread.
 */
#ifndef FOVEA_CLEAN_H
#define FOVEA_CLEAN_H

#include <fovea/api.h>
#include <fovea/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct fv_clean_options {
    const char        *store;     /* folder that runs keep things in; NULL: the usual one */
    bool               runs;      /* records of finished and of dead runs, and which units `fovea each` has done */
    bool               results;   /* intermediate results, from which later runs go on */
    bool               leftovers; /* unfinished outputs and leases of dead runs, in and below `folders`; trials of estimates */
    bool               streams;   /* how far streams are, and scans that they have not completed: they begin anew then */
    bool               notes;     /* which files Fovea made: these then count as foreign */
    const char *const *folders;
    int                nfolders;
    double             older;                       /* only what was not used for so many seconds */
    bool               tell_only;                   /* change nothing */
    void (*found)(void *context, const char *path); /* every leftover, run and stream; NULL: not wanted */
    void *context;
} fv_clean_options;

typedef struct fv_clean_count {
    int64_t count, bytes;
} fv_clean_count;

typedef struct fv_cleaned {
    char           place[512];                                      /* the store's folder */
    fv_clean_count runs, results, leftovers, streams, notes, units; /* units: commands of `fovea each` */
    int64_t        live;                                            /* runs and streams that live or may live, which stayed */
} fv_cleaned;

FV_API fv_status fv_clean(const fv_clean_options *options, fv_cleaned *cleaned, fv_error *error);

#endif
