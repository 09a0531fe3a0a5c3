/* The files that studies leave: tables as text, and drawings as pictures. */
#ifndef FV_SHEET_FILES_H
#define FV_SHEET_FILES_H

#include "draw/drawing.h"
#include <stdio.h>

fv_status fv__sheet_open(const char *path, FILE **file, fv_error *error);
fv_status fv__sheet_close(const char *path, FILE *file, fv_error *error);
/* Writes FOLDER/NAME.svg and, where the plug-in for it is there, FOLDER/NAME.png; the drawing is freed. */
fv_status fv__sheet_pictures(fv_drawing *drawing_take, const char *folder, const char *name, fv_error *error);

/* Writes FOLDER/NAME.html, one file that needs nothing else: the pictures of these names (SVG) and the tables (CSV, of which long
 * ones are cut) that lie in the folder. Both lists end with NULL. */
fv_status fv__sheet_page(const char *folder, const char *name, const char *title, const char *const *pictures,
                         const char *const *tables, fv_error *error);

#endif
