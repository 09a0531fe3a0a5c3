/* Messages of detectors in CBOR, as DECTRIS' detectors send them (stream version 2): a map with the number of the image, and
 * its pixels as a typed array of RFC 8746, as they are or packed.
 */
#ifndef FV_CBOR_FRAME_H
#define FV_CBOR_FRAME_H

#include "base/base.h"
#include <fovea/image.h>

typedef struct fv_cbor_frame {
    char          type[16];      /* "start", "image", "end" */
    int64_t       series, image; /* their numbers; -1: it does not say */
    int64_t       images;        /* of the series; 0: it does not say */
    fv_image_type pixels;        /* of an image */
    const void   *data;          /* of it, in the message */
    size_t        size;
    char          codec[16]; /* how it is packed: "" (it is not), "lz4", "bslz4" */
} fv_cbor_frame;

bool      fv__cbor_is(const void *data, size_t size); /* it begins as CBOR does that says so itself */
fv_status fv__cbor_frame_read(const void *data, size_t size, fv_cbor_frame *frame, fv_error *error);
/* Unpacks to `bytes` bytes of pixels. */
fv_status fv__cbor_frame_unpack(const fv_cbor_frame *frame, void *to, size_t bytes, fv_error *error);

#endif
