/* words: the words of a text file as a table, one row for each.
 *
 * The file is read once from its start, in pieces that need not end where a word or a character does.
 */
#include "base/file.h"
#include "op/table_rows.h"
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    const char *file;
    bool        lower;
} words;

static const fv_param params[] = {
    FV_PARAM(words, file, .file = true, .many = true,
             .doc =
                 "name of the text file (UTF-8), or for a collection a pattern such as \"texts/*.txt\" or files(\"list.txt\")"),
    FV_PARAM(words, lower, .def = "true", .doc = "write capital letters small, so that The and the are one word"),
    FV_PARAM_END,
};

enum { BUFFER = 1 << 18, MOST = 4096 /* bytes of a word */ };

static fv_status infer(fv_infer *i, fv_error *error) {
    static const fv_table_type type = { .ncolumns = 1, .column = { { "word", FV_COLUMN_TEXT } } };
    fv_file_id                 id;
    FV_TRY(fv__file_identify(((words *)i->params)->file, &id, error));
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = &type };
    return FV_OK;
}

static fv_status identity(const void *params_, fv_hasher *hasher, fv_error *error) {
    fv_file_id id;
    FV_TRY(fv__file_identify(((const words *)params_)->file, &id, error));
    fv__hasher_int(hasher, id.size);
    fv__hasher_int(hasher, id.mtime_ns);
    return FV_OK;
}

/* ---------------------------------------------------------------- characters */

typedef struct {
    const char *path;
    int         fd;
    int64_t     size, position; /* of the file; what was read of it */
    uint8_t    *buffer;
    size_t      at, have;
} text;

/* The next byte, -1 at the end; without going on. */
static fv_status peek(text *t, int *byte, fv_error *error) {
    if (t->at == t->have) {
        t->at = 0;
        t->have = (size_t)FV_MIN(t->size - t->position, BUFFER);
        if (t->have) FV_TRY(fv__file_read_at(t->fd, t->buffer, t->have, t->position, t->path, error));
        t->position += (int64_t)t->have;
    }
    *byte = t->at < t->have ? t->buffer[t->at] : -1;
    return FV_OK;
}

static fv_status no_text(const text *t, int64_t offset, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT,
                   "%s, byte %lld: this is no text in UTF-8; `iconv -f latin1 -t utf-8` makes one of a text in Latin 1", t->path,
                   (long long)offset);
}

/* The next character of the text, -1 at the end. */
static fv_status next_character(text *t, int *character, fv_error *error) {
    static const int least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    int              byte;
    FV_TRY(peek(t, &byte, error));
    *character = byte;
    if (byte < 0) return FV_OK;
    int64_t offset = t->position - (int64_t)t->have + (int64_t)t->at++;
    int     length = byte < 0x80 ? 1 : byte < 0xc0 ? 0 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : byte < 0xf8 ? 4 : 0;
    if (!length || !byte) return no_text(t, offset, error);
    if (length > 1) *character = byte & (0x7f >> length);
    for (int i = 1; i < length; i++) {
        FV_TRY(peek(t, &byte, error));
        if (byte < 0x80 || byte >= 0xc0) return no_text(t, offset, error);
        t->at++;
        *character = *character << 6 | (byte & 0x3f);
    }
    bool surrogate = *character >= 0xd800 && *character < 0xe000;
    return *character < least[length] || *character > 0x10ffff || surrogate ? no_text(t, offset, error) : FV_OK;
}

/* Letters, digits and marks: what is no space, no control character and no punctuation. Beyond the ranges of scripts that have
 * punctuation of their own, everything is a letter. */
static bool is_letter(int c) {
    if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    if (c < 0xbf) return c == 0xaa || c == 0xb2 || c == 0xb3 || c == 0xb5 || c == 0xb9 || c == 0xba || c >= 0xbc;
    if (c >= 0x2000 && c < 0x2070) return c == 0x200c || c == 0x200d;
    if (c >= 0x2190 && c < 0x2c00) return false; /* arrows, signs of mathematics, boxes */
    if (c >= 0x3000 && c < 0x3040) return c >= 0x3005 && c < 0x3008;
    if (c >= 0xff00 && c < 0xff10) return false;
    return c != 0xbf && c != 0xd7 && c != 0xf7 && c != 0x1680 && c != 0xfeff && c != 0xfffd && !(c >= 0x2e00 && c < 0x2e80);
}

/* Signs that belong to a word between two of its letters: don't, e-mail. */
static bool is_inner(int c) { return c == '\'' || c == 0x2019 || c == '-'; }

/* Latin, Greek and Cyrillic have capital letters in ranges of their own, or each before its small one. */
static int small(int c) {
    if (c >= 'A' && c <= 'Z') return c + 32;
    if ((c >= 0xc0 && c < 0xdf && c != 0xd7) || (c >= 0x391 && c < 0x3ac && c != 0x3a2) || (c >= 0x410 && c < 0x430))
        return c + 32;
    if (c >= 0x400 && c < 0x410) return c + 80;
    bool odd = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e);
    bool even = (c >= 0x100 && c < 0x138 && c != 0x130) || (c >= 0x14a && c < 0x178) || (c >= 0x460 && c < 0x482);
    return (odd && c % 2) || (even && c % 2 == 0) ? c + 1 : c == 0x178 ? 0xff : c;
}

static int put_character(char *to, int c) {
    static const int first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    int              length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(c | first[length]);
    return length;
}

/* ---------------------------------------------------------------- words */

/* Takes a word that begins with a letter; *after: the character behind it. */
static fv_status take_word(text *t, bool lower, int *after, char word[MOST + 8], fv_error *error) {
    int size = 0, c = *after;
    while (is_letter(c)) {
        size += put_character(word + size, lower ? small(c) : c);
        FV_TRY(next_character(t, &c, error));
        if (is_inner(c)) {
            int sign = c == '-' ? c : '\'';
            FV_TRY(next_character(t, &c, error));
            if (is_letter(c)) size += put_character(word + size, sign);
        }
        if (size > MOST)
            return fv_fail(error, FV_ERROR_INPUT, "%s: a word of more than %d bytes before byte %lld; is this a text?", t->path,
                           MOST, (long long)(t->position - (int64_t)t->have + (int64_t)t->at));
    }
    word[size] = 0;
    *after = c;
    return FV_OK;
}

static fv_status take_all(text *t, bool lower, fv_row_writer *rows, fv_error *error) {
    char     word[MOST + 8];
    int      c;
    fv_cell *row;
    FV_TRY(next_character(t, &c, error));
    while (c >= 0)
        if (is_letter(c)) {
            FV_TRY(take_word(t, lower, &c, word, error));
            FV_TRY(fv__row_writer_next(rows, &row, error));
            fv__row_writer_text(rows, &row[0], word);
        } else
            FV_TRY(next_character(t, &c, error));
    return fv__row_writer_flush(rows, error);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const words  *p = f->params;
    text          t = { .path = p->file, .fd = -1 };
    fv_file_id    id;
    fv_row_writer rows;
    FV_TRY(fv__file_identify(p->file, &id, error));
    FV_TRY(fv__file_open_read(p->file, &t.fd, error));
    t.size = id.size;
    t.buffer = fv__alloc(BUFFER);
    fv__row_writer_init(&rows, f);
    fv_status status = take_all(&t, p->lower, &rows, error);
    fv__row_writer_release(&rows);
    free(t.buffer);
    close(t.fd);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "word", .doc = "one word of the text, in the order of the text" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(words) = {
    .name = "words",
    .family = "table",
    .brief = "the words of a text file, or of each file of a collection",
    .also = "tokenize, word_tokenize, wordcount",
    .stage = FV_STAGE_READ,
    .version = 1,
    .params = params,
    .params_size = sizeof(words),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .identity = identity,
    .passes = passes,
    .doc = "A word is made of letters (of any language), digits and _; an apostrophe or a hyphen belongs to it between two of "
           "these: don't, e-mail. Everything else divides words. The text must be UTF-8. Capital letters of Latin, Greek and "
           "Cyrillic are written small. The file may be larger than memory.\n"
           "words(\"texts/*.txt\") |> frequencies(\"word\") |> top(20) counts the words of a whole folder.",
    .example = "phantom(\"cells\", [64, 64]) |> write(\"in.png\")",
    .see = "frequencies top read_table",
    .columns = columns,
};
