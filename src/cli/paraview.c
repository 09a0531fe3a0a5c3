/* Files in ParaView: starts it, or writes a script for it. */
#include "paraview.h"
#include "cli.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *const known[] = {
    "pvd", "pvti", "vti", "vtp", "stl", "ply", "tif", "tiff", "mha", "mhd", "nrrd", "nhdr", "mrc"
};

static bool is_known(const char *path) {
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof known / sizeof *known; i++)
        if (!strcasecmp(dot + 1, known[i])) return true;
    return false;
}

/* A text as Python writes it. */
static void put_text(FILE *to, const char *text) {
    fputc('"', to);
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
            fprintf(to, "\\x%02x", (unsigned char)*text);
        else
            fputc(*text, to);
    fputs("\"\n", to);
}

static const char script_before[] = "# Shows a file in ParaView, and saves a picture of each of its steps beside it:\n"
                                    "#     pvbatch THIS              where there is no screen: xvfb-run -a pvbatch THIS\n"
                                    "#     mpiexec -n 2 pvbatch THIS on two ranks, each of which reads its own pieces\n"
                                    "#     paraview --script=THIS    in its window\n"
                                    "import os\n"
                                    "\n"
                                    "from paraview.simple import *\n"
                                    "\n"
                                    "FILE = ";
static const char script_after[] =
    "source = OpenDataFile(FILE)\n"
    "source.UpdatePipeline()\n"
    "times = list(getattr(source, \"TimestepValues\", None) or [])\n"
    "view = GetActiveViewOrCreate(\"RenderView\")\n"
    "view.ViewSize = [900, 700]\n"
    "shown = Show(source, view)\n"
    "extent = source.GetDataInformation().GetExtent()\n"
    "volume = all(extent[2 * k + 1] > extent[2 * k] for k in range(3))\n"
    "image = extent[1] > extent[0] and source.PointData.GetNumberOfArrays() > 0\n"
    "if image:\n"
    "    shown.SetRepresentationType(\"Volume\" if volume else \"Slice\")\n"
    "    ColorBy(shown, (\"POINTS\", source.PointData.GetArray(0).Name))\n"
    "view.ResetCamera()\n"
    "if volume or not image:\n"
    "    GetActiveCamera().Azimuth(30)\n"
    "    GetActiveCamera().Elevation(25)\n"
    "    view.ResetCamera()\n"
    "for time in times or [None]:\n"
    "    if time is not None:\n"
    "        view.ViewTime = time\n"
    "        source.UpdatePipeline(time)\n"
    "    if image:\n"
    "        shown.RescaleTransferFunctionToDataRange()\n"
    "    Render(view)\n"
    "    SaveScreenshot(os.path.splitext(FILE)[0] + (\"\" if time is None else \"-%04d\" % int(time)) + \".png\", view)\n";

static int write_script(const char *command, const char *file, const char *script) {
    FILE *to = fopen(script, "wx");
    if (!to) {
        fv_complain(command, "cannot write %s: %s", script, strerror(errno));
        return FV_EXIT_REFUSED;
    }
    fputs(script_before, to);
    put_text(to, file);
    fputs(script_after, to);
    if (ferror(to) | fclose(to)) {
        fv_complain(command, "cannot write %s: %s", script, strerror(errno));
        return FV_EXIT_FAILED;
    }
    return FV_EXIT_WELL;
}

int fv_show_in_paraview(const char *command, int nfiles, char **files, const char *script) {
    char *path = nfiles == 1 ? realpath(files[0], NULL) : NULL;
    int   status = FV_EXIT_REFUSED;
    if (nfiles != 1)
        fv_complain(command, "ParaView is given one file; a list of steps (.pvd) names several");
    else if (!path)
        fv_complain(command, "cannot find %s: %s", files[0], strerror(errno));
    else if (!is_known(path))
        fv_complain(command, "ParaView does not read %s; `fovea convert %s NAME.pvti` makes a file for it", files[0], files[0]);
    else if (script)
        status = write_script(command, path, script);
    else {
        execlp("paraview", "paraview", path, (char *)NULL);
        fv_complain(command, "paraview cannot be started (%s); install it, or write a script with --paraview-script",
                    strerror(errno));
    }
    free(path);
    return status;
}
