/* The inside of a pipeline, for the files of this layer. */
#ifndef FV_PIPELINE_PARTS_H
#define FV_PIPELINE_PARTS_H

#include "base/session.h"
#include "run/prepared.h"
#include <fovea/pipeline.h>

struct fv_pipeline {
    fv_bytes        text;
    char           *name;
    fv_program     *program;
    fv_bindings     bindings; /* as given; resolved anew for every run */
    char          **sets;
    int             nsets;
    fv_plan_options plan_options;
    fv_bytes        messages;
    fv_session     *session;   /* every call about the pipeline runs in it */
    fv_prepared    *prepared;  /* for fv_pipeline_apply; NULL: not yet, or it is no such run */
    bool            looked_at; /* whether it is one is known */
    bool            first_run; /* it is one itself, and finds no types */
};

/* A copy of what was given, with items listed and parameters filled in; to be released in any case. store: the run's folder,
 * which like .fovea tells results of earlier runs from inputs; NULL: that alone. */
fv_status fv__pipeline_resolve(const fv_pipeline *pipeline, const char *store, fv_bindings *bindings, fv_diagnostics *diagnostics,
                               fv_error *error);
/* Makes the messages from the mistakes, which it releases, and gives the status back. */
fv_status fv__pipeline_report(fv_pipeline *pipeline, fv_diagnostics *diagnostics, fv_status status);

#endif
