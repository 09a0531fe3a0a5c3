/* The names of all operators, as the library tells them. */
#ifndef FV_NAMES_H
#define FV_NAMES_H

/* Calls with each operator as its JSON object (a cJSON). */
struct cJSON;
typedef void fv_name_visit(const struct cJSON *op, void *context);
void         fv_names_each(fv_name_visit *visit, void *context);

/* Prints the names, apart by a text. */
void fv_names_print(const char *between);

#endif
