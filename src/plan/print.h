/* Plans and graphs as text, JSON and DOT. */
#ifndef FV_PRINT_H
#define FV_PRINT_H

#include "plan/plan.h"

typedef struct fv_plan_part { /* of a run whose items and whose whole have plans of their own */
    int         index, count;
    const char *title;
} fv_plan_part;

typedef struct fv_plan_facts { /* what the run would use */
    int          workers;
    int64_t      memory, items;
    int64_t      peak, least; /* memory that it takes with these workers, and that it must have */
    bool         can_shrink;  /* fv__plan_can_shrink */
    fv_plan_part part;
} fv_plan_facts;

/* What a stage does, in a few words: its operators and what they are for. */
void fv__stage_title(const fv_stage *stage, fv_bytes *out);
void fv__plan_text(const fv_plan *plan, const fv_plan_facts *facts, fv_bytes *out);
void fv__plan_json(const fv_plan *plan, const fv_plan_facts *facts, fv_bytes *out);
/* Operators and what flows between them; stored values stand out. Parts of a run come one after another. */
void fv__graph_dot(const fv_graph *graph, const fv_plan *plan, const fv_plan_part *part, fv_bytes *out);
/* Stages with their tasks, and which task needs which. */
void fv__plan_dot(const fv_plan *plan, const fv_plan_part *part, fv_bytes *out);

#endif
