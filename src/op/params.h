/* From a value written in a pipeline to the field of an operator's parameter struct, and back to text. */
#ifndef FV_PARAMS_H
#define FV_PARAMS_H

#include "op/op.h"

typedef struct fv_literal {
    enum {
        FV_LITERAL_NUMBER,
        FV_LITERAL_TEXT,
        FV_LITERAL_FLAG,
        FV_LITERAL_NUMBERS,
        FV_LITERAL_FOOTPRINT,
        FV_LITERAL_LIST,
        FV_LITERAL_GEOMETRY,
        FV_LITERAL_FILES
    } kind;
    double       number;   /* exact for integers up to 2^53 */
    bool         integral; /* the number was written without point or exponent */
    bool         flag;
    const char  *text; /* of FILES: the call that names them, as fv__files_text gives it */
    fv_numbers   numbers;
    fv_footprint footprint;
    fv_list      list; /* numbers that are too many for `numbers` */
    fv_geometry  geometry;
} fv_literal;

/* Fills a zeroed struct with all defaults; required fields keep zero. */
void fv__params_default(const fv_op *op, void *params);
/* Checks a value against the description and stores it. Texts are copied into the arena. The message names operator,
 * parameter, value and what is allowed. */
fv_status fv__params_set(const fv_op *op, const fv_param *param, void *params, const fv_literal *value, fv_arena *arena,
                         fv_error *error);
/* Parameters as pipeline text, "sigma = [2, 2], mode = \"wrap\""; the identity of a node includes it. */
void            fv__params_format(const fv_op *op, const void *params, fv_bytes *out);
const fv_param *fv__params_find(const fv_op *op, const char *name);
/* The parameter that names a file, and the one that makes what a pattern matches one image; NULL: it has none. */
const fv_param *fv__params_file(const fv_op *op);
const fv_param *fv__params_joining(const fv_op *op);
/* The parameter that takes the values of other arguments; NULL: it has none. */
const fv_param *fv__params_of_values(const fv_op *op);
/* Index of an input slot by name, -1 if none. */
int         fv__inputs_find(const fv_op *op, const char *name);
int         fv__inputs_count(const fv_op *op);
const char *fv__kind_name(fv_kind kind);
/* A literal from text: 3, 2.5, true, word, "word", [1, 2]. For defaults and command-line values. */
bool fv__literal_parse(const char *text, fv_literal *literal, fv_arena *arena);
void fv__literal_format(const fv_literal *literal, fv_bytes *out);

#endif
