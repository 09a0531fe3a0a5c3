/* The little that Fovea asks of the HDF5 library. src/plugins/hdf5_plugin.c is compiled against it into a plug-in that is loaded
 * when such a file is met; nothing else knows HDF5.
 *
 * The library is asked where things are and for raw chunks; they are unpacked on this side, by as many threads as want to. Any
 * thread may call any function; they take turns. Functions that can fail return false or NULL and put a sentence without the
 * file's name into message.
 */
#ifndef FV_HDF5_PLUGIN_H
#define FV_HDF5_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { FV_HDF5_VERSION = 5, FV_HDF5_MOST_DIMS = 32, FV_HDF5_MOST_FILTERS = 8, FV_HDF5_MOST_VALUES = 8, FV_HDF5_MESSAGE = 256 };
#define FV_HDF5_SYMBOL "fv_hdf5_plugin_get"

/* Numbers that filters have in the files. */
enum {
    FV_HDF5_DEFLATE = 1,
    FV_HDF5_SHUFFLE = 2,
    FV_HDF5_FLETCHER32 = 3,
    FV_HDF5_SZIP = 4,
    FV_HDF5_NBIT = 5,
    FV_HDF5_SCALEOFFSET = 6,
    FV_HDF5_LZF = 32000,
    FV_HDF5_BLOSC = 32001,
    FV_HDF5_ZSTD = 32015,
};

typedef struct fv_hdf5_filter {
    int      id;
    unsigned values[FV_HDF5_MOST_VALUES];
    int      nvalues;
} fv_hdf5_filter;

typedef struct fv_hdf5_about { /* what a dataset is */
    char           kind;       /* of its elements: 'b' bool, 'i', 'u', 'f', 'c' complex; 0: nothing that an image can hold */
    int            size;       /* bytes of an element */
    bool           big_endian;
    bool           exact; /* elements lie in the file as in memory, but for byte order */
    int            ndim;
    int64_t        shape[FV_HDF5_MOST_DIMS], chunk[FV_HDF5_MOST_DIMS];
    bool           chunked;
    int64_t        offset;    /* in the file, of a dataset that lies there in one run; -1: it does not */
    bool           elsewhere; /* a link led to another file */
    int            nfilters;  /* in the order of writing; more than there is room for: -1 */
    fv_hdf5_filter filters[FV_HDF5_MOST_FILTERS];
    uint8_t        fill[16]; /* one element as in memory */
} fv_hdf5_about;

typedef struct fv_hdf5_source { /* bytes that are no local file */
    void       *context;
    const char *name; /* stays while the file is open */
    int64_t     size;
    bool (*read)(void *context, int64_t offset, void *to, size_t size);
} fv_hdf5_source;

typedef struct fv_hdf5_plugin {
    int version; /* FV_HDF5_VERSION */

    /* fork(2) while no thread is inside the library, so that the child may go on using it. */
    pid_t (*fork)(void);
    void *(*open)(const char *path, char *message);
    void *(*open_source)(const fv_hdf5_source *source, char *message);
    void (*close)(void *file);
    void *(*open_dataset)(void *file, const char *name, fv_hdf5_about *about, char *message);
    void (*close_dataset)(void *dataset);
    /* The chunk that begins at a voxel, as it is in the file, into room bytes. size 0: it was never written. mask: bit i says
     * that filter i was left out. */
    bool (*read_chunk)(void *dataset, const int64_t *start, void *to, size_t room, size_t *size, unsigned *mask, char *message);
    /* The same of a file that was opened as a source, without its bytes: where they are. */
    bool (*find_chunk)(void *dataset, const int64_t *start, int64_t *address, size_t *size, unsigned *mask, char *message);
    /* A box by the library itself, into dense memory as in memory. */
    bool (*read_box)(void *dataset, const int64_t *start, const int64_t *count, void *to, char *message);
    /* Calls each for every dataset, by its whole path, in order of names; false from it ends the walk. */
    void (*visit)(void *file, bool (*each)(void *context, const char *name, const fv_hdf5_about *about), void *context);
    /* The names of all links of a group, soft and external ones too, in order; false from each ends the walk. */
    void (*links)(void *file, const char *group, bool (*each)(void *context, const char *name), void *context);
    /* An attribute of an object as text, or as numbers; false: there is none such. */
    bool (*get_text)(void *file, const char *object, const char *attribute, int index, char *text, size_t room);
    int (*get_numbers)(void *file, const char *object, const char *attribute, double *values, int most);
    /* The first dataset that an attribute's list refers to for an axis (NetCDF's DIMENSION_LIST): its path. */
    bool (*get_scale)(void *file, const char *object, int axis, char *name, size_t room);

    /* A new file, which exists at once, and a chunked dataset in it. Chunks come packed. */
    void *(*create)(const char *path, char *message);
    void *(*create_dataset)(void *file, const char *name, const fv_hdf5_about *about, char *message);
    bool (*write_chunk)(void *dataset, const int64_t *start, const void *data, size_t size, char *message);
    bool (*set_texts)(void *dataset, const char *attribute, const char *const *texts, int count, char *message);
    bool (*set_numbers)(void *dataset, const char *attribute, const double *values, int count, char *message);
    bool (*flush)(void *file, char *message);
    /* A dataset that is one text, and a new one of a text or of numbers in one run, with the groups of its path. */
    bool (*read_text)(void *file, const char *name, char *text, size_t room);
    bool (*write_text)(void *file, const char *name, const char *text, char *message);
    bool (*write_numbers)(void *file, const char *name, const double *values, int64_t count, char *message);
    /* The same of one number without axes, whole or not; and a second name for a dataset. */
    bool (*write_number)(void *file, const char *name, double value, bool whole, char *message);
    bool (*link)(void *file, const char *target, const char *name, char *message);
} fv_hdf5_plugin;

#endif
