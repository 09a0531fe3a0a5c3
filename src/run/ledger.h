/* The ledger of outputs: which files Fovea made here, and from what. One append-only file of short lines, shared by all runs
 * in a folder; a torn last line is ignored. */
#ifndef FV_LEDGER_H
#define FV_LEDGER_H

#include "base/base.h"

typedef struct fv_ledger fv_ledger;

fv_status fv__ledger_open(const char *path, fv_ledger **ledger, fv_error *error);
void      fv__ledger_close(fv_ledger *ledger);
/* Has a copy of the ledger in a folder behind an address, which other machines have too: takes up what is there, and what is
 * added from now on goes there too (an object without bytes for each line, which is its name). */
fv_status fv__ledger_mirror(fv_ledger *ledger, const char *address, fv_error *error);
/* Whether this file (name and identity hashed) is in the ledger, and the key of what made it last. */
bool fv__ledger_find(fv_ledger *ledger, fv_hash file, fv_hash *key);
/* Adds lines, which are durable when the file is synced; and its path. */
fv_status   fv__ledger_note(fv_ledger *ledger, const fv_hash *files, const fv_hash *keys, int count, fv_error *error);
const char *fv__ledger_path(const fv_ledger *ledger);
/* Adds lines; durable when it returns. */
fv_status fv__ledger_add(fv_ledger *ledger, const fv_hash *files, const fv_hash *keys, int count, fv_error *error);

#endif
