/* What a workbook says beside its cells: sheets, shared texts, and which styles are dates. */
#ifndef FV_XLSX_BOOK_H
#define FV_XLSX_BOOK_H

#include "tables/xlsx_xml.h"

typedef struct fv_xlsx_sheet {
    char          name[128];
    fv_zip_member member;
} fv_xlsx_sheet;

typedef enum fv_xlsx_date { FV_XLSX_NUMBER, FV_XLSX_DATE, FV_XLSX_TIME, FV_XLSX_BOTH } fv_xlsx_date;

typedef struct fv_xlsx_book {
    fv_zip   zip;
    fv_bytes members; /* fv_zip_member of every part */
    fv_bytes sheets;  /* fv_xlsx_sheet */
    fv_bytes texts;   /* shared, each ended by NUL */
    fv_bytes places;  /* size_t: where each begins */
    fv_bytes styles;  /* fv_xlsx_date of each style of cells */
    bool     since_1904;
} fv_xlsx_book;

/* fd and path are borrowed. All but the cells is read. To be released in any case. */
fv_status fv__xlsx_book_open(fv_xlsx_book *book, int fd, int64_t size, const char *path, fv_error *error);
void      fv__xlsx_book_release(fv_xlsx_book *book);
/* The names of the sheets alone. */
fv_status fv__xlsx_book_sheets(fv_xlsx_book *book, int fd, int64_t size, const char *path, fv_error *error);

static inline int64_t fv__xlsx_sheet_count(const fv_xlsx_book *book) {
    return (int64_t)(book->sheets.size / sizeof(fv_xlsx_sheet));
}
static inline const fv_xlsx_sheet *fv__xlsx_sheet_at(const fv_xlsx_book *book, int64_t i) {
    return (const fv_xlsx_sheet *)book->sheets.data + i;
}
/* NULL: there is no such text. */
const char  *fv__xlsx_shared_text(const fv_xlsx_book *book, int64_t index);
fv_xlsx_date fv__xlsx_style(const fv_xlsx_book *book, int64_t style);
/* A number of days as a date, a time or both, as ISO 8601 writes them; false: it is none. */
bool fv__xlsx_write_date(const fv_xlsx_book *book, double days, fv_xlsx_date kind, char text[32]);

#endif
