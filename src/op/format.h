/* What a file format is. One C file in src/formats/ defines one; nothing else is edited to add it.
 *
 * A file is written in pieces: boxes of a regular lattice fixed by format, type and options alone, so that its bytes never
 * depend on the plan. `parallel` formats (Zarr, NPY) put each piece in its place; the others (PNG, TIFF, gzip) encode
 * pieces anywhere and one task assembles them in order.
 */
#ifndef FV_FORMAT_H
#define FV_FORMAT_H

#include "base/base.h"
#include "base/file.h"
#include "image/region.h"
#include <fovea/table.h>

typedef struct fv_format fv_format;

typedef struct fv_read_options {
    const char *path_inside; /* dataset inside the file, or NULL */
    /* For files without a header: */
    int      ndim; /* 0: no shape given */
    int64_t  shape[FV_MAX_DIMS];
    bool     has_dtype;
    fv_dtype dtype;
    int64_t  offset; /* bytes before the first voxel */
} fv_read_options;

/* How the diffraction patterns of a scan were taken, in metres; 0: the file does not say. It lies in one run of memory. */
typedef struct fv_diffraction {
    double  wavelength, distance;
    double  detector[2]; /* height and width of its pixels */
    double  object[2];   /* those of the object, where the file says them, in the unit of the positions */
    int64_t frame[2];    /* rows and columns of a frame; 0: the file holds none */
    double  center[2];   /* row and column of the direct beam in it */
    int64_t frames;      /* how many */
    char    doubt[200];  /* what in the file cannot be as it says; "": nothing */
    int64_t npositions;  /* 0: the file holds none */
    double  positions[]; /* y and x of each frame */
} fv_diffraction;

/* Height and width of a pixel of the object for frames of that many rows and columns; false: the file does not tell. */
static inline bool fv__diffraction_pixel(const fv_diffraction *d, const int64_t frame[2], double pixel[2]) {
    for (int k = 0; k < 2; k++)
        pixel[k] = d->object[k] > 0                     ? d->object[k]
                   : frame[k] > 0 && d->detector[k] > 0 ? d->wavelength * d->distance / ((double)frame[k] * d->detector[k])
                                                        : 0;
    return pixel[0] > 0 && pixel[1] > 0;
}

/* Opened for reading: header only, no pixels. A format embeds this as its first member. */
typedef struct fv_reader {
    const fv_format *format;
    char            *path;
    fv_image_type    type;
    int64_t          chunk[FV_MAX_DIMS]; /* natural pieces of the file (tile, strip, chunk); the shape where there are none */
    bool             sequential;         /* cannot be read by region: slabs of the first axis in order, else it starts over */
    bool             whole_pieces;       /* a piece is decoded whole, however little of it is wanted */
    int64_t          read_memory;        /* bytes a read needs beyond the block, at most */
    fv_hash          header;             /* identity of the header */
    char            *voxels;             /* the file that holds the voxels where it is another one; NULL: it is not */
    fv_file_id       voxels_id;
    bool             has_stage; /* the file says where the stage was: */
    double           stage[3];  /* z, y and x of the first pixel, in pixels; z is 0 where only the others are known */
    double          *angles;    /* of a scan, in degrees, one per projection; NULL: the file says none */
    int64_t          nangles;
    fv_diffraction  *diffraction; /* of a scan of diffraction patterns; NULL: it is none, or not known as one */
    fv_bytes         facts;       /* "name: value\n" lines for `fovea info`: compression, layout, metadata */
} fv_reader;

typedef struct fv_write_options {
    const char   *compression;        /* NULL: the format's default */
    int64_t       level;              /* 0: the format's default */
    int64_t       chunk[FV_MAX_DIMS]; /* 0: the format's default */
    int           chunk_ndim;
    int64_t       shard[FV_MAX_DIMS]; /* files of several chunks; shard_ndim 0: the format's default */
    int           shard_ndim;
    int64_t       levels;     /* of a pyramid, the image itself counted; 0: the format's default */
    const char   *version;    /* of the format; NULL: its default */
    int64_t       quality;    /* of pictures that lose some, 1 to 100; 0: the format's default */
    bool          hyperstack; /* laid out as ImageJ does */
    const double *angles; /* of a scan, in degrees, one per plane of the first axis; NULL: unknown, or nothing to this format */
} fv_write_options;

/* An image that is to become a file. */
typedef struct fv_image_file {
    const char             *path; /* its own name, the end of which may say how it is laid out */
    const fv_image_type    *type;
    const fv_write_options *options;
} fv_image_file;

/* How it lies there: all that a plan has to know about a file that is written. */
typedef struct fv_file_layout {
    int64_t piece[FV_MAX_DIMS]; /* the lattice of pieces */
    bool    parallel;           /* put() in any order from any process; otherwise encode() + assemble() */
    bool    any_region;         /* put() takes any box, pieces need not be whole (NPY, raw) */
    int64_t piece_memory;       /* bytes encode() or put() of one piece needs beyond the block, output included, at most */
    int64_t spare_wanted;       /* bytes that put() would rather keep from call to call than on the disk, at most */
} fv_file_layout;

typedef struct fv_writer {
    const fv_format *format;
    char            *path; /* the temporary name to write under */
    fv_image_type    type;
    fv_write_options options;
    fv_file_layout   layout;
    int64_t          spare; /* bytes of spare_wanted that put() may keep; 0 where several processes put */
} fv_writer;

/* Gives encoded pieces in order of index; data is valid until the next call. */
typedef struct fv_pieces {
    fv_status (*get)(struct fv_pieces *pieces, int64_t index, const void **data, size_t *size, fv_error *error);
    int64_t count;
} fv_pieces;

struct fv_format {
    const char *name;       /* "tiff" */
    const char *extensions; /* "tif tiff"; the longest match wins ("nii.gz" before "gz") */
    const char *brief;
    const char *reads, *writes, *keeps; /* for people: how it is read and written, what it keeps beside voxels; may be NULL */
    const char *compressions;           /* "none|deflate|zstd", the default first; NULL: no choice */
    bool        series;                 /* a folder of such files, known by the magic of one of them, may be an image too */
    bool        folder; /* its files are folders, and a path inside one without an extension of its own is meant for it too */
    const char *marks;  /* names of files, one of which lies in every folder that is such a file, whatever that is called */
    const char *parts;  /* those of its extensions that are written as a header with a folder of parts: see op/output_parts.h */
    bool        per_slice; /* it writes names with an axis in braces: op/output_slices.h */
    const char *takes;     /* which of write's "shard levels version quality hyperstack angles" it follows, others are refused;
                              "every": .pvd */
    struct {
        int         offset, size;
        const char *bytes;
    } magic[4]; /* any of them: a file without a known extension is one of these */
    /* Reading. open reads the header only, checks every size in it, and fails with a sentence that names the file and the
     * field. It must not trust the file: no allocation beyond what the file can justify, no endless loop. */
    fv_status (*open)(const char *path, const fv_read_options *options, fv_reader **reader, fv_error *error);
    /* Fills block (its region lies inside the image, its dtype is the reader's). Safe from several threads unless the reader is
     * sequential. */
    fv_status (*read)(fv_reader *reader, const fv_block *block, fv_error *error);
    void (*close)(fv_reader *reader);
    /* What lies in a file that holds several things, for `fovea info`: "name: what it is\n" lines (datasets, pages, levels,
     * labels; the name is what read's `path` takes, where it takes one). Called also where open wants a path and none was given.
     * NULL: one image and nothing else. As careful as open. */
    fv_status (*contents)(const char *path, fv_bytes *lines, fv_error *error);
    /* The levels of the pyramid that the image is, the finest first: what path_inside names each, ended by NUL. Nothing is
     * appended where it has none. NULL: no file of this format has. */
    fv_status (*levels)(const char *path, const fv_read_options *options, fv_bytes *names, fv_error *error);
    /* Writing; NULL: read only. layout checks type and options and chooses pieces; it makes nothing, and gives the same in every
     * process: plans are made with it (the struct comes zeroed). create makes the writer of such a file under a temporary name;
     * it touches no file yet. */
    fv_status (*layout)(const fv_image_file *file, fv_file_layout *layout, fv_error *error);
    fv_status (*create)(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **writer,
                        fv_error *error);
    /* parallel formats: begin makes the temporary file or folder (once, before any put; repeated on resume, keeps what is
     * there); put stores a region made of whole pieces; finish writes what comes last. Durability: put may leave syncing to
     * sync, which makes every put of this process so far durable; finish does the same and for what it writes itself. */
    fv_status (*begin)(fv_writer *writer, fv_error *error);
    fv_status (*put)(fv_writer *writer, const fv_block *block, fv_error *error);
    fv_status (*sync)(fv_writer *writer, fv_error *error);
    fv_status (*finish)(fv_writer *writer, fv_error *error);
    /* assembled formats: encode one piece into bytes (thread-safe, pure); assemble writes the whole temporary file. Whoever gives
     * it its name makes it durable first, many files at a time. */
    fv_status (*encode)(fv_writer *writer, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error);
    fv_status (*assemble)(fv_writer *writer, fv_pieces *pieces, fv_error *error);
    void (*free_writer)(fv_writer *writer);
    /* Told right before finish or assemble where an image lies, which its type could not say (fv_op.place_later). NULL: it
     * cannot write that so late. */
    fv_status (*place)(fv_writer *writer, const double affine[12], fv_error *error);
    /* What a folder needs around its naming; both may be NULL. adopt: the finished temporary is about to take the place of what
     * lies under path, which may hold things that other writers have put inside; named: path has its name. Both may be repeated,
     * never at the same time for the same folder. */
    fv_status (*adopt)(const char *temporary, const char *path, fv_error *error);
    fv_status (*named)(const char *path, fv_error *error);
};

/* The folder of a format around a path that lies inside it, as the number of its characters; 0: there is none. */
size_t fv__format_around(const char *path);
/* Whether a folder of that name is one image. */
bool fv__format_is_folder(const char *path);

/* By extension; for reading, where that tells nothing, by the first bytes of the file. The error lists what is known. */
fv_status        fv__format_for_reading(const char *path, const fv_format **format, fv_error *error);
fv_status        fv__format_for_writing(const char *path, const fv_format **format, fv_error *error);
bool             fv__format_in_parts(const char *path); /* whether what is written under that name is a header with parts */
int              fv__format_count(void);
const fv_format *fv__format_at(int index);

/* Readers shared by all tasks of a process, opened once; a least recently used one is closed when there are too many. */
fv_status fv__reader_acquire(const char *path, const fv_read_options *options, fv_reader **reader, fv_error *error);
void      fv__reader_release(fv_reader *reader);

/* Reads a block. The one way into a format's read: a region that does not lie inside the image is our own mistake and an internal
 * error, whatever the format would have made of it. */
fv_status fv__reader_read(fv_reader *reader, const fv_block *block, fv_error *error);

/* Helpers for formats. */
void *fv__reader_new(size_t size, const fv_format *format, const char *path); /* zeroed, base filled */
void  fv__reader_free(fv_reader *reader);                                     /* base parts and the object */
/* Whether the type is one of an image that a file can hold. */
fv_status fv__writer_check(const char *path, const fv_image_type *type, fv_error *error);
/* Zeroed, base filled. */
void *fv__writer_new(size_t size, const fv_format *format, const fv_image_file *file, const fv_file_layout *layout,
                     const char *temporary);
void  fv__writer_free(fv_writer *writer);
/* Options that the format does not follow are refused. */
fv_status fv__write_options_check(const fv_format *format, const fv_write_options *options, fv_error *error);
fv_status fv__compression_choose(const fv_format *format, const fv_write_options *options, int *index, fv_error *error);

/* ---------------------------------------------------------------- tables: one C file in src/tables/ each */

/* Rows come in batches; text columns may be among them. */
typedef struct fv_table_source {
    /* Next batch; nrows 0: the end. Cells and texts stay valid until the next call. */
    fv_status (*next)(struct fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error);
} fv_table_source;

typedef struct fv_table_options {
    const char *table;  /* name of the table in the file; NULL: the file's stem */
    bool        append; /* keep what is there */
    fv_hash     key;    /* identity of this result: appending the same one again changes nothing */
} fv_table_options;

typedef struct fv_table_format fv_table_format;

/* Opened for reading: columns and their kinds are known, which for formats without types takes a look at all rows. A format
 * embeds this as its first member; rows come once, in order, through source.next. */
typedef struct fv_table_reader {
    fv_table_source        source;
    const fv_table_format *format;
    char                  *path;
    fv_table_type          type;
    int64_t                nrows;
    fv_bytes               facts; /* "name: value\n" lines for `fovea info` */
    /* Of one that was opened by open_blocks: by block, the number of the row behind its last one. */
    int64_t  nblocks;
    int64_t *block_end;
} fv_table_reader;

struct fv_table_format {
    const char *name, *extensions, *brief;
    struct {
        int         size;
        const char *bytes;
    } magic; /* first bytes of every such file, if it has any */
    /* True: it writes into the final path by itself in one transaction (SQLite). False: path is a temporary that the caller
     * syncs and renames to the final path (CSV); with append it first copies the table there. */
    bool in_place;
    const char
        *alone; /* a file holds one value, and of a sweep or a collection each has its own; says how to have one of all items */
    /* Whether a file can hold such a table; type NULL: a number. NULL: any. */
    fv_status (*check)(const char *path, const fv_table_type *type, fv_error *error);
    /* existing: the final path, whether or not a file is there yet. */
    fv_status (*write)(const char *path, const char *existing, const fv_table_type *type, const fv_table_options *options,
                       fv_table_source *source, fv_error *error);
    /* Reading; NULL: write only. table: which of several in the file; NULL: the one named as the file, or the only one. */
    fv_status (*open)(const char *path, const char *table, fv_table_reader **reader, fv_error *error);
    void (*close)(fv_table_reader *reader);
    /* Formats that lie in blocks of rows, any of which can be read alone: open_blocks looks at no row, and after seek the
     * rows of one block come through source.next. NULL: they have none. */
    fv_status (*open_blocks)(const char *path, fv_table_reader **reader, fv_error *error);
    fv_status (*seek)(fv_table_reader *reader, int64_t block, fv_error *error);
    /* Formats that hold several tables: appends their names, each ended by NUL. */
    fv_status (*tables)(const char *path, fv_bytes *names, fv_error *error);
    /* Formats whose files may hold an image, row by row, which an image format of the same extension reads: whether this one
     * does. From a look at its header; false too where it cannot be read. */
    bool (*holds_image)(const char *path);
};

const fv_table_format *fv__table_format_for(const char *path); /* by extension; NULL if none */
/* By extension, of a file that is read as a table, or of a folder of parts of one; NULL if there is none, or if the file holds an
 * image. */
const fv_table_format *fv__table_format_of_file(const char *path);
/* By extension, or by the first bytes of the file. The error lists what is known. */
fv_status              fv__table_format_for_reading(const char *path, const fv_table_format **format, fv_error *error);
int                    fv__table_format_count(void);
const fv_table_format *fv__table_format_at(int index);

#endif
