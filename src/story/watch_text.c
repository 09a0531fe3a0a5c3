/* A run while it goes on, for a terminal. */
#include "story/html.h"
#include "story/report_page.h"
#include "story/watch_model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BAR = 24, STAGES = 14, LANES = 8, LINES = 6 };

/* One line of at most so many letters; control characters cannot upset the terminal. */
static void put_line(fv_bytes *out, int columns, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put_line(fv_bytes *out, int columns, const char *format, ...) {
    fv_bytes text = { 0 };
    va_list  arguments;
    va_start(arguments, format);
    fv__bytes_vprintf(&text, format, arguments);
    va_end(arguments);
    fv__bytes_append(&text, "", 1);
    int letters = 0;
    for (const uint8_t *c = text.data; *c; c++) {
        bool begins = (*c & 0xc0) != 0x80;
        if (begins && letters++ >= columns) break;
        fv__bytes_append(out, *c < ' ' || *c == 127 ? (const uint8_t *)"?" : c, 1);
    }
    fv__bytes_append(out, "\n", 1);
    fv__bytes_release(&text);
}

static const char *bar(double fraction, int width, char text[64]) {
    int filled = (int)(fmin(fmax(fraction, 0), 1) * width);
    for (int i = 0; i < width; i++) text[i] = i < filled ? '#' : '.';
    text[width] = 0;
    return text;
}

static void put_head(fv_bytes *out, const fv_story *story, const fv_outcome *o, int columns) {
    fv_bytes      sentence = { 0 };
    fv_story_sums s = fv__story_sums(story);
    char          text[64], a[FV_WORDS], b[FV_WORDS], c[FV_WORDS];
    fv__story_sentence(story, &sentence);
    fv__bytes_append(&sentence, "", 1);
    put_line(out, columns, "%s", (char *)sentence.data);
    fv__bytes_release(&sentence);
    if (o->fraction >= 0) {
        fv__say_seconds(o->left, a);
        put_line(out, columns, "[%s] %3.0f %%  %lld of %lld tasks%s%s%s", bar(o->fraction, BAR, text), 100 * o->fraction,
                 (long long)s.tasks, (long long)s.total, o->left >= 0 ? ", about " : "", o->left >= 0 ? a : "",
                 o->left >= 0 ? " left" : "");
    }
    if (fv__story_state(story) != FV_STORY_RUNNING) return;
    put_line(out, columns, "%.3g tasks/s, %s/s read, %s/s written", o->tasks, fv__say_bytes(o->read, a),
             fv__say_bytes(o->written, b));
    put_line(out, columns, "memory %s of %s, %s planned for tasks", fv__say_bytes((double)o->resident, a),
             fv__say_bytes((double)o->bound, b), fv__say_bytes((double)o->planned, c));
}

static void put_stages(fv_bytes *out, const fv_story *story, int columns) {
    int  shown = 0;
    char text[64], time[FV_WORDS];
    for (int p = 0; p < story->graph->nparts; p++) {
        const fv_graph_part *part = &story->graph->parts[p];
        put_line(out, columns, "%s", "");
        put_line(out, columns, "of %s", part->title);
        for (int s = 0; s < part->nstages && shown < STAGES; s++, shown++) {
            fv_story_stage seen = fv__story_stage(story, p, s);
            int64_t        total = fv__story_stage_total(story, p, s), done = seen.done + seen.failed;
            double         seconds = seen.spans[FV_SPAN_READ] + seen.spans[FV_SPAN_COMPUTE] + seen.spans[FV_SPAN_WRITE];
            put_line(out, columns, "  [%s] %6lld/%-6lld  %s%s%s", bar(total ? (double)done / (double)total : 1, 12, text),
                     (long long)done, (long long)total, part->stages[s].title, total ? ", " : " (found done)",
                     total ? fv__say_seconds(seconds, time) : "");
        }
    }
}

static void put_leases(fv_bytes *out, const fv_story *story, int columns) {
    fv_lease_facts lent = fv__story_leases(story);
    char           held[FV_WORDS], waited[FV_WORDS];
    if (lent.leases)
        put_line(out, columns, "device leased %lld times for %s, waited %s for it: %s", (long long)lent.leases,
                 fv__say_seconds(lent.leased, held), fv__say_seconds(lent.queued, waited), fv__story_fact(story, "device"));
}

/* What each worker did most in each stretch of the time. */
static void put_lanes(fv_bytes *out, const fv_story *story, int columns) {
    static const char letters[FV_SPANS] = { '.', 'r', '#', 'w' };
    int               width = FV_MIN(FV_MAX(columns - 24, 10), 64);
    char              lane[65];
    fv_timeline       t;
    fv__timeline_make(story, width, LANES, &t);
    put_line(out, columns, "%s", "");
    put_line(out, columns, "workers, since the beginning (# compute, r read, w write, . wait)");
    for (int r = 0; r < t.rows; r++) {
        for (int c = 0; c < width; c++) {
            float most = 0.02F;
            lane[c] = ' ';
            for (int s = 0; s < FV_SPANS; s++) {
                float part = t.spans[s][(size_t)r * (size_t)width + (size_t)c];
                if (part <= most) continue;
                most = part;
                lane[c] = letters[s];
            }
        }
        lane[width] = 0;
        put_line(out, columns, "  %-18s %s", t.names[r], lane);
    }
    fv__timeline_release(&t);
}

static void put_told(fv_bytes *out, const fv_story *story, int columns) {
    int failures = 0;
    for (int i = 0; i < story->nlogs; i++)
        for (int k = 0; story->logs[i]->told && story->logs[i]->attempt == story->nattempts - 1 && k < story->logs[i]->nfacts;
             k++) {
            const fv_story_fact *fact = &story->logs[i]->facts[k];
            if (strncmp(fact->name, "error ", 6) || failures++ >= LINES) continue;
            if (failures == 1) put_line(out, columns, "%s", "");
            put_line(out, columns, "failed: %s: %s", fact->name + 6, fact->value);
        }
    if (failures > LINES) put_line(out, columns, "and %d more", failures - LINES);
}

static void put_residuals(fv_bytes *out, const fv_story *story, int columns) {
    int64_t      count;
    fv_residual *all = fv__story_residuals(story, &count);
    int          shown = 0;
    for (int64_t i = 0; i < count && shown < LINES; i++) {
        const fv_residual *r = &all[i];
        bool               last = i + 1 == count || r[1].item != r->item || !fv__hash_equal(r[1].call, r->call);
        if (!last) continue;
        if (!shown++) put_line(out, columns, "%s", "");
        put_line(out, columns, "%s, line %lld, item %lld: residual %.5g after %lld iterations", r->op, (long long)r->line,
                 (long long)r->item, r->residual, (long long)r->iteration);
    }
    free(all);
}

char *fv__watch_text(const fv_story *story, int columns) {
    fv_bytes   out = { 0 };
    fv_outcome o = fv__watch_outcome(story);
    put_head(&out, story, &o, columns);
    put_leases(&out, story, columns);
    put_stages(&out, story, columns);
    if (story->nattempts) put_lanes(&out, story, columns);
    put_residuals(&out, story, columns);
    put_told(&out, story, columns);
    fv__bytes_append(&out, "", 1);
    return (char *)out.data;
}
