/* Which run of a store is meant: the latest, or the latest whose name begins so. */
#ifndef FV_LATEST_RUN_H
#define FV_LATEST_RUN_H

/* When a run, by its folder, last did what is looked for; 0: never. */
typedef double fv__run_time(const char *folder);

/* The folder of the run; NULL: there is none. name: a folder, the beginning of a name, or NULL for any. */
char *fv__latest_run(const char *runs, const char *name, fv__run_time *time_of);

#endif
