/* Files of formats whose image is one small piece: a matrix, say. */
#ifndef FV_SINGLE_PIECE_H
#define FV_SINGLE_PIECE_H

#include "op/format.h"

/* For fv_format.assemble: the file is the only piece. */
fv_status fv__assemble_single(fv_writer *writer, fv_pieces *pieces, fv_error *error);

#endif
