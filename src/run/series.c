/* Lists of steps. */
#include "run/series.h"
#include "base/file.h"
#include "base/xml_tags.h"
#include <stdlib.h>

#define MADE_BY "<!-- made by Fovea -->"
enum { MOST = 4 << 20 };

bool fv__series_of(const fv_instance *instance, const fv_stage *stage) {
    for (int t = 0; t < stage->ntargets; t++)
        if (stage->targets[t].kind == FV_TARGET_SINK && fv__instance_output(instance, &stage->targets[t])->file->sink->series)
            return true;
    return false;
}

static bool first_of_its_list(const fv_graph *graph, int sink) {
    const char *series = graph->sinks[sink].series;
    bool        first = series != NULL;
    for (int k = 0; k < sink && first; k++) first = !graph->sinks[k].series || strcmp(graph->sinks[k].series, series) != 0;
    return first;
}

static fv_status check_list(const char *path, fv_error *error) {
    fv_bytes text = { 0 };
    if (!fv__file_exists(path)) return FV_OK;
    bool ours = fv__file_read_all(path, MOST, &text, NULL) == FV_OK && strstr((char *)text.data, MADE_BY);
    fv__bytes_release(&text);
    return ours ? FV_OK : fv_fail(error, FV_ERROR_USAGE, "%s exists and was not made by Fovea; --overwrite replaces it", path);
}

fv_status fv__series_check(const fv_outputs *outputs, const fv_instance *instance, fv_error *error) {
    const fv_graph *graph = instance->graph;
    for (int k = 0; k < graph->nsinks && !fv__outputs_overwrite(outputs); k++)
        if (first_of_its_list(graph, k)) FV_TRY(check_list(graph->sinks[k].series, error));
    return FV_OK;
}

/* Gives the number of steps. */
static int write_list(fv_outputs *outputs, const fv_graph *graph, const char *series, fv_bytes *text) {
    int count = 0;
    fv__bytes_printf(text, "<?xml version=\"1.0\"?>\n" MADE_BY "\n<VTKFile type=\"Collection\" version=\"0.1\">\n<Collection>\n");
    for (int k = 0; k < graph->nsinks; k++) {
        const fv_sink *sink = &graph->sinks[k];
        if (!sink->series || strcmp(sink->series, series) != 0) continue;
        fv_output *output = fv__output_new(sink->file, sink->key);
        if (fv__outputs_made(outputs, output)) {
            char *name = fv__xml_escaped(fv__path_name(sink->file));
            fv__bytes_printf(text, "<DataSet timestep=\"%lld\" part=\"0\" file=\"%s\"/>\n", (long long)sink->step, name);
            free(name);
            count++;
        }
        fv__output_leave(output);
    }
    fv__bytes_printf(text, "</Collection>\n</VTKFile>\n");
    return count;
}

/* Once more after writing: another thread that knew more may have written before this one. */
static fv_status update_list(fv_outputs *outputs, const fv_graph *graph, const char *series, fv_error *error) {
    fv_status status = FV_OK;
    bool      changed = true;
    for (int turn = 0; turn <= graph->nsinks && changed && status == FV_OK; turn++) {
        fv_bytes text = { 0 }, before = { 0 };
        int      count = write_list(outputs, graph, series, &text);
        bool     same = fv__file_exists(series) && fv__file_read_all(series, MOST, &before, NULL) == FV_OK &&
                    before.size == text.size && !memcmp(before.data, text.data, text.size);
        changed = count && !same;
        if (changed) status = fv__file_write_all(series, text.data, text.size, true, error);
        fv__bytes_release(&text);
        fv__bytes_release(&before);
    }
    return status;
}

fv_status fv__series_update(fv_outputs *outputs, const fv_instance *instance, fv_error *error) {
    const fv_graph *graph = instance->graph;
    for (int k = 0; k < graph->nsinks; k++)
        if (first_of_its_list(graph, k)) FV_TRY(update_list(outputs, graph, graph->sinks[k].series, error));
    return FV_OK;
}
