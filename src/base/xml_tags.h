/* The tags of an XML text, one after another, with their attributes. No tree is built, so depth costs nothing and entities are
 * never expanded. Written out here, because a parser would want the whole text well-formed, and the image behind it is not XML.
 */
#ifndef FV_XML_TAGS_H
#define FV_XML_TAGS_H

#include "base/base.h"

typedef struct fv_xml_tag { /* all point into the text */
    const char *name, *name_end;
    const char *end; /* behind the closing bracket; before the first call: where to begin */
} fv_xml_tag;

/* The next tag before `limit`; comments and declarations are passed over. False at the end or in a tag that never ends. */
bool fv__xml_next(fv_xml_tag *tag, const char *limit);
bool fv__xml_is(const fv_xml_tag *tag, const char *name); /* "/name" is a closing tag */
/* The value of an attribute; false, and value untouched, if there is none or it does not fit. */
bool fv__xml_attribute(const fv_xml_tag *tag, const char *name, char *value, size_t size);

/* The same for a file that may hold much between its tags: one window of it is in memory at a time. */
typedef struct fv_xml_file {
    int         fd;
    const char *path; /* for messages */
    int64_t     size; /* of the file */
    fv_xml_tag  tag;  /* the current one */
    char       *text; /* the window */
    size_t      held;
    int64_t     start; /* of the window in the file */
} fv_xml_file;

void      fv__xml_file_init(fv_xml_file *file, int fd, const char *path, int64_t size);
void      fv__xml_file_release(fv_xml_file *file);
fv_status fv__xml_file_next(fv_xml_file *file, bool *found, fv_error *error);
int64_t   fv__xml_file_offset(const fv_xml_file *file); /* behind the current tag */

/* The five characters that XML has names for, as these names (the caller frees), and the other way in place. */
char *fv__xml_escaped(const char *text);
void  fv__xml_unescape(char *text);

#endif
