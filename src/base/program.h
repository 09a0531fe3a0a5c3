/* Programs of the machine that a pipeline runs: whether it may, what they are, and a folder for the files of one run of one.
 *
 * Consent and what was found out about programs belong to a session (base/session.h).
 */
#ifndef FV_PROGRAM_H
#define FV_PROGRAM_H

#include "base/base.h"

/* The user of this thread's session lets it run programs. Only then a program is asked for its version. */
void fv__programs_allow(bool allowed);

/* Adds what a program is: its path, its bytes, and (version not empty) the first line that it prints for this option. word: as a
 * shell would find it; no program of that name is an error. */
fv_status fv__program_identify(const char *word, const char *version, fv_hasher *hasher, fv_error *error);
/* Adds the bytes of a file that belongs to a program, such as a script that an interpreter runs. A missing one adds nothing. */
void fv__script_identify(const char *path, fv_hasher *hasher);

/* A new folder for the files of one program, below fv__file_scratch(). What processes that were killed have left there goes. */
typedef struct fv_program_folder {
    char *path;
    int   lock; /* held as long as we live */
} fv_program_folder;
fv_status fv__program_folder_make(fv_program_folder *folder, fv_error *error);
void      fv__program_folder_remove(fv_program_folder *folder);

/* Writes the environment that programs get to FOLDER/environment-HASH.txt, if it is not there; values of variables whose names
 * look secret are left out. The name of that file, which the caller frees; NULL: it could not be written. */
char *fv__environment_keep(const char *folder);

#endif
