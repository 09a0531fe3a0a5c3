/* XML inside a workbook; see xlsx_xml.h. */
#include "tables/xlsx_xml.h"
#include "tables/typed_rows.h"
#include <stdlib.h>

enum { STEP = 1 << 16, MOST_WINDOW = 4 << 20 };

fv_status fv__xlsx_xml_open(fv_xlsx_xml *xml, const fv_zip *zip, const fv_zip_member *member, fv_error *error) {
    *xml = (fv_xlsx_xml){ .path = zip->path };
    return fv__zip_stream_new(zip, member, &xml->stream, error);
}

void fv__xlsx_xml_close(fv_xlsx_xml *xml) {
    fv__zip_stream_free(xml->stream);
    fv__bytes_release(&xml->window);
    *xml = (fv_xlsx_xml){ 0 };
}

/* What lies before the end of the current tag goes, and more comes behind the rest. */
static fv_status move_on(fv_xlsx_xml *xml, fv_error *error) {
    size_t used = xml->tag.end ? (size_t)(xml->tag.end - (char *)xml->window.data) : 0, got = 0;
    if (used) memmove(xml->window.data, xml->window.data + used, xml->window.size - used);
    xml->window.size -= used;
    if (xml->window.size > MOST_WINDOW)
        return fv_fail(error, FV_ERROR_INPUT, "%s: a text of more than %d MB, or a tag that never ends", xml->path,
                       MOST_WINDOW >> 20);
    size_t kept = xml->window.size;
    FV_TRY(fv__zip_stream_read(xml->stream, fv__bytes_append(&xml->window, NULL, STEP), STEP, &got, error));
    xml->window.size = kept + got;
    xml->tag.end = (const char *)xml->window.data;
    xml->ended = !got;
    return FV_OK;
}

fv_status fv__xlsx_xml_next(fv_xlsx_xml *xml, bool *found, fv_error *error) {
    for (;;) {
        const char *start = xml->tag.end, *limit = start ? (const char *)xml->window.data + xml->window.size : NULL;
        *found = start && fv__xml_next(&xml->tag, limit);
        if (*found) {
            xml->text = start;
            xml->text_end = xml->tag.name - 1;
            return FV_OK;
        }
        if (xml->ended) return FV_OK;
        FV_TRY(move_on(xml, error));
    }
}

bool fv__xlsx_xml_is(const fv_xlsx_xml *xml, const char *name) {
    const char *start = xml->tag.name, *end = xml->tag.name_end;
    bool        closing = *name == '/';
    if (closing != (start < end && *start == '/')) return false;
    start += closing;
    const char *prefix = memchr(start, ':', (size_t)(end - start));
    if (prefix) start = prefix + 1;
    size_t n = strlen(name + closing);
    return (size_t)(end - start) == n && !memcmp(start, name + closing, n);
}

bool fv__xlsx_xml_closed(const fv_xlsx_xml *xml) { return xml->tag.end[-2] == '/'; }

bool fv__xlsx_xml_attribute(const fv_xlsx_xml *xml, const char *name, char *value, size_t size) {
    bool there = fv__xml_attribute(&xml->tag, name, value, size);
    if (there) fv__xml_unescape(value);
    return there;
}

/* The character that a name between & and ; stands for; 0: none, and the text stays as it is. Others are never looked up. */
static uint32_t named_character(const char *name, size_t length) {
    static const struct {
        const char *name;
        char        character;
    } known[] = { { "amp", '&' }, { "lt", '<' }, { "gt", '>' }, { "quot", '"' }, { "apos", '\'' } };
    char copy[12], *end;
    if (!length || length >= sizeof copy) return 0;
    memcpy(copy, name, length);
    copy[length] = 0;
    for (int i = 0; i < FV_COUNT(known); i++)
        if (!strcmp(copy, known[i].name)) return (uint32_t)known[i].character;
    if (*copy != '#') return 0;
    bool          hexadecimal = copy[1] == 'x';
    unsigned long code = strtoul(copy + 1 + hexadecimal, &end, hexadecimal ? 16 : 10);
    return !*end && code < 0x110000 && (code < 0xd800 || code > 0xdfff) ? (uint32_t)code : 0;
}

void fv__xlsx_xml_text(const fv_xlsx_xml *xml, fv_bytes *out) {
    for (const char *p = xml->text; p < xml->text_end; p++) {
        const char *end = *p == '&' ? memchr(p, ';', (size_t)(xml->text_end - p)) : NULL;
        uint32_t    c = end ? named_character(p + 1, (size_t)(end - p - 1)) : 0;
        if (c)
            fv__put_utf8(out, c);
        else if (*p)
            fv__bytes_append(out, p, 1);
        if (c) p = end;
    }
}
