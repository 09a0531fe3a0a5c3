/* What the graph finds out about a file that is to be written. */
#include "graph/graph.h"
#include "support/test.h"
#include <fovea/pipeline.h>
#include <unistd.h>

static void make_scan(void) {
    fv_pipeline *p = fv_pipeline_new();
    fv_result   *result = NULL;
    fv_error     error = { 0 };
    CHECK_INT(fv_pipeline_add(p, "t", "write(xray_phantom([8, 16, 16], parallel(range(0, 150, count = 6))), \"p.mrc\")", &error),
              FV_OK);
    CHECK_MESSAGE(fv_pipeline_run(p, &(fv_run_options){ .workers = 1 }, &result, &error) == FV_OK, "%s", error.message);
    fv_result_free(result);
    fv_pipeline_free(p);
    FILE *tilts = fopen("p.tlt", "w");
    fputs("0\n30\n60\n90\n120\n150\n", tilts);
    fclose(tilts);
}

/* Whether the angles of the scan go into the only file of a text. */
static bool has_angles(const char *text) {
    fv_diagnostics found = { 0 };
    fv_error       error = { 0 };
    fv_bindings    bindings = { 0 };
    fv_graph      *graph = NULL;
    fv_program    *program = fv__program_parse("t.fov", text, &found);
    bool           there = false;
    if (fv__bindings_resolve(&bindings, program, &found, &error) == FV_OK &&
        fv__graph_build(program, &bindings, 0, NULL, &graph, &found, &error) == FV_OK)
        there = graph->sinks[0].write.angles != NULL;
    else
        test_fail(__FILE__, __LINE__, "%s: %s", text, found.count ? found.items[0].message : error.message);
    fv__graph_free(graph);
    fv__bindings_release(&bindings);
    fv__diagnostics_release(&found);
    fv__program_free(program);
    return there;
}

TEST(angles_stay_with_their_planes_and_go_where_planes_move) {
    CHECK_INT(chdir(test_folder()), 0);
    make_scan();
    CHECK(has_angles("read(\"p.mrc\") |> write(\"o.parquet\")"));
    CHECK(has_angles("gaussian(read(\"p.mrc\"), [1, 1]) |> write(\"o.parquet\")"));
    CHECK(has_angles("checkpoint(read(\"p.mrc\")) |> write(\"o.parquet\")"));
    CHECK(!has_angles("read(\"p.mrc\")[::-1] |> write(\"o.parquet\")"));
    CHECK(!has_angles("rotate90(read(\"p.mrc\")) |> write(\"o.parquet\")"));
    CHECK(!has_angles("read(\"p.mrc\")[0:3] |> write(\"o.parquet\")"));
}

TEST_MAIN
