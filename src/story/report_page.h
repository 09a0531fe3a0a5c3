/* The report of a run: one HTML page that needs nothing else. */
#ifndef FV_REPORT_PAGE_H
#define FV_REPORT_PAGE_H

#include "story/run_story.h"

typedef struct fv_page_options {
    bool hash; /* of all inputs, however large they are */
} fv_page_options;

void fv__report_page(const fv_story *story, const fv_page_options *options, fv_bytes *out);

/* How the run went, in a sentence. */
void fv__story_sentence(const fv_story *story, fv_bytes *out);
/* The command that repeats the run. */
void fv__story_command(const fv_story *story, fv_bytes *out);

#endif
