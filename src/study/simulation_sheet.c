/* A simulation as a table, a picture and a page. Every one of them says that it is simulated. */
#include "base/file.h"
#include "draw/chart.h"
#include "story/html.h"
#include "story/page_frame.h"
#include "study/sheet_files.h"
#include "study/simulation.h"
#include <math.h>
#include <stdlib.h>

const char *fv_simulation_sentence(const fv_simulation *s, char text[FV_SIMULATION_SENTENCE]) {
    int  last = s->nrows ? s->rows[s->nrows - 1].workers : 1, nodes = (s->worth + s->cores - 1) / s->cores;
    int  n = snprintf(text, FV_SIMULATION_SENTENCE,
                      "Worth it: up to %d worker%s (%d node%s), which are busy at least half of the time%s. ", s->worth,
                     s->worth == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s", s->worth == last ? ", and perhaps more" : "");
    bool ends = s->fastest < last;
    n += snprintf(text + n, FV_SIMULATION_SENTENCE - (size_t)n,
                  ends ? "Beyond %d workers it does not become faster."
                       : "It becomes faster up to the most that was asked for, %d.",
                  ends ? s->fastest : last);
    if (s->nrows)
        snprintf(text + n, FV_SIMULATION_SENTENCE - (size_t)n, " With %d, what hinders most is %s.", last,
                 s->rows[s->nrows - 1].bottleneck);
    return text;
}

const char *fv_simulation_assumed(const fv_simulation *s, char text[FV_SIMULATION_SENTENCE]) {
    char disk[24], network[24];
    fv_size_format((int64_t)s->disk, disk);
    fv_size_format((int64_t)s->network, network);
    snprintf(
        text, FV_SIMULATION_SENTENCE,
        "engine %s (%.0f us to hand out a task, %.3g s until a node works), %d workers on a node, disk %s/s, network %s/s for a "
        "node, %.2g %% of the tasks %.0f times as slow, a node lives %.0f h",
        s->engine, s->dispatch * 1e6, s->start, s->cores, disk, network, 100 * s->stragglers, s->slow, s->failures);
    return text;
}

const char *fv_simulation_played(const fv_simulation *s, char text[FV_SIMULATION_SENTENCE]) {
    char   played[FV_WORDS], together[FV_WORDS];
    double unsure = 0;
    for (int i = 0; i < s->nrows; i++) unsure = fmax(unsure, s->rows[i].unsure);
    fv__say_count(s->tasks, played);
    if (s->together <= 1)
        snprintf(text, FV_SIMULATION_SENTENCE, "%s tasks", played);
    else
        snprintf(text, FV_SIMULATION_SENTENCE,
                 "%.3g tasks, played as %s batches of up to %s in a row on one worker, so that times can be off by up to %.2g %%",
                 s->all_tasks, played, fv__say_count(s->together, together), 100 * unsure);
    return text;
}

static fv_status write_table(const fv_simulation *s, const char *folder, fv_error *error) {
    char     *path = fv__sprintf("%s/simulated.csv", folder);
    FILE     *file;
    fv_status status = fv__sheet_open(path, &file, error);
    if (status == FV_OK) {
        fprintf(file, "simulated_workers,nodes,seconds,speedup,efficiency,compute,disk,handing,start,straggle,lost,idle,"
                      "failed_nodes,redone_tasks,unsure,bottleneck\n");
        for (int i = 0; i < s->nrows; i++) {
            const fv_simulated *r = &s->rows[i];
            fprintf(file, "%d,%d,%.6f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%lld,%lld,%.4f,\"%s\"\n", r->workers, r->nodes,
                    r->seconds, r->speedup, r->efficiency, r->compute, r->disk, r->handing, r->start, r->straggle, r->lost,
                    r->idle, (long long)r->failed, (long long)r->redone, r->unsure, r->bottleneck);
        }
        status = fv__sheet_close(path, file, error);
    }
    free(path);
    return status;
}

/* Seconds and efficiency over workers, side by side. */
static fv_drawing *draw(const fv_simulation *s) {
    fv_drawing *drawing = fv__drawing_new(760, 320, 2);
    double     *x = fv__alloc(4 * (size_t)(s->nrows + 1) * sizeof *x), *seconds = x + s->nrows, *ideal = seconds + s->nrows,
           *efficiency = ideal + s->nrows, least = INFINITY, most = 0;
    for (int i = 0; i < s->nrows; i++) {
        x[i] = s->rows[i].workers;
        seconds[i] = s->rows[i].seconds;
        ideal[i] = s->one / x[i];
        efficiency[i] = 100 * s->rows[i].efficiency;
        least = fmin(least, fmin(seconds[i], ideal[i]));
        most = fmax(most, seconds[i]);
    }
    fv_chart chart;
    fv__chart_init(&chart, drawing, 0, 0, 380, 320, "SIMULATED time", "workers", "seconds");
    chart.across.log = chart.up.log = true;
    fv__chart_range(&chart, 1, fmax(x[s->nrows - 1], 2), least, most);
    chart.across.low = 1;
    chart.across.high = fmax(x[s->nrows - 1], 2);
    chart.up.low = fmax(least, 1e-9) / 1.2;
    chart.up.high = most * 1.2;
    fv__chart_axes(&chart);
    chart.legend = chart.top + chart.high - 28; /* curves fall */
    fv__chart_curve(&chart, x, ideal, s->nrows, 0x999999, false, "if all were always busy");
    fv__chart_curve(&chart, x, seconds, s->nrows, fv__palette[0], true, "simulated");
    fv__chart_init(&chart, drawing, 380, 0, 380, 320, "SIMULATED efficiency", "workers", "%");
    chart.across.log = true;
    fv__chart_range(&chart, 1, fmax(x[s->nrows - 1], 2), 0, 100);
    fv__chart_axes(&chart);
    fv__chart_curve(&chart, x, efficiency, s->nrows, fv__palette[3], true, NULL);
    free(x);
    return drawing;
}

static void put_answer(fv_bytes *out, const fv_simulated *r) {
    char words[FV_WORDS];
    fv__bytes_printf(out, "<tr><td class=\"n\">%d</td><td class=\"n\">%d</td><td class=\"n\">%s</td>", r->workers, r->nodes,
                     fv__say_seconds(r->seconds, words));
    fv__bytes_printf(out, "<td class=\"n\">%.1f</td><td class=\"n\">%.1f %%</td><td>", r->speedup, 100 * r->efficiency);
    fv__html_text(out, r->bottleneck);
    fv__bytes_printf(out, "</td></tr>\n");
}

static void put_parts(fv_bytes *out, const fv_simulated *r) {
    const double parts[] = { r->compute, r->disk, r->handing, r->start, r->straggle, r->lost, r->idle };
    fv__bytes_printf(out, "<tr><td class=\"n\">%d</td>", r->workers);
    for (int i = 0; i < FV_COUNT(parts); i++) fv__bytes_printf(out, "<td class=\"n\">%.1f</td>", 100 * parts[i]);
    fv__bytes_printf(out, "</tr>\n");
}

static void put_page(const fv_simulation *s, const char *title, fv_drawing *drawing, fv_bytes *out) {
    char sentence[FV_SIMULATION_SENTENCE], words[FV_WORDS];
    fv__page_begin(out, "Simulated scaling");
    fv__bytes_printf(out, "<h1>Simulated scaling of ");
    fv__html_text(out, title);
    fv__bytes_printf(out,
                     "</h1>\n<p class=\"simulated\"><b>Simulated.</b> The tasks of a measured run were played through a model of "
                     "many nodes. Nothing on this page was measured but the run itself.</p>\n<p class=\"verdict running\">");
    fv__html_text(out, fv_simulation_sentence(s, sentence));
    fv__bytes_printf(out, "</p>\n<table>\n<tr><th>work</th><td>%s</td></tr>\n", fv_simulation_played(s, sentence));
    fv__bytes_printf(out, "<tr><th>measured</th><td>%s on %d worker%s</td></tr>\n", fv__say_seconds(s->measured, words),
                     s->recorded, s->recorded == 1 ? "" : "s");
    if (s->predicted_two > 0)
        fv__bytes_printf(out, "<tr><th>check</th><td>2 workers: predicted %.3f s, measured %.3f s, %.0f %% off</td></tr>\n",
                         s->predicted_two, s->measured_two, 100 * fabs(s->predicted_two / s->measured_two - 1));
    fv__bytes_printf(out, "<tr><th>assumed</th><td>");
    fv__html_text(out, fv_simulation_assumed(s, sentence));
    fv__bytes_printf(out, "</td></tr>\n</table>\n<h2>Time and efficiency (simulated)</h2>\n");
    fv__drawing_svg(drawing, out);
    fv__bytes_printf(out, "<table><tr><th>workers</th><th>nodes</th><th>time</th><th>speed-up</th><th>efficiency</th>"
                          "<th>what hinders most</th></tr>\n");
    for (int i = 0; i < s->nrows; i++) put_answer(out, &s->rows[i]);
    fv__bytes_printf(out, "</table>\n<h2>Where the time of the workers goes, in per cent (simulated)</h2>\n"
                          "<table><tr><th>workers</th><th>work</th><th>disk or network</th><th>handing "
                          "out</th><th>start</th><th>slow</th><th>failed</th>"
                          "<th>idle</th></tr>\n");
    for (int i = 0; i < s->nrows; i++) put_parts(out, &s->rows[i]);
    fv__bytes_printf(out, "</table>\n");
    fv__page_end(out);
}

fv_status fv_simulation_save(const fv_simulation *s, const char *folder, const char *title, fv_error *error) {
    FV_TRY(fv__path_make_folders(folder, error));
    FV_TRY(write_table(s, folder, error));
    fv_bytes    page = { 0 };
    fv_drawing *drawing = draw(s);
    char       *path = fv__sprintf("%s/simulated.html", folder);
    put_page(s, title, drawing, &page);
    fv_status status = fv__file_write_all(path, page.data, page.size, false, error);
    if (status == FV_OK)
        status = fv__sheet_pictures(drawing, folder, "simulated", error);
    else
        fv__drawing_free(drawing);
    fv__bytes_release(&page);
    free(path);
    return status;
}
