/* What formats of planes say of images that are none. */
#ifndef FV_PLANES_H
#define FV_PLANES_H

/* What to do with an image of one axis. */
#define FV_LINE_ADVICE "image[5:6] keeps the axis that image[5] takes away, and NPY holds a line"

#endif
