/* Descriptions of operators and formats for the parts of describe. Internal to api. */
#ifndef FV_DESCRIBE_OPS_H
#define FV_DESCRIBE_OPS_H

#include "op/format.h"
#include "op/op.h"
#include <cjson/cJSON.h>

void   fv__op_text(const fv_op *op, fv_bytes *out);
cJSON *fv__op_json(const fv_op *op);
void   fv__format_text(const fv_format *format, fv_bytes *out);
cJSON *fv__format_json(const fv_format *format);
void   fv__table_format_text(const fv_table_format *format, fv_bytes *out);
cJSON *fv__table_format_json(const fv_table_format *format);
/* "a|b" or "a b" as a list. */
cJSON *fv__words_json(const char *words, char separator);

#endif
