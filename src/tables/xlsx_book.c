/* Sheets, shared texts and styles of a workbook; see xlsx_book.h. ECMA-376, Office Open XML. */
#include "tables/xlsx_book.h"
#include "base/take.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TEXTS = 512 << 20, MOST_RELATIONS = 1024, MOST_FORMATS = 4096 };

/* ---------------------------------------------------------------- parts */

static bool keep_member(void *context, const fv_zip_member *m) {
    fv__bytes_append(context, m, sizeof *m);
    return true;
}

static const fv_zip_member *find_member(const fv_xlsx_book *book, const char *name) {
    const fv_zip_member *members = (const void *)book->members.data;
    for (size_t i = 0; i < book->members.size / sizeof *members; i++)
        if (!strcasecmp(members[i].name, name)) return &members[i];
    return NULL;
}

typedef fv_status (*tag_visit)(fv_xlsx_book *book, fv_xlsx_xml *xml, void *context, fv_error *error);

/* Every tag of a part; one that is not there has none. */
static fv_status each_tag(fv_xlsx_book *book, const char *name, tag_visit visit, void *context, fv_error *error) {
    const fv_zip_member *member = find_member(book, name);
    fv_xlsx_xml          xml = { 0 };
    bool                 found = true;
    if (!member) return FV_OK;
    fv_status status = fv__xlsx_xml_open(&xml, &book->zip, member, error);
    while (status == FV_OK) {
        status = fv__xlsx_xml_next(&xml, &found, error);
        if (!found || status != FV_OK) break;
        status = visit(book, &xml, context, error);
    }
    fv__xlsx_xml_close(&xml);
    return status;
}

/* ---------------------------------------------------------------- sheets */

typedef struct {
    char id[64], target[200];
} relation;

static fv_status take_relation(fv_xlsx_book *book, fv_xlsx_xml *xml, void *context, fv_error *error) {
    fv_bytes *relations = context;
    relation  r = { 0 };
    (void)book;
    (void)error;
    if (fv__xlsx_xml_is(xml, "Relationship") && relations->size < MOST_RELATIONS * sizeof r &&
        fv__xlsx_xml_attribute(xml, "Id", r.id, sizeof r.id) &&
        fv__xlsx_xml_attribute(xml, "Target", r.target, sizeof r.target) && strstr(r.target, "worksheets/"))
        fv__bytes_append(relations, &r, sizeof r);
    return FV_OK;
}

static const fv_zip_member *part_of(const fv_xlsx_book *book, const fv_bytes *relations, const char *id) {
    const relation *r = (const void *)relations->data;
    for (size_t i = 0; i < relations->size / sizeof *r; i++) {
        char name[210];
        if (strcmp(r[i].id, id)) continue;
        snprintf(name, sizeof name, "%s%s", *r[i].target == '/' ? "" : "xl/", r[i].target + (*r[i].target == '/'));
        return find_member(book, name);
    }
    return NULL;
}

static fv_status take_sheet(fv_xlsx_book *book, fv_xlsx_xml *xml, void *context, fv_error *error) {
    fv_xlsx_sheet sheet = { 0 };
    char          id[64], since[8] = "";
    (void)error;
    if (fv__xlsx_xml_is(xml, "workbookPr") && fv__xlsx_xml_attribute(xml, "date1904", since, sizeof since))
        book->since_1904 = !strcmp(since, "1") || !strcmp(since, "true");
    if (!fv__xlsx_xml_is(xml, "sheet") || !fv__xlsx_xml_attribute(xml, "name", sheet.name, sizeof sheet.name) ||
        !fv__xlsx_xml_attribute(xml, "r:id", id, sizeof id))
        return FV_OK;
    const fv_zip_member *member = part_of(book, context, id); /* a sheet of one chart has none */
    if (!member) return FV_OK;
    sheet.member = *member;
    fv__bytes_append(&book->sheets, &sheet, sizeof sheet);
    return FV_OK;
}

fv_status fv__xlsx_book_sheets(fv_xlsx_book *book, int fd, int64_t size, const char *path, fv_error *error) {
    fv_bytes relations = { 0 };
    *book = (fv_xlsx_book){ .zip = { fd, size, path, "an XLSX workbook" } };
    FV_TRY(fv__zip_each(&book->zip, keep_member, &book->members, error));
    fv_status status = each_tag(book, "xl/_rels/workbook.xml.rels", take_relation, &relations, error);
    if (status == FV_OK) status = each_tag(book, "xl/workbook.xml", take_sheet, &relations, error);
    fv__bytes_release(&relations);
    FV_TRY(status);
    if (!fv__xlsx_sheet_count(book))
        return fv_fail(error, FV_ERROR_INPUT, "%s: not an XLSX workbook, or it has no sheet of cells", path);
    return FV_OK;
}

/* ---------------------------------------------------------------- shared texts */

typedef struct {
    bool inside, phonetic; /* of an entry; of a reading aid, which is no part of the text */
} text_state;

static fv_status take_text(fv_xlsx_book *book, fv_xlsx_xml *xml, void *context, fv_error *error) {
    text_state *state = context;
    if (fv__xlsx_xml_is(xml, "si")) {
        size_t place = book->texts.size;
        FV_TRY(fv__bytes_need(&book->places, sizeof place, error));
        fv__bytes_append(&book->places, &place, sizeof place);
        state->inside = !fv__xlsx_xml_closed(xml);
        if (!state->inside) fv__bytes_append(&book->texts, "", 1);
    } else if (fv__xlsx_xml_is(xml, "rPh") || fv__xlsx_xml_is(xml, "/rPh"))
        state->phonetic = *xml->tag.name != '/';
    else if (fv__xlsx_xml_is(xml, "/t") && state->inside && !state->phonetic) {
        FV_TRY(fv__bytes_need(&book->texts, (size_t)(xml->text_end - xml->text) + 1, error));
        fv__xlsx_xml_text(xml, &book->texts);
    } else if (fv__xlsx_xml_is(xml, "/si") && state->inside) {
        state->inside = false;
        fv__bytes_append(&book->texts, "", 1);
    }
    if (book->texts.size > MOST_TEXTS)
        return fv_fail(error, FV_ERROR_INPUT, "%s: its texts are more than %d MB", book->zip.path, MOST_TEXTS >> 20);
    return FV_OK;
}

const char *fv__xlsx_shared_text(const fv_xlsx_book *book, int64_t index) {
    if (index < 0 || index >= (int64_t)(book->places.size / sizeof(size_t))) return NULL;
    size_t place = ((const size_t *)(const void *)book->places.data)[index];
    return place < book->texts.size ? (const char *)book->texts.data + place : "";
}

/* ---------------------------------------------------------------- dates */

/* Which letters of a format of numbers stand for parts of a date: not those in quotes, behind a backslash or in brackets. */
static fv_xlsx_date kind_of_format(const char *code) {
    bool date = false, time = false;
    for (const char *p = code; *p && *p != ';'; p++) {
        int c = tolower((unsigned char)*p);
        if (*p == '"')
            for (p++; *p && *p != '"';) p++;
        else if (*p == '[' && !strchr("hHmMsS", p[1]))
            while (*p && *p != ']') p++;
        else if (*p == '\\' && p[1])
            p++;
        else {
            date = date || c == 'y' || c == 'd';
            time = time || c == 'h' || c == 's';
        }
        if (!*p) break;
    }
    if (!date && !time && strpbrk(code, "mM") && !strpbrk(code, "0#?")) date = true; /* a month alone */
    return date && time ? FV_XLSX_BOTH : date ? FV_XLSX_DATE : time ? FV_XLSX_TIME : FV_XLSX_NUMBER;
}

typedef struct {
    int          id;
    fv_xlsx_date kind;
} format;

typedef struct {
    fv_bytes formats;
    bool     inside; /* of the styles of cells */
} style_state;

static fv_xlsx_date kind_of_id(const style_state *state, int id) {
    const format *formats = (const void *)state->formats.data;
    for (size_t i = 0; i < state->formats.size / sizeof *formats; i++)
        if (formats[i].id == id) return formats[i].kind;
    if ((id >= 14 && id <= 17) || (id >= 27 && id <= 31) || (id >= 34 && id <= 36) || (id >= 50 && id <= 58)) return FV_XLSX_DATE;
    if ((id >= 18 && id <= 21) || (id >= 32 && id <= 33) || (id >= 45 && id <= 47)) return FV_XLSX_TIME;
    return id == 22 ? FV_XLSX_BOTH : FV_XLSX_NUMBER;
}

static fv_status take_style(fv_xlsx_book *book, fv_xlsx_xml *xml, void *context, fv_error *error) {
    style_state *state = context;
    char         id[16] = "0", code[256] = "";
    (void)error;
    if (fv__xlsx_xml_is(xml, "cellXfs") || fv__xlsx_xml_is(xml, "/cellXfs")) state->inside = *xml->tag.name != '/';
    if (fv__xlsx_xml_is(xml, "numFmt") && fv__xlsx_xml_attribute(xml, "numFmtId", id, sizeof id) &&
        fv__xlsx_xml_attribute(xml, "formatCode", code, sizeof code) && state->formats.size < MOST_FORMATS * sizeof(format)) {
        format f = { atoi(id), kind_of_format(code) };
        fv__bytes_append(&state->formats, &f, sizeof f);
    }
    if (state->inside && fv__xlsx_xml_is(xml, "xf") && book->styles.size < (1 << 16) * sizeof(fv_xlsx_date)) {
        fv__xlsx_xml_attribute(xml, "numFmtId", id, sizeof id);
        fv_xlsx_date kind = kind_of_id(state, atoi(id));
        fv__bytes_append(&book->styles, &kind, sizeof kind);
    }
    return FV_OK;
}

fv_xlsx_date fv__xlsx_style(const fv_xlsx_book *book, int64_t style) {
    bool known = style >= 0 && style < (int64_t)(book->styles.size / sizeof(fv_xlsx_date));
    return known ? ((const fv_xlsx_date *)(const void *)book->styles.data)[style] : FV_XLSX_NUMBER;
}

/* Year, month and day of a day that is counted from 1 January 1970. Howard Hinnant's civil_from_days. */
static void civil(int64_t days, int *year, int *month, int *day) {
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097, of_era = days - era * 146097;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100), shifted = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * shifted + 2) / 5 + 1);
    *month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
    *year = (int)(year_of_era + era * 400 + (*month <= 2));
}

bool fv__xlsx_write_date(const fv_xlsx_book *book, double days, fv_xlsx_date kind, char text[32]) {
    int year, month, day;
    if (!(days >= 0 && days < 2958466)) return false; /* the end of the year 9999 */
    int64_t ms = (int64_t)floor(days * 86400000 + 0.5), whole = ms / 86400000, rest = ms % 86400000;
    /* Day 60 is a 29 February 1900 that never was. */
    int64_t since_1970 = book->since_1904 ? whole - 24107 : whole - (whole < 60 ? 25568 : 25569);
    civil(since_1970, &year, &month, &day);
    int  n = 0;
    bool clock = kind == FV_XLSX_TIME || rest || (kind == FV_XLSX_BOTH && whole == 0);
    if (kind != FV_XLSX_TIME || whole) n = snprintf(text, 32, "%04d-%02d-%02d%s", year, month, day, clock ? " " : "");
    if (clock)
        n += snprintf(text + n, (size_t)(32 - n), "%02d:%02d:%02d", (int)(rest / 3600000), (int)(rest / 60000 % 60),
                      (int)(rest / 1000 % 60));
    if (clock && rest % 1000) snprintf(text + n, (size_t)(32 - n), ".%03d", (int)(rest % 1000));
    return true;
}

/* ---------------------------------------------------------------- all of it */

fv_status fv__xlsx_book_open(fv_xlsx_book *book, int fd, int64_t size, const char *path, fv_error *error) {
    style_state styles = { 0 };
    FV_TRY(fv__xlsx_book_sheets(book, fd, size, path, error));
    fv_status status = each_tag(book, "xl/sharedStrings.xml", take_text, &(text_state){ 0 }, error);
    if (status == FV_OK) status = each_tag(book, "xl/styles.xml", take_style, &styles, error);
    fv__bytes_release(&styles.formats);
    return status;
}

void fv__xlsx_book_release(fv_xlsx_book *book) {
    fv__bytes_release(&book->members);
    fv__bytes_release(&book->sheets);
    fv__bytes_release(&book->texts);
    fv__bytes_release(&book->places);
    fv__bytes_release(&book->styles);
}
