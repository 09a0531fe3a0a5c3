/* An engine for tests: as careless with its jobs as the interface allows. */
#ifndef FV_TOY_ENGINE_H
#define FV_TOY_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>

/* Adds the engine "toy" once. */
void toy_engine_add(void);

extern atomic_int  toy_lost, toy_repeated; /* jobs, so far */
extern atomic_bool toy_hopeless;           /* no worker lives long enough to end a task */

#endif
