/* Values of pipelines as bytes. */
#include "support/outcome.h"
#include "support/test.h"
#include <ctype.h>

void test_outcome_image(const fv_image_type *type, const void *data, test_outcome *out) {
    int n = snprintf(out->shape, sizeof out->shape, "%s", fv_dtype_name(type->dtype));
    for (int d = 0; d < type->ndim; d++)
        n += snprintf(out->shape + n, sizeof out->shape - (size_t)n, " %lld", (long long)type->shape[d]);
    fv__bytes_clear(&out->bytes);
    fv__bytes_append(&out->bytes, data, (size_t)fv_image_type_bytes(type));
}

/* A text counts as its characters, not as where they lie. */
void test_outcome_table(const fv_table *table, test_outcome *out) {
    fv_bytes *bytes = &out->bytes;
    fv__bytes_clear(bytes);
    out->shape[0] = 0;
    for (int64_t i = 0; i < table->nrows * table->type.ncolumns; i++) {
        const fv_cell *cell = &table->cell[i];
        bool           text = table->type.column[i % table->type.ncolumns].kind == FV_COLUMN_TEXT;
        if (!text)
            fv__bytes_append(bytes, cell, sizeof *cell);
        else
            fv__bytes_append(bytes, cell->text ? cell->text : "", cell->text ? strlen(cell->text) + 1 : 0);
    }
}

bool test_outcome_take(fv_pipeline *p, const test_setting *s, test_outcome *out, fv_error *error) {
    char          *store = fv__sprintf("%s/store", test_folder());
    fv_run_options options = { .workers = s->workers,
                               .allow_commands = true,
                               .store = store,
                               .fresh = true,
                               .poison = s->poison + 1,
                               .engine = s->engine,
                               .memory = (int64_t)1 << 30,
                               .command = getenv("FOVEA") };
    fv_result     *result = NULL;
    fv_pipeline_keep(p, "result", error);
    if (s->chunk_ndim) fv_pipeline_chunk(p, s->chunk, s->chunk_ndim, error);
    fv_status       status = error->code == FV_OK ? fv_pipeline_run(p, &options, &result, error) : error->code;
    fv_image_type   type;
    const void     *image = result ? fv_result_array(result, "result", &type) : NULL;
    const fv_table *table = result ? fv_result_table(result, "result") : NULL;
    fv__bytes_clear(&out->bytes);
    out->shape[0] = 0;
    if (status == FV_OK && image)
        test_outcome_image(&type, image, out);
    else if (status == FV_OK && table)
        test_outcome_table(table, out);
    else if (status != FV_OK && *fv_pipeline_messages(p))
        fv_fail(error, status, "%s", fv_pipeline_messages(p));
    fv_result_free(result);
    fv_pipeline_free(p);
    free(store);
    return status == FV_OK && (image || table);
}

bool test_outcome_same(const test_outcome *a, const test_outcome *b) {
    return !strcmp(a->shape, b->shape) && a->bytes.size == b->bytes.size &&
           (!a->bytes.size || !memcmp(a->bytes.data, b->bytes.data, a->bytes.size));
}

void test_outcome_release(test_outcome *outcome) { fv__bytes_release(&outcome->bytes); }

test_setting test_setting_random(uint64_t *state, const char *engine) {
    test_setting s = { .engine = engine,
                       .workers = 1 + (int)(test_random(state) % 4),
                       .poison = test_random(state) % 2 ? 0x55 : 0xff };
    s.chunk_ndim = 3;
    for (int d = 0; d < 3; d++) { /* rows a voxel long would repeat what whole rows cost a thousand times, in a few operators */
        int64_t least = d == 2 ? 5 : 1, most = d == 0 ? 12 : 40;
        s.chunk[d] = least + (int64_t)(test_random(state) % (uint64_t)(most - least + 1));
    }
    return s;
}

char **test_lines(const char *path, int *count) {
    FILE   *file = fopen(path, "r");
    char  **lines = NULL, *line = NULL;
    size_t  capacity = 0;
    ssize_t n;
    *count = 0;
    while (file && (n = getline(&line, &capacity, file)) > 0) {
        while (n > 0 && isspace((unsigned char)line[n - 1])) line[--n] = 0;
        if (!n || line[0] == '#') continue;
        lines = fv__realloc(lines, (size_t)(*count + 1) * sizeof *lines);
        lines[(*count)++] = fv__strdup(line);
    }
    free(line);
    if (file) fclose(file);
    return lines;
}

void test_lines_free(char **lines, int count) {
    for (int i = 0; i < count; i++) free(lines[i]);
    free(lines);
}
