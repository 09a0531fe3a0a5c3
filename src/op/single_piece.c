/* Files that are one piece. */
#include "op/single_piece.h"
#include "base/file.h"

fv_status fv__assemble_single(fv_writer *writer, fv_pieces *pieces, fv_error *error) {
    const void *data;
    size_t      size;
    int         fd;
    FV_TRY(fv__file_open_write(writer->path, &fd, error));
    fv_status status = pieces->get(pieces, 0, &data, &size, error);
    if (status == FV_OK) status = fv__file_write_at(fd, data, size, 0, writer->path, error);
    if (status == FV_OK) fv__file_start_sync(fd);
    fv_status closed = fv__file_close(fd, writer->path, status == FV_OK ? error : NULL);
    return status == FV_OK ? closed : status;
}
