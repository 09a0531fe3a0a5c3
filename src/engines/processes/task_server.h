/* A process that runs jobs of another one's run: what such workers have in common, whatever brings them their jobs. */
#ifndef FV_TASK_SERVER_H
#define FV_TASK_SERVER_H

#include "engines/processes/frames.h"
#include "run/wire.h"

enum { FV_MOST_SERVED = 8 };

typedef struct fv_task_server {
    fv_context   context;
    fv_bindings  bindings;
    fv_program  *program;
    fv_instance *open[FV_MOST_SERVED]; /* most recently used first */
    fv_worker   *worker;
    const char  *scratch; /* folder for temporaries of files that this process does not see; NULL: it sees them */
} fv_task_server;

/* Reads the manifest, and opens a store with these options; their memory and patience are as the hello says. */
fv_status fv__task_server_open(fv_task_server *server, const char *run_folder, const fv_worker_hello *hello,
                               fv_store_options options, fv_error *error);
void      fv__task_server_close(fv_task_server *server);
/* Runs the job in a message and makes an answer of it. False: nothing more can be done here, and the answer, if there is one,
 * says why. */
bool fv__task_server_run(fv_task_server *server, const fv_bytes *message, fv_bytes *answer);
/* Of a worker process: it ends with the one that started it, and leaves Ctrl-C to that. */
void fv__task_server_obey(void);

#endif
