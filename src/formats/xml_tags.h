/* The tags of an XML text, one after another, with their attributes. No tree is built, so depth costs nothing and entities are
 * never expanded. */
#ifndef FV_XML_TAGS_H
#define FV_XML_TAGS_H

#include "base/base.h"

typedef struct fv_xml_tag { /* all point into the text */
    const char *name, *name_end;
    const char *end; /* behind the closing bracket; before the first call: where to begin */
} fv_xml_tag;

/* The next tag before `limit`; comments and declarations are passed over. False at the end or in a tag that never ends. */
bool fv_xml_next(fv_xml_tag *tag, const char *limit);
bool fv_xml_is(const fv_xml_tag *tag, const char *name); /* "/name" is a closing tag */
/* The value of an attribute; false, and value untouched, if there is none or it does not fit. */
bool fv_xml_attribute(const fv_xml_tag *tag, const char *name, char *value, size_t size);

#endif
