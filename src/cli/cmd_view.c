/* fovea view: images, labels and tables in the browser. */
#include "cli.h"
#include "paraview.h"
#include "stopping.h"
#include "view_files.h"
#include <errno.h>
#include <fovea/describe.h>
#include <fovea/report.h>
#include <malloc.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

typedef struct {
    fv_texts    labels, table;
    bool        open, paraview;
    int64_t     port;
    const char *path, *value, *listen, *allow_origin, *paraview_script;
} view_options;

static const fv_option options[] = {
    FV_OPTION(view_options, labels, .argument = "FILE", .doc = "image of labels that is shown over the others"),
    FV_OPTION(view_options, table, .argument = "FILE", .doc = "table whose rows describe the labels, by its column label"),
    FV_OPTION(view_options, path, .argument = "NAME", .doc = "dataset inside the files, for formats that hold several"),
    FV_OPTION(view_options, value, .argument = "NAME",
              .doc = "value of a pipeline that is seen first; the last image if left out"),
    FV_OPTION(view_options, open, .doc = "open the link in a browser"),
    FV_OPTION(view_options, port, .min = 0, .max = 65535, .argument = "N",
              .doc = "port to listen on; one that is free if left out"),
    FV_OPTION(view_options, listen, .argument = "ADDRESS",
              .doc = "address to listen on, in digits; 127.0.0.1 if left out, which only this machine can reach"),
    FV_OPTION(view_options, allow_origin, .argument = "ORIGIN",
              .doc = "let pages of this origin, such as https://neuroglancer-demo.appspot.com, read the images as OME-Zarr"),
    FV_OPTION(view_options, paraview, .doc = "open the file in ParaView instead of the browser"),
    FV_OPTION(view_options, paraview_script, .argument = "FILE",
              .doc = "write a script for pvbatch or paraview --script that shows the file, and do nothing else"),
    FV_OPTION_END,
};

static void open_browser(const char *link) {
    char *const words[] = { "xdg-open", (char *)link, NULL };
    pid_t       child;
    int         failed = posix_spawnp(&child, words[0], NULL, NULL, words, environ);
    if (failed) fv_complain("view", "no browser was opened (xdg-open: %s); open the link yourself", strerror(failed));
}

/* A run by the beginning of its name, where no file has this name; NULL: it is no such name. The caller frees. */
static fv_status find_run(const char *name, char **folder, fv_error *error) {
    fv_error unknown = { 0 };
    *folder = NULL;
    if (!*name || !access(name, F_OK) || strspn(name, "0123456789abcdef") != strlen(name)) return FV_OK;
    if (fv_run_find(NULL, name, folder, &unknown) == FV_OK) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "there is no file %s; as the name of a run: %s", name, unknown.message);
}

static fv_status add_files(const view_options *o, int nargs, char **args, fv_view_files *files, fv_error *error) {
    for (int i = 0; i < nargs; i++) {
        char *run;
        FV_TRY(find_run(args[i], &run, error));
        fv_status status = fv_view_files_add(files, run ? run : args[i], o->path, o->value, error);
        free(run);
        FV_TRY(status);
    }
    for (int i = 0; i < o->labels.count; i++) FV_TRY(fv_view_files_image(files, o->labels.items[i], NULL, true, error));
    for (int i = 0; i < o->table.count; i++) FV_TRY(fv_view_files_table(files, o->table.items[i], error));
    return FV_OK;
}

static int serve(const view_options *o, fv_view_files *files) {
    fv_view_server_options options_ = { .listen = o->listen, .port = (int)o->port, .origin = o->allow_origin };
    fv_view_server        *server;
    fv_error               error = { 0 };
    volatile int          *stop = fv_stopping(true);
    if (fv_view_files_serve(files, &options_, &server, &error) != FV_OK) {
        fv_complain("view", "%s", error.message);
        return FV_EXIT_REFUSED;
    }
    if (o->listen && strncmp(o->listen, "127.", 4) && strcmp(o->listen, "::1"))
        fv_complain("view",
                    "warning: whoever can reach %s and has the link can see these files, and the link is sent without "
                    "encryption; a tunnel by ssh is safer",
                    o->listen);
    printf("%s\n", fv_view_server_link(server));
    fflush(stdout);
    fprintf(stderr, "Open this link in a browser. Ctrl-C ends it.\n");
    if (fv_view_server_zarr(server))
        fprintf(stderr, "Other programs read the images as OME-Zarr at http://%s:%d%s0, %s1, ...\n",
                o->listen ? o->listen : "127.0.0.1", fv_view_server_port(server), fv_view_server_zarr(server),
                fv_view_server_zarr(server));
    if (o->open) open_browser(fv_view_server_link(server));
    fv_view_server_wait(server, stop);
    fv_view_server_stop(server);
    return FV_EXIT_WELL;
}

static int run(const void *options_, int nargs, char **args) {
    const view_options *o = options_;
    fv_view_files      *files = fv_view_files_new();
    fv_error            error = { 0 };
    int                 status = FV_EXIT_REFUSED;
    if (o->paraview || o->paraview_script) {
        fv_view_files_free(files);
        return fv_show_in_paraview("view", nargs, args, o->paraview ? NULL : o->paraview_script);
    }
    mallopt(M_MMAP_THRESHOLD, 1 << 17); /* kept pieces that are freed are gone, whatever lies around them */
    if (add_files(o, nargs, args, files, &error) != FV_OK)
        fv_complain("view", "%s", error.message);
    else
        status = serve(o, files);
    fv_view_files_free(files);
    return status;
}

const fv_command fv_cmd_view = {
    .name = "view",
    .brief = "look at images, labels and tables in a browser",
    .usage = "FILE...",
    .least = 1,
    .most = -1,
    .doc =
        "Shows every format that Fovea reads, of any size: only what is seen is read. Prints a link, which works on this machine "
        "until Ctrl-C. A pattern in quotes is a collection. Of a pipeline (.fov) the values are shown: only the region that is "
        "seen is computed, nothing is written, and its parameters can be changed in the page. Of a run (its folder, or the "
        "beginning of its name) the results are shown, and while it goes on, the last step of a solver.",
    .examples = "fovea view scan.nii.gz\nfovea view cells.zarr --labels cells_labels.tif --table cells.csv --open\nfovea view "
                "segment.fov --value mask\nfovea view live.pvd --paraview-script show.py",
    .options = options,
    .options_size = sizeof(view_options),
    .run = run,
};
