/* What the XML of VTI and PVTI files says about an image, and the XML that is written. */
#ifndef FV_VTI_XML_H
#define FV_VTI_XML_H

#include "base/xml_tags.h"
#include "formats/vti_blocks.h"

typedef enum fv_vti_coding { FV_VTI_RAW, FV_VTI_BASE64, FV_VTI_ASCII } fv_vti_coding;

typedef struct fv_vti_facts {
    int64_t        extent[6]; /* x y z from and to, in points */
    double         origin[3], spacing[3];
    bool           big, wide; /* byte order; header_type UInt64 */
    fv_vti_packing packing;
    int            pieces;
    bool           has_image, has_array;
    bool           cells; /* the array has a value for each cell and not for each point */
    fv_dtype       dtype;
    int64_t        components;
    fv_vti_coding  coding;
    bool           appended; /* behind the XML, `offset` behind the underscore there */
    int64_t        offset;
    int64_t        place; /* where its bytes or text begin in the file */
    char           name[128];
} fv_vti_facts;

/* One tag's attributes. kind: "ImageData" or "PImageData". */
fv_status fv__vti_take_file(fv_vti_facts *facts, const char *path, const fv_xml_tag *tag, const char *kind, fv_error *error);
fv_status fv__vti_take_image(fv_vti_facts *facts, const char *path, const fv_xml_tag *tag, fv_error *error);
/* wanted: name of an array, or NULL for the first. */
fv_status fv__vti_take_array(fv_vti_facts *facts, const char *path, const fv_xml_tag *tag, const char *wanted, bool cells,
                             fv_error *error);
bool      fv__vti_take_extent(const fv_xml_tag *tag, const char *attribute, int64_t extent[6], char value[256]);
fv_status fv__vti_wrong(const char *path, const char *what, const char *value, fv_error *error);

/* All of a VTI file; it ends as soon as the place of the array is known. */
fv_status fv__vti_scan(fv_vti_facts *facts, int fd, const char *path, int64_t size, const char *wanted, fv_error *error);
/* "name: type of points or cells" lines of all arrays. */
fv_status fv__vti_list(int fd, const char *path, int64_t size, fv_bytes *lines, fv_error *error);

/* z y x and components; a plane where z has one voxel. */
void fv__vti_type(const fv_vti_facts *facts, fv_image_type *type);

/* The other way: whether the format can hold the image, and what stands in the tags. */
typedef struct fv_vti_shape {
    const char *dtype; /* VTK's name */
    int         ndim;  /* without colours */
    int64_t     size[3], components;
    double      origin[3], spacing[3];
} fv_vti_shape;
fv_status fv__vti_describe(const char *path, const fv_image_type *type, fv_vti_shape *shape, fv_error *error);
/* Everything before the appended data, its underscore included, and everything behind it. extent: of the file, in points. */
void fv__vti_put_front(fv_bytes *out, const fv_vti_shape *shape, const int64_t extent[6], bool zlib);
void fv__vti_put_back(fv_bytes *out);
void fv__vti_put_opening(fv_bytes *out, const char *kind, bool zlib);
void fv__vti_put_image(fv_bytes *out, const char *tag, const fv_vti_shape *shape, const int64_t extent[6]);
void fv__vti_put_extent(fv_bytes *out, const int64_t extent[6]);

#endif
