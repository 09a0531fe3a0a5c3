/* The head of Shepp and Logan: ellipses, in a volume ellipsoids, of known density, with Toft's contrast. */
#ifndef FV_SHEPP_LOGAN_H
#define FV_SHEPP_LOGAN_H

typedef struct fv_ellipsoid {
    double density, x, y, z, at_x, at_y, at_z, cosine, sine;
} fv_ellipsoid;

#define FV_TILT_COSINE 0.9510565162951535 /* 18 degrees */
#define FV_TILT_SINE 0.3090169943749474

/* Half axes, middle and turn about z; the image spans -1 to 1 and y points up. */
static const fv_ellipsoid fv_shepp_logan[] = {
    { 1, 0.69, 0.92, 0.81, 0, 0, 0, 1, 0 },
    { -0.8, 0.6624, 0.874, 0.78, 0, -0.0184, 0, 1, 0 },
    { -0.2, 0.11, 0.31, 0.22, 0.22, 0, 0, FV_TILT_COSINE, -FV_TILT_SINE },
    { -0.2, 0.16, 0.41, 0.28, -0.22, 0, 0, FV_TILT_COSINE, FV_TILT_SINE },
    { 0.1, 0.21, 0.25, 0.41, 0, 0.35, -0.15, 1, 0 },
    { 0.1, 0.046, 0.046, 0.05, 0, 0.1, 0.25, 1, 0 },
    { 0.1, 0.046, 0.046, 0.05, 0, -0.1, 0.25, 1, 0 },
    { 0.1, 0.046, 0.023, 0.05, -0.08, -0.605, 0, 1, 0 },
    { 0.1, 0.023, 0.023, 0.02, 0, -0.606, 0, 1, 0 },
    { 0.1, 0.023, 0.046, 0.02, 0.06, -0.605, 0, 1, 0 },
};
enum { FV_SHEPP_LOGAN_PARTS = (int)(sizeof fv_shepp_logan / sizeof *fv_shepp_logan) };

#endif
