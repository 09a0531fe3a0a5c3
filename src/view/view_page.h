/* The files of the page, inside of the program. They are made from web/ and lie in web/dist. */
#ifndef FV_VIEW_PAGE_H
#define FV_VIEW_PAGE_H

#include <stddef.h>

typedef struct fv_view_file {
    const char          *path, *type;
    const unsigned char *data;
    size_t               size;
} fv_view_file;

const fv_view_file *fv_view_page_find(const char *path); /* NULL: there is none */
/* The same compressed by gzip, for who is far away. The caller frees *data; NULL: it could not be made. */
void *fv_view_page_pack(const fv_view_file *file, size_t *size);

#endif
