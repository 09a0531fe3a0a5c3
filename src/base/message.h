/* Messages of one session to somebody who wants them as texts; base.h has the rest. */
#ifndef FV_MESSAGE_H
#define FV_MESSAGE_H

#include "base/base.h"
#include <fovea/pipeline.h>

/* From now on messages of this thread's session, up to that level, go there and not to standard error. */
void fv__log_sink(fv_log_level level, fv_message_sink sink, void *context);

#endif
