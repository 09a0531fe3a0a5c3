/* Processors that one process divides among others while they work. It lies in memory that all of them share. */
#ifndef FOVEA_ALLOWANCE_H
#define FOVEA_ALLOWANCE_H

typedef struct fv_allowance {
    _Atomic int allowed; /* who divides says: so many may be used from now on; what has begun goes on */
    _Atomic int used;    /* who works says: in use now */
    _Atomic int wanted;  /* the same: could be used */
    _Atomic int least;   /* the same: what its next piece of work needs at once; 0: it is content with 1 */
} fv_allowance;

#endif
