/* A paragraph about the methods of a run, as a paper has it, and the references that the descriptors of operators name. */
#include "op/op.h"
#include "story/story_parts.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct references {
    const char *texts[256];
    int         count;
} references;

static int reference(references *r, const char *text) {
    for (int i = 0; i < r->count; i++)
        if (!strcmp(r->texts[i], text)) return i + 1;
    if (r->count == FV_COUNT(r->texts)) return 0;
    r->texts[r->count++] = text;
    return r->count;
}

static const fv_op *op_of(const fv_graph_node *node) {
    return node->constant ? NULL : fv__op_find(*node->called ? node->called : node->op);
}

static bool told_before(const fv_graph_part *part, int i) {
    const fv_op *op = op_of(&part->nodes[i]);
    for (int k = 0; k < i; k++)
        if (op_of(&part->nodes[k]) == op &&
            (*part->nodes[i].called || !strcmp(part->nodes[k].parameters, part->nodes[i].parameters)))
            return true;
    return false;
}

static void put_step(fv_bytes *out, const fv_graph_node *node, const fv_op *op, references *r, bool first) {
    fv__bytes_printf(out, "%s<i>", first ? "" : "; ");
    fv__html_text(out, op->name);
    fv__bytes_printf(out, "</i> (");
    fv__html_text(out, op->brief);
    char parameters[200]; /* hundreds of angles are in the text of the pipeline */
    fv_text_cut(node->parameters, parameters, sizeof parameters);
    if (!*node->called && *parameters) fv__html_printf(out, "; %s", parameters);
    fv__bytes_printf(out, ")");
    int number = op->citation ? reference(r, op->citation) : 0;
    if (number) fv__bytes_printf(out, " [%d]", number);
}

static void put_part(fv_bytes *out, const fv_graph_part *part, references *r) {
    bool first = true;
    if (part->count > 1)
        fv__html_printf(out, "To %s these steps were applied, in order: ", part->title);
    else
        fv__bytes_printf(out, "These steps were applied, in order: ");
    for (int i = 0; i < part->nnodes; i++) {
        const fv_op *op = op_of(&part->nodes[i]);
        if (!op || op->sign || told_before(part, i)) continue; /* signs of arithmetic are in the text of the pipeline */
        put_step(out, &part->nodes[i], op, r, first);
        first = false;
    }
    fv__bytes_printf(out, first ? "none. " : ". ");
}

void fv__put_methods(fv_bytes *out, const fv_story *story) {
    references  r = { 0 };
    const char *version = fv__story_fact(story, "version"), *device = fv__story_fact(story, "device");
    char        own[80];
    snprintf(own, sizeof own, "Fovea, version %s", version ? version : "unknown");
    fv__bytes_printf(out, "<p class=\"paper\">Images were analysed with ");
    fv__html_text(out, own);
    fv__bytes_printf(out, " [%d]. ", reference(&r, own));
    for (int p = 0; p < story->graph->nparts; p++) put_part(out, &story->graph->parts[p], &r);
    if (!device || !strcmp(device, "cpu"))
        fv__bytes_printf(out, "Results do not depend on the number of workers or on the machine. ");
    else
        fv__html_printf(out, "Operators that can do so ran on a device (%s). ", device);
    fv__bytes_printf(out, "The whole text of the pipeline is given above.</p>\n<h3>References</h3>\n<ol>\n");
    for (int i = 0; i < r.count; i++) {
        fv__bytes_printf(out, "<li>");
        fv__html_text(out, r.texts[i]);
        fv__bytes_printf(out, "</li>\n");
    }
    fv__bytes_printf(out, "</ol>\n");
}
