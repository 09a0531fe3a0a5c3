/* Scans that grow: frames of one key become slices of one image along a new axis, in a file of the stream's folder, until the
 * scan is complete. Used by the thread that takes frames, but for the images of scans that are run, which any thread may read.
 */
#ifndef FV_GROWING_H
#define FV_GROWING_H

#include "stream/stream_log.h"

typedef struct fv_growing_options {
    const char *folder;
    const char *axis;    /* of the slices */
    int64_t     count;   /* frames of a scan; 0: a frame says, or silence ends it */
    double      silence; /* seconds after which a scan without new frames is complete; 0: never */
    int64_t     every;   /* frames between previews; 0: none */
} fv_growing_options;

#define FV_MOST_ANGLES ((int64_t)1 << 22) /* of a scan */

typedef struct fv_scan_angle { /* of a frame, in degrees */
    double  degrees;
    int64_t told; /* 0: it told none */
} fv_scan_angle;

typedef struct fv_scan_file {
    char         *name;
    fv_image_type type; /* of a frame */
    int           fd;
    char         *path, *facts;
    fv_seen       have;             /* frames, under "" */
    int64_t       have_count, most; /* how many; the largest number + 1 */
    int64_t       length;           /* 0: unknown */
    int64_t       shown;            /* frames at the last preview */
    double        last;             /* when the last one came */
    bool          queued;           /* it is complete, and given to be run */
    _Atomic bool  previewing;       /* a preview is under way; cleared by whoever commits it */
    int           partition;        /* of the source, whose frames they are */
    int64_t       planes;           /* frames from the first on, without a gap */
    int64_t       summed;           /* those that were given to be summed up */
    _Atomic bool  summing;          /* this is under way; cleared by whoever does it */
    fv_sums      *sums;             /* theirs alone meanwhile; NULL: none yet */
    int64_t       sums_length;      /* of the scan, when they were begun */
    /* Of frames that told one; they are in a file, too, from the first one on. */
    fv_scan_angle *angles;
    int64_t        nangles;
    char          *angles_path;
    int            angles_fd; /* -1: none was told */
} fv_scan_file;

typedef struct fv_growing fv_growing;

fv_growing *fv__growing_new(const fv_growing_options *options);
/* Scans that other processes left unfinished, of this partition or (-1) of all: state tells what they had. */
fv_status fv__growing_restore(fv_growing *growing, const fv_stream_state *state, int partition, fv_error *error);
void      fv__growing_free(fv_growing *growing);
/* Puts a frame into its scan; *scan: which one, if it has to be synced. Says in *why what is wrong with a frame that does not
 * fit. */
fv_status fv__growing_add(fv_growing *growing, const fv_frame *frame, fv_scan_file **scan, char **why, fv_error *error);
/* A scan that is complete, or of which a preview is due; NULL: none. over: no frame will come any more. */
fv_scan_file *fv__growing_ready(fv_growing *growing, bool over, bool *preview);
/* A scan with frames that could be added to sums which are not complete before the scan is; NULL: none. */
fv_scan_file *fv__growing_summable(fv_growing *growing);
/* The number that a frame gets which is put behind all others of its scan. */
int64_t fv__growing_next(const fv_growing *growing, const char *scan);
/* No more frames come of scans of a partition whose names come before this one: they are complete. */
void fv__growing_end_before(fv_growing *growing, int partition, const char *scan);
/* The frames of a partition go to another process, and its scans with them. */
void fv__growing_leave(fv_growing *growing, int partition);
/* Says which scans wait for the rest of their frames. */
void    fv__growing_tell(const fv_growing *growing);
int64_t fv__growing_count(const fv_growing *growing); /* scans that grow */
/* Its results are durable: it goes. */
void fv__growing_done(fv_growing *growing, fv_scan_file *scan);

typedef struct fv_scan_part { /* what a run sees of a scan */
    const fv_scan_file *scan;
    const int64_t      *there;  /* numbers of the frames that are there, in order; NULL: all, with zeros for those that are not */
    int64_t             nthere; /* without such numbers: how many there will be */
} fv_scan_part;
/* As an image that is read slice by slice; part lives as long as it is used. */
void fv__scan_image(const fv_scan_part *part, const char *axis, fv_array *image);
/* An angle for each of the first n frames, for the caller to free: NaN of a frame that is there and tells none, and something
 * between those of its neighbours for one that has not come. NULL: no frame tells any. By the thread that takes frames. */
double *fv__scan_angles(const fv_scan_file *scan, int64_t n);
/* Numbers of the frames that are there; the caller frees. By the thread that takes frames. */
int64_t *fv__scan_there(const fv_scan_file *scan);

#endif
