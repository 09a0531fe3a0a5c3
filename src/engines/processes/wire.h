/* What an engine says to a worker process and hears from it: short lines of text. */
#ifndef FV_WIRE_H
#define FV_WIRE_H

#include "run/scheduler.h"
#include <stdio.h>

/* First thing a worker hears: its share of the memory, how patient its store may be, poison. */
fv_status fv__wire_greet(FILE *to, const fv_scheduler *scheduler, const fv_run_settings *settings, fv_error *error);
/* False if the worker is gone. */
bool fv__wire_send_job(FILE *to, const fv_job *job);
/* Fills the job's facts and error (code FV_OK if all went well). False if the worker is gone. */
bool fv__wire_receive_answer(FILE *from, fv_job *job, fv_error *error);

#endif
