/* The files of the page. */
#include "view/view_page.h"
#include "base/base.h"
#include "page_files.h" /* made by scripts/embed_files.sh */
#include <stdlib.h>
#include <zlib.h>

const fv_view_file *fv_view_page_find(const char *path) {
    static const fv_view_file files[] = {
        { "/", "text/html; charset=utf-8", index_html, sizeof index_html },
        { "/app.js", "text/javascript; charset=utf-8", app_js, sizeof app_js },
        { "/app.css", "text/css; charset=utf-8", app_css, sizeof app_css },
    };
    for (int i = 0; i < FV_COUNT(files); i++)
        if (!strcmp(files[i].path, path)) return &files[i];
    return NULL;
}

void *fv_view_page_pack(const fv_view_file *file, size_t *size) {
    enum { GZIP = 16 + MAX_WBITS };
    z_stream z = { .next_in = (Bytef *)file->data, .avail_in = (uInt)file->size };
    if (deflateInit2(&z, 6, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK) return NULL;
    uLong room = deflateBound(&z, (uLong)file->size);
    void *data = fv__alloc(room);
    z.next_out = data;
    z.avail_out = (uInt)room;
    bool packed = deflate(&z, Z_FINISH) == Z_STREAM_END;
    *size = z.total_out;
    deflateEnd(&z);
    if (packed) return data;
    free(data);
    return NULL;
}
