/* The XML files inside a workbook, tag by tag: one window of a file is in memory at a time. */
#ifndef FV_XLSX_XML_H
#define FV_XLSX_XML_H

#include "base/xml_tags.h"
#include "base/zip.h"

typedef struct fv_xlsx_xml {
    const char    *path; /* of the workbook, for messages */
    fv_zip_stream *stream;
    fv_xml_tag     tag; /* the current one */
    fv_bytes       window;
    bool           ended;           /* all of the stream is in the window */
    const char    *text, *text_end; /* between the tag before and this one */
} fv_xlsx_xml;

fv_status fv__xlsx_xml_open(fv_xlsx_xml *xml, const fv_zip *zip, const fv_zip_member *member, fv_error *error);
void      fv__xlsx_xml_close(fv_xlsx_xml *xml);
fv_status fv__xlsx_xml_next(fv_xlsx_xml *xml, bool *found, fv_error *error);
/* Whether the tag has this name, whatever its prefix ("x:row"); closing tags as "/row". */
bool fv__xlsx_xml_is(const fv_xlsx_xml *xml, const char *name);
bool fv__xlsx_xml_closed(const fv_xlsx_xml *xml); /* <row/>: nothing is inside */
bool fv__xlsx_xml_attribute(const fv_xlsx_xml *xml, const char *name, char *value, size_t size);
/* Appends the text before the tag, with the characters that &amp; and &#233; stand for. */
void fv__xlsx_xml_text(const fv_xlsx_xml *xml, fv_bytes *out);

#endif
