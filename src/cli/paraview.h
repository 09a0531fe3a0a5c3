/* A file in ParaView instead of the browser. */
#ifndef FV_PARAVIEW_H
#define FV_PARAVIEW_H

/* script NULL: starts ParaView in the place of this process; otherwise writes a script that shows the file. Gives the exit
 * status. */
int fv_show_in_paraview(const char *command, int nfiles, char **files, const char *script);

#endif
