/* Links the objects of a movie into tracks, time after time: it holds the objects of as many times as a link may reach over.
 *
 * Links into a time are settled as soon as its objects are known: from the time before first, then across gaps, between what is
 * still loose. That gives the same as settling all neighbouring times of the movie first, because a link takes something from its
 * two times only, and those across a gap come behind the links of both that are shorter.
 */
#ifndef FV_LINKING_H
#define FV_LINKING_H

#include "base/base.h"
#include "base/isa.h"

typedef struct fv__tracked { /* an object, and the track up to it */
    int64_t time, label, voxels;
    double  middle[3];
    int64_t from_time, from; /* the object that it follows, by its place in its time; from -1: none */
    int64_t children;        /* how many follow it */
    int64_t track, parent;   /* numbers from 1 on; parent 0: none */
    int64_t start, objects;
    double  first[3], path;
} fv__tracked;

typedef struct fv__linking {
    bool    by_overlap, divide;
    int64_t gap;
    double  max_distance;
    int     n; /* coordinates of a middle */
    double  spacing[3];
    /* An object has its track; a track ends with an object. Either may be NULL. */
    fv_status (*numbered)(void *context, const fv__tracked *object, fv_error *error);
    fv_status (*ended)(void *context, const fv__tracked *object, fv_error *error);
    void              *context;
    struct fv__moment *moments; /* the rest is its own */
    fv_bytes           bonds;
    int64_t            time, tracks;
    bool               any;
} fv__linking;

#define fv__linking_begin FV_ISA_NAME(fv__linking_begin)
#define fv__linking_object FV_ISA_NAME(fv__linking_object)
#define fv__linking_shared FV_ISA_NAME(fv__linking_shared)
#define fv__linking_end FV_ISA_NAME(fv__linking_end)
#define fv__linking_release FV_ISA_NAME(fv__linking_release)
#define fv__linking_distance FV_ISA_NAME(fv__linking_distance)

/* All above is set. To be released, whatever happens. */
fv_status fv__linking_begin(fv__linking *linking, fv_error *error);
/* Objects come in order of time and label, each with what it shares with objects of later times behind it. */
fv_status fv__linking_object(fv__linking *linking, int64_t time, int64_t label, int64_t voxels, const double middle[3],
                             fv_error *error);
fv_status fv__linking_shared(fv__linking *linking, int64_t ahead, int64_t label, int64_t voxels, fv_error *error);
fv_status fv__linking_end(fv__linking *linking, fv_error *error); /* after the last object */
void      fv__linking_release(fv__linking *linking);
double    fv__linking_distance(const fv__linking *linking, const double a[3], const double b[3]);

#endif
