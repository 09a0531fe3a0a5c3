/* What the files of the HDF5 format share: the plug-in, chunks as they are packed, and what a file is laid out for. */
#ifndef FV_HDF5_PARTS_H
#define FV_HDF5_PARTS_H

#include "formats/hdf5_plugin.h"
#include "op/format.h"

extern const fv_format fv_format_hdf5;

/* Loads the plug-in when it is first needed; the error says how to get it. */
fv_status fv__hdf5_load(const fv_hdf5_plugin **plugin, fv_error *error);

/* hdf5_chunk.c */
bool    fv__hdf5_unpacks(const fv_hdf5_about *about);      /* whether chunks with these filters can be unpacked here */
int64_t fv__hdf5_chunk_bytes(const fv_hdf5_about *about);  /* -1: too many */
int64_t fv__hdf5_chunk_memory(const fv_hdf5_about *about); /* for packed bytes, and as much again for scratch */
int64_t fv__hdf5_room(const fv_hdf5_about *about);         /* bytes that a packed chunk takes at most */
/* Unpacks a chunk of exactly that many bytes; scratch has fv__hdf5_room bytes. Gives NULL, or why it cannot. */
const char *fv__hdf5_unpack(const fv_hdf5_about *about, unsigned mask, void *packed, size_t size, void *scratch, void *to);
void        fv__hdf5_shuffle(const uint8_t *from, uint8_t *to, size_t size, size_t element);
void        fv__hdf5_filter_names(const fv_hdf5_about *about, fv_bytes *out); /* "deflate, shuffle" or "none" */

/* hdf5_rehearsal.c */
/* Has a child process do first what this one is about to do with a file: the library was not made for damaged files, and what
 * ends or occupies the child does no harm here. work allocates memory and calls the plug-in, and touches nothing else that other
 * threads may hold. */
fv_status fv__hdf5_rehearse(const fv_hdf5_plugin *h5, const char *path, void (*work)(void *context), void *context,
                            fv_error *error);

/* hdf5_remote.c */
typedef struct fv_hdf5_remote fv_hdf5_remote;
fv_status                     fv__hdf5_remote_open(const char *path, fv_hdf5_remote **remote, fv_error *error);
void                          fv__hdf5_remote_free(fv_hdf5_remote *remote); /* NULL is fine */
fv_hdf5_source                fv__hdf5_remote_source(fv_hdf5_remote *remote);
fv_status fv__hdf5_remote_read(fv_hdf5_remote *remote, int64_t offset, void *to, size_t size, fv_error *error);
int       fv__hdf5_remote_descriptor(const fv_hdf5_remote *remote); /* which fv__file_read_at reads from */
int64_t   fv__hdf5_remote_size(const fv_hdf5_remote *remote);
/* A failure of the library whose cause is the network becomes that of the network. */
fv_status fv__hdf5_remote_blame(fv_hdf5_remote *remote, fv_status status, fv_error *error);

/* hdf5_scan.c */
/* Scans, whose projections, flat and dark fields are datasets of their own (DataExchange) or frames of one (NXtomo). */
enum { FV_HDF5_PROJECTIONS, FV_HDF5_FLATS, FV_HDF5_DARKS, FV_HDF5_OTHERS, FV_HDF5_KINDS };
typedef struct fv_hdf5_part {
    char *name; /* of the dataset; the caller frees both texts */
    char *key;  /* numbers that say of every frame what it is; NULL: all of the dataset is meant */
    int   kind; /* of those that are meant, with a key */
} fv_hdf5_part;
/* What read's path "projections", "flats" or "darks" means in a scan, and no path in an NXtomo; part stays empty elsewhere. A
 * dataset that is called so itself goes first. */
fv_status fv__hdf5_find_part(const fv_hdf5_plugin *h5, void *file, const char *path, const char *inside, fv_hdf5_part *part,
                             fv_error *error);
/* The frames out of n that are meant, and how many there are of each kind. The caller frees them. */
fv_status fv__hdf5_frames(const fv_hdf5_plugin *h5, void *file, const char *path, const fv_hdf5_part *part, int64_t n,
                          int64_t **frames, int64_t count[FV_HDF5_KINDS], fv_error *error);
/* Angles of projections, in degrees: theta (DataExchange) or rotation_angle (NeXus) beside a dataset of n of them, or where
 * NXtomo has them. The caller frees; NULL: there are none. */
double *fv__hdf5_angles(const fv_hdf5_plugin *h5, void *file, const char *name, int64_t n);

/* The numbers of a dataset with any axes and at most that many of them, or NULL; the caller frees. */
double *fv__hdf5_numbers(const fv_hdf5_plugin *h5, void *file, const char *name, int64_t most, fv_hdf5_about *about);

/* hdf5_ptycho.c */
/* Scans of diffraction patterns: CXI, NXcxi_ptycho, ptypy's .ptyd, fold_slice, PtyLab, pty-chi. The dataset that read's path
 * "frames", "mask", "dark", "probe" or "positions" means there; without a path, the frames. The caller frees; NULL: none. */
char *fv__hdf5_find_ptycho(const fv_hdf5_plugin *h5, void *file, const char *word);
/* What such a file says about its scan; the caller frees. NULL: it is none. */
fv_diffraction *fv__hdf5_diffraction(const fv_hdf5_plugin *h5, void *file);
/* The same for `fovea info`: "name: value\n" lines. */
void fv__hdf5_describe_diffraction(const fv_diffraction *d, fv_bytes *facts);

/* hdf5_cxi.c */
/* Where an image lies in a file of that name: in CXI where its readers look, elsewhere in "/data". */
const char *fv__hdf5_dataset(const char *path, const fv_image_type *type);
/* What a CXI file has beside that dataset. */
bool fv__hdf5_write_cxi(const fv_hdf5_plugin *h5, void *file, const char *dataset, const fv_image_type *type, char *message);

/* hdf5_layout.c */
/* The dataset that a path, or the layout of the file if there is none, means. */
fv_status   fv__hdf5_choose(const fv_hdf5_plugin *h5, void *file, const char *path, const char *inside, fv_hdf5_part *part,
                            fv_error *error);
const char *fv__hdf5_layout(const fv_hdf5_plugin *h5, void *file); /* "DataExchange", "NeXus", ... or NULL */
/* Names of axes, spacing, origin, units. projections: there is an angle for each plane. */
void fv__hdf5_axes(const fv_hdf5_plugin *h5, void *file, const char *name, bool projections, fv_image_type *type);
/* "scan.h5: what it holds" for fovea info. */
void fv__hdf5_list(const fv_hdf5_plugin *h5, void *file, fv_bytes *lines);
bool fv__hdf5_dtype(const fv_hdf5_about *about, fv_dtype *dtype);

/* hdf5_write.c */
fv_status fv__hdf5_layout_file(const fv_image_file *file, fv_file_layout *layout, fv_error *error);
fv_status fv__hdf5_create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **writer,
                          fv_error *error);
fv_status fv__hdf5_encode(fv_writer *writer, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error);
fv_status fv__hdf5_assemble(fv_writer *writer, fv_pieces *pieces, fv_error *error);
/* What the library said, as an error: it tells about a full disk in many words. */
fv_status fv__hdf5_not_written(const char *path, const char *message, fv_error *error);

/* hdf5_transform.c */
/* ITK's transforms, which have the group TransformGroup. A reader of one is of another format than HDF5's own. */
bool      fv__hdf5_has_transform(const fv_hdf5_plugin *h5, void *file);
fv_status fv__hdf5_open_transform(const fv_hdf5_plugin *h5, void *file, const char *path, fv_reader **reader, fv_error *error);
/* Whether an image is a transform, which is written so. */
bool      fv__hdf5_is_transform(const fv_image_type *type);
fv_status fv__hdf5_create_transform(const fv_image_file *file, const fv_file_layout *layout, const char *temporary,
                                    fv_writer **writer, fv_error *error);

#endif
