/* The report of a run as a page, section by section. */
#include "story/report_page.h"
#include "base/file.h"
#include "op/format.h"
#include "story/page_frame.h"
#include "story/story_parts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 256, ROWS = 32, PICTURES = 12, TABLES = 4, FAILURES = 200, FILES = 100 };
#define HASHED ((int64_t)128 << 20) /* bytes of inputs that are read for their hashes unless more is asked for */

static void put_heading(fv_bytes *out, const char *text) {
    fv__bytes_printf(out, "<h2>");
    fv__html_text(out, text);
    fv__bytes_printf(out, "</h2>\n");
}

static void put_fact(fv_bytes *out, const char *name, const char *value) {
    if (!value || !*value) return;
    fv__bytes_printf(out, "<tr><th>");
    fv__html_text(out, name);
    fv__bytes_printf(out, "</th><td>");
    fv__html_text(out, value);
    fv__bytes_printf(out, "</td></tr>\n");
}

static double number_fact(const fv_story *story, const char *name) {
    const char *text = fv__story_fact(story, name);
    return text ? atof(text) : 0;
}

/* ---------------------------------------------------------------- verdict */

/* "12 of 40 tasks in 3 s, with 2 workers (threads)" */
static void put_progress(const fv_story *story, fv_bytes *out) {
    fv_story_sums s = fv__story_sums(story);
    char          done[FV_WORDS], total[FV_WORDS], time[FV_WORDS];
    const char   *engine = fv__story_fact(story, "engine");
    int           workers = (int)number_fact(story, "workers");
    fv__say_count(s.tasks, done);
    fv__say_count(FV_MAX(s.total, s.tasks), total);
    if (s.total > s.tasks)
        fv__bytes_printf(out, "%s of %s tasks", done, total);
    else
        fv__bytes_printf(out, "%s task%s", done, s.tasks == 1 ? "" : "s");
    fv__bytes_printf(out, " in %s", fv__say_seconds(story->seconds, time));
    bool ranks = engine && !strcmp(engine, "mpi"); /* each of which has so many */
    if (workers) fv__bytes_printf(out, ", %d worker%s%s", workers, workers == 1 ? "" : "s", ranks ? " in each rank" : "");
    if (engine) fv__bytes_printf(out, " (%s)", engine);
}

void fv__story_sentence(const fv_story *story, fv_bytes *out) {
    fv_story_state state = fv__story_state(story);
    const char    *failure = fv__story_fact(story, "failure");
    int            failed = (int)number_fact(story, "items-failed");
    int64_t        items = 0;
    for (int p = 0; p < story->graph->nparts; p++)
        if (story->graph->parts[p].items) items = FV_MAX(items, story->graph->parts[p].count);
    switch (state) {
    case FV_STORY_WAITING:
        if (!story->nattempts) {
            fv__bytes_printf(out, "Nothing of this run has begun.");
            return;
        }
        fv__bytes_printf(out, "The run waits for workers: ");
        break;
    case FV_STORY_RUNNING: fv__bytes_printf(out, "The run goes on: "); break;
    case FV_STORY_DONE: fv__bytes_printf(out, "Everything was done: "); break;
    case FV_STORY_STOPPED: fv__bytes_printf(out, "The run was stopped: "); break;
    case FV_STORY_KILLED: fv__bytes_printf(out, "The run was killed before its end: "); break;
    case FV_STORY_FAILED:
        if (failed && items >= failed)
            fv__bytes_printf(out, "%d of %lld items failed: ", failed, (long long)items);
        else
            fv__bytes_printf(out, "The run failed: ");
        break;
    }
    put_progress(story, out);
    if (story->nattempts > 1) fv__bytes_printf(out, ", in %d attempts", story->nattempts);
    fv__bytes_printf(out, ".");
    if (state == FV_STORY_STOPPED || state == FV_STORY_KILLED) fv__bytes_printf(out, " The same command continues it.");
    if (state == FV_STORY_FAILED && failure) fv__bytes_printf(out, " %s", failure);
}

static void put_verdict(fv_bytes *out, const fv_story *story) {
    fv_bytes sentence = { 0 };
    fv__story_sentence(story, &sentence);
    fv__bytes_append(&sentence, "", 1);
    fv__bytes_printf(out, "<p class=\"verdict %s\">", fv__story_state_name(fv__story_state(story)));
    fv__html_text(out, (char *)sentence.data);
    fv__bytes_printf(out, "</p>\n");
    fv__bytes_release(&sentence);
}

/* Those of the last attempt: what failed before was tried again. */
static void put_failures(fv_bytes *out, const fv_story *story) {
    int shown = 0;
    for (int i = 0; i < story->nlogs; i++) {
        const fv_story_log *log = story->logs[i];
        for (int k = 0; log->told && log->attempt == story->nattempts - 1 && k < log->nfacts; k++) {
            if (strncmp(log->facts[k].name, "error ", 6) || shown++ >= FAILURES) continue;
            if (shown == 1)
                fv__bytes_printf(out, "<h2>What failed, and why</h2>\n<table><tr><th>item</th><th>reason</th></tr>\n");
            fv__bytes_printf(out, "<tr><td>");
            fv__html_text(out, log->facts[k].name + 6);
            fv__bytes_printf(out, "</td><td>");
            fv__html_text(out, log->facts[k].value);
            fv__bytes_printf(out, "</td></tr>\n");
        }
    }
    if (shown) fv__bytes_printf(out, "</table>\n");
    if (shown > FAILURES) fv__bytes_printf(out, "<p>%d more are in the record.</p>\n", shown - FAILURES);
}

/* ---------------------------------------------------------------- results */

static void put_value(fv_bytes *out, const fv_story *story, const fv_story_fact *fact) {
    bool last = fv__story_fact(story, fact->name) == fact->value;
    if (strncmp(fact->name, "value ", 6) || !last) return;
    fv__bytes_printf(out, "<p><code>");
    fv__html_text(out, fact->name + 6);
    fv__bytes_printf(out, "</code> = <b>");
    fv__html_text(out, fact->value);
    fv__bytes_printf(out, "</b></p>\n");
}

/* Each once. The caller frees the list and its paths. */
static void put_files(fv_bytes *out, const fv_story *story, const fv_story_file *files, int count) {
    double all = number_fact(story, "outputs-made") + number_fact(story, "outputs-current");
    char   words[FV_WORDS];
    fv__bytes_printf(out, "<h3>Files</h3>\n<table>\n");
    for (int i = 0; i < FV_MIN(count, FILES); i++) {
        fv_file_id id = { 0 };
        fv__bytes_printf(out, "<tr><td>");
        fv__html_text(out, files[i].name);
        fv__bytes_printf(out, "</td><td class=\"n\">");
        if (!fv__story_may_open(files[i].path))
            fv__bytes_printf(out, "an address, which the report does not ask");
        else if (fv__path_is_folder(files[i].path))
            fv__bytes_printf(out, "folder");
        else if (fv__file_identify(files[i].path, &id, NULL) == FV_OK)
            fv__html_text(out, fv__say_bytes((double)id.size, words));
        else
            fv__bytes_printf(out, "not there any more");
        fv__bytes_printf(out, "</td></tr>\n");
    }
    fv__bytes_printf(out, "</table>\n");
    if (all > FV_MIN(count, FILES)) fv__bytes_printf(out, "<p>%.0f files in all.</p>\n", all);
}

static bool is_there(const fv_story_file *file) { return fv__story_may_open(file->path) && fv__file_exists(file->path); }

static void put_results(fv_bytes *out, const fv_story *story) {
    int            count, shown = 0, tables = 0;
    fv_story_file *files = fv__story_outputs(story, &count);
    put_heading(out, "Results");
    for (int i = 0; i < story->nlogs; i++)
        for (int k = 0; story->logs[i]->told && k < story->logs[i]->nfacts; k++) put_value(out, story, &story->logs[i]->facts[k]);
    fv__bytes_printf(out, "<div class=\"row\">\n");
    for (int i = 0; i < count && shown < PICTURES; i++)
        if (is_there(&files[i]) && !fv__table_format_of_file(files[i].path))
            shown += fv__put_thumbnail(out, files[i].path, files[i].name);
    fv__bytes_printf(out, "</div>\n");
    for (int i = 0; i < count && tables < TABLES; i++)
        if (is_there(&files[i])) tables += fv__put_table(out, files[i].path, files[i].name);
    if (count)
        put_files(out, story, files, count);
    else
        fv__bytes_printf(out, "<p>No file is complete.</p>\n");
    fv__story_outputs_free(files, count);
}

/* ---------------------------------------------------------------- what was run, where */

static void put_pipeline(fv_bytes *out, const fv_story *story, const fv_page_options *options) {
    const fv_run_graph *g = story->graph;
    const char         *text = fv__story_fact(story, "text");
    char                words[FV_WORDS];
    put_heading(out, "Pipeline");
    fv__bytes_printf(out, "<pre>");
    fv__html_text(out, text ? text : g->text ? g->text : "");
    fv__bytes_printf(out, "</pre>\n");
    if (g->nparameters) fv__bytes_printf(out, "<h3>Parameters that were set</h3>\n<table>\n");
    for (int i = 0; i < g->nparameters; i++) put_fact(out, g->parameters[i].name, g->parameters[i].values);
    if (g->nparameters) fv__bytes_printf(out, "</table>\n");
    fv__bytes_printf(out, "<h3>Version and machine</h3>\n<table>\n");
    put_fact(out, "Fovea", fv__story_fact(story, "version"));
    if (story->nattempts) put_fact(out, "begun", fv__say_time(story->attempts[0].from, words));
    if (story->nattempts) put_fact(out, "last sign of it", fv__say_time(story->attempts[story->nattempts - 1].to, words));
    put_fact(out, "host", fv__story_fact(story, "host"));
    put_fact(out, "processor", fv__story_fact(story, "processor"));
    put_fact(out, "cores", fv__story_fact(story, "cores"));
    put_fact(out, "instructions", fv__story_fact(story, "isa"));
    if (number_fact(story, "installed") > 0)
        put_fact(out, "memory of the machine", fv__say_bytes(number_fact(story, "installed"), words));
    put_fact(out, "engine", fv__story_fact(story, "engine"));
    put_fact(out, "workers", fv__story_fact(story, "workers"));
    put_fact(out, "device", fv__story_fact(story, "device"));
    put_fact(out, "about the device", fv__story_fact(story, "device-note"));
    put_fact(out, "left on the CPU", fv__story_fact(story, "device-left"));
    put_fact(out, "folder", fv__story_fact(story, "folder"));
    put_fact(out, "record", story->folder);
    fv__bytes_printf(out, "</table>\n");
    fv__put_inputs(out, story, options->hash ? INT64_MAX : HASHED);
}

/* ---------------------------------------------------------------- where the time went */

static void put_graphs(fv_bytes *out, const fv_story *story) {
    put_heading(out, "Graph");
    if (!story->graph->nparts) fv__bytes_printf(out, "<p>The record has no graph: it was made by an earlier version.</p>\n");
    if (story->graph->nparts)
        fv__bytes_printf(out, "<p>The darker, the more time of all workers; a blue frame: stored between stages.</p>\n");
    for (int p = 0; p < story->graph->nparts; p++) {
        const fv_graph_part *part = &story->graph->parts[p];
        fv__bytes_printf(out, "<h3>Of ");
        fv__html_text(out, part->title);
        fv__bytes_printf(out, "</h3>\n");
        fv__put_graph(out, story, p);
        if (part->left_out) fv__bytes_printf(out, "<p>%d more operators are not drawn.</p>\n", part->left_out);
    }
}

static int by_seconds(const void *a, const void *b) {
    double x = ((const fv_spent *)a)->seconds, y = ((const fv_spent *)b)->seconds;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void put_operators(fv_bytes *out, const fv_story *story) {
    fv_spent list[FV_MOST_SPENT];
    int      count = fv__story_spent(story, list);
    double   all = 0;
    char     words[FV_WORDS];
    qsort(list, (size_t)count, sizeof *list, by_seconds);
    for (int i = 0; i < count; i++) all += list[i].seconds;
    fv__bytes_printf(out, "<h3>Operators</h3>\n<table><tr><th>operator</th><th>time of all workers</th><th>share</th></tr>\n");
    for (int i = 0; i < count; i++) {
        fv__bytes_printf(out, "<tr><td>");
        fv__html_text(out, list[i].op);
        fv__bytes_printf(out, "</td><td class=\"n\">%s</td><td class=\"n\">%.1f %%</td></tr>\n",
                         fv__say_seconds(list[i].seconds, words), all > 0 ? 100 * list[i].seconds / all : 0);
    }
    fv__bytes_printf(out, "</table>\n");
}

static void put_times(fv_bytes *out, const fv_story *story, const fv_timeline *timeline) {
    put_heading(out, "What the workers did");
    if (story->nattempts > 1)
        fv__bytes_printf(out, "<p>The attempts follow each other without the time between them; a dashed line parts them.</p>\n");
    if (timeline->together > 1) fv__bytes_printf(out, "<p>A row is the average of %d workers.</p>\n", timeline->together);
    fv__put_timeline(out, story, timeline);
    put_operators(out, story);
}

static void put_memory(fv_bytes *out, const fv_story *story, const fv_timeline *timeline) {
    char bound[FV_WORDS], peak[FV_WORDS];
    put_heading(out, "Memory");
    fv__put_memory(out, story, timeline);
    double most = number_fact(story, "peak");
    for (int c = 0; c < timeline->columns; c++) most = fmax(most, timeline->resident[c]);
    fv__bytes_printf(out, "<p>At most %s of %s that the run was allowed.</p>\n", fv__say_bytes(most, peak),
                     fv__say_bytes(number_fact(story, "memory"), bound));
}

/* ---------------------------------------------------------------- reuse, slow tasks, disk */

static void put_reused(fv_bytes *out, const fv_story *story) {
    fv_story_sums sums = fv__story_sums(story);
    put_heading(out, "What was reused");
    if (number_fact(story, "outputs-current") > 0)
        fv__bytes_printf(
            out, "<p>%.0f files were up to date: made before by the same operators, versions, parameters and inputs.</p>\n",
            number_fact(story, "outputs-current"));
    if (!sums.found && !sums.spared) {
        fv__bytes_printf(out, "<p>No task: all of them ran in this story.</p>\n");
        return;
    }
    fv__bytes_printf(out, "<table><tr><th>stage</th><th>tasks</th><th>why they did not run</th></tr>\n");
    for (int p = 0; p < story->graph->nparts; p++)
        for (int s = 0; s < story->graph->parts[p].nstages; s++) {
            fv_stage_facts f = fv__story_planned(story, p, s);
            for (int kind = 0; kind < 2; kind++) {
                int64_t count = kind ? f.spared : f.found;
                if (!count) continue;
                fv__bytes_printf(out, "<tr><td>");
                fv__html_text(out, story->graph->parts[p].stages[s].title);
                fv__bytes_printf(out, "</td><td class=\"n\">%lld</td><td>%s</td></tr>\n", (long long)count,
                                 kind ? "nothing that was still to be made needed them"
                                      : "the store had their results: same operators, versions, parameters and inputs");
            }
        }
    fv__bytes_printf(out, "</table>\n");
}

static double took(const fv_task_facts *f) { return f->read + f->compute + f->write; }
static int    by_time(const void *a, const void *b) {
       double x = took(a), y = took(b);
       return x < y ? 1 : x > y ? -1 : 0;
}

static void put_task(fv_bytes *out, const fv_story *story, const fv_task_facts *f) {
    int          part = fv__run_graph_part(story->graph, f->item);
    bool         known = part >= 0 && f->stage >= 0 && f->stage < story->graph->parts[part].nstages;
    const char  *item = fv__run_graph_item(story->graph, f->item);
    const double spans[] = { took(f), f->wait, f->read, f->compute, f->write };
    char         words[FV_WORDS];
    fv__bytes_printf(out, "<tr><td>");
    fv__html_text(out, known ? story->graph->parts[part].stages[f->stage].title : "");
    fv__bytes_printf(out, "</td><td>");
    if (item) fv__html_text(out, item);
    fv__bytes_printf(out, "</td><td class=\"n\">%lld</td><td class=\"n\">%d</td>", (long long)f->task, f->worker);
    for (int i = 0; i < FV_COUNT(spans); i++) fv__bytes_printf(out, "<td class=\"n\">%s</td>", fv__say_seconds(spans[i], words));
    fv__bytes_printf(out, "<td class=\"n\">%s</td></tr>\n", fv__say_bytes((double)f->memory, words));
}

static void put_slowest(fv_bytes *out, const fv_story *story) {
    fv_bytes all = { 0 };
    for (int i = 0; i < story->nlogs; i++)
        if (story->logs[i]->told && story->logs[i]->nslowest)
            fv__bytes_append(&all, story->logs[i]->slowest, (size_t)story->logs[i]->nslowest * sizeof(fv_task_facts));
    fv_task_facts *tasks = (fv_task_facts *)(void *)all.data;
    size_t         count = all.size / sizeof *tasks;
    if (count) qsort(tasks, count, sizeof *tasks, by_time);
    put_heading(out, "Slowest tasks");
    fv__bytes_printf(out,
                     "<table><tr><th>stage</th><th>item</th><th>task</th><th>worker</th><th>time</th><th>waited</th><th>read</th>"
                     "<th>compute</th><th>write</th><th>memory</th></tr>\n");
    for (size_t i = 0; i < FV_MIN(count, FV_STORY_SLOWEST); i++) put_task(out, story, &tasks[i]);
    fv__bytes_printf(out, "</table>\n");
    fv__bytes_release(&all);
}

static void put_disk(fv_bytes *out, const fv_story *story) {
    fv_story_sums s = fv__story_sums(story);
    char          a[FV_WORDS], b[FV_WORDS], c[FV_WORDS];
    double        seconds = FV_MAX(story->seconds, 1e-9);
    put_heading(out, "Disk and network");
    fv__bytes_printf(
        out, "<table><tr><th></th><th>voxels and rows</th><th>per second of the run</th><th>time of all workers</th></tr>\n");
    fv__bytes_printf(out, "<tr><th>read</th><td class=\"n\">%s</td><td class=\"n\">%s/s</td><td class=\"n\">%s</td></tr>\n",
                     fv__say_bytes((double)s.bytes_read, a), fv__say_bytes((double)s.bytes_read / seconds, b),
                     fv__say_seconds(s.spans[FV_SPAN_READ], c));
    fv__bytes_printf(
        out, "<tr><th>written</th><td class=\"n\">%s</td><td class=\"n\">%s/s</td><td class=\"n\">%s</td></tr>\n</table>\n",
        fv__say_bytes((double)s.bytes_written, a), fv__say_bytes((double)s.bytes_written / seconds, b),
        fv__say_seconds(s.spans[FV_SPAN_WRITE], c));
    fv__bytes_printf(
        out, "<p class=\"small\">Counted before compression, of files on this machine's disks and elsewhere alike.</p>\n");
}

/* ---------------------------------------------------------------- again */

static void put_quoted(fv_bytes *out, const char *text) {
    bool plain = *text != 0;
    for (const char *c = text; *c && plain; c++)
        plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("_-./=,:+@%", *c);
    if (plain) {
        fv__bytes_printf(out, "%s", text);
        return;
    }
    fv__bytes_printf(out, "'");
    for (const char *c = text; *c; c++) fv__bytes_printf(out, *c == '\'' ? "'\\''" : "%c", *c);
    fv__bytes_printf(out, "'");
}

void fv__story_command(const fv_story *story, fv_bytes *out) {
    const fv_run_graph *g = story->graph;
    const char         *folder = fv__story_fact(story, "folder"), *engine = fv__story_fact(story, "engine");
    const char         *text = fv__story_fact(story, "text"), *device = fv__story_fact(story, "device");
    if (folder) {
        fv__bytes_printf(out, "cd ");
        put_quoted(out, folder);
        fv__bytes_printf(out, " && ");
    }
    fv__bytes_printf(out, "fovea run ");
    if (!g->file || !*g->file || !strcmp(g->file, "-e")) {
        fv__bytes_printf(out, "-e ");
        put_quoted(out, text ? text : g->text ? g->text : "");
    } else
        put_quoted(out, g->file);
    for (int i = 0; i < g->nparameters; i++) {
        char *set = fv__sprintf("%s=%s", g->parameters[i].name, g->parameters[i].values);
        fv__bytes_printf(out, " --set ");
        put_quoted(out, set);
        free(set);
    }
    if (g->chunk) fv__bytes_printf(out, " --chunk %s", g->chunk);
    if (g->into) {
        fv__bytes_printf(out, " --into ");
        put_quoted(out, g->into);
    }
    if (engine && strcmp(engine, "threads")) fv__bytes_printf(out, " --engine %s", engine);
    if (device && strcmp(device, "cpu")) fv__bytes_printf(out, " --device %s", device);
}

static void put_again(fv_bytes *out, const fv_story *story) {
    fv_bytes command = { 0 };
    fv__story_command(story, &command);
    fv__bytes_append(&command, "", 1);
    put_heading(out, "To repeat it");
    fv__bytes_printf(out, "<pre>");
    fv__html_text(out, (char *)command.data);
    fv__bytes_printf(
        out, "</pre>\n<p class=\"small\">What is up to date is not computed again; <code>--fresh</code> starts over.</p>\n");
    fv__bytes_release(&command);
}

/* ---------------------------------------------------------------- all of it */

void fv__report_page(const fv_story *story, const fv_page_options *options, fv_bytes *out) {
    const char  *name = story->graph->file && *story->graph->file ? story->graph->file : "a pipeline";
    char        *title = fv__sprintf("Report of %s", strcmp(name, "-e") ? name : "a pipeline");
    fv_timeline  timeline;
    int64_t      count;
    fv_residual *residuals = fv__story_residuals(story, &count);
    fv__timeline_make(story, COLUMNS, ROWS, &timeline);
    fv__page_begin(out, title);
    fv__bytes_printf(out, "<h1>");
    fv__html_text(out, title);
    fv__bytes_printf(out, "</h1>\n<p class=\"small\">run ");
    fv__html_text(out, fv__path_name(story->folder));
    fv__bytes_printf(out, "</p>\n");
    put_verdict(out, story);
    put_failures(out, story);
    put_results(out, story);
    put_pipeline(out, story, options);
    put_graphs(out, story);
    put_times(out, story, &timeline);
    put_memory(out, story, &timeline);
    put_reused(out, story);
    put_slowest(out, story);
    if (count) put_heading(out, "Residuals");
    if (count) fv__bytes_printf(out, "<div class=\"row\">\n");
    fv__put_residuals(out, residuals, count);
    if (count) fv__bytes_printf(out, "</div>\n");
    put_disk(out, story);
    put_again(out, story);
    put_heading(out, "Methods");
    fv__put_methods(out, story);
    fv__page_end(out);
    fv__timeline_release(&timeline);
    free(residuals);
    free(title);
}
