/* A graph as a drawing: a row for each step from the inputs, boxes as near to the middle of what they are made of as others
 * allow, curves between them. */
#include "draw/drawing.h"
#include "story/story_parts.h"
#include <math.h>
#include <stdlib.h>

enum { HIGH = 40, APART = 22, BELOW = 34, SIDE = 8, MOST_WIDE = 230, MOST_BOXES = 120 };

typedef struct box { /* an operator, a file, or without words the place where a line passes a row */
    int                  row, nabove, *above;
    double               x, width, wanted;
    double               seconds;
    char                *words, *more; /* NULL: none */
    const fv_graph_node *node;
    bool                 sink;
} box;

typedef struct layout {
    box   *boxes;
    int    count, room, rows;
    double wide, most; /* most: seconds of the slowest */
} layout;

static int add_box(layout *l, int row, char *words, char *more) {
    if (l->count == l->room) {
        l->room = FV_MAX(2 * l->room, 64);
        l->boxes = fv__realloc(l->boxes, (size_t)l->room * sizeof *l->boxes);
    }
    double width = words ? fmax(fv__text_width(words, 12), more ? fv__text_width(more, 10) : 0) + 2 * SIDE : 4;
    l->boxes[l->count] = (box){ .row = row, .words = words, .more = more, .width = fmin(fmax(width, words ? 60 : 4), MOST_WIDE) };
    l->rows = FV_MAX(l->rows, row + 1);
    return l->count++;
}

static void join(layout *l, int from, int to) {
    box *b = &l->boxes[to];
    b->above = fv__realloc(b->above, (size_t)(b->nabove + 1) * sizeof *b->above);
    b->above[b->nabove++] = from;
}

/* Long ways pass each row between at a place of their own. */
static void lead(layout *l, int from, int to) {
    for (int row = l->boxes[from].row + 1; row < l->boxes[to].row; row++) {
        int place = add_box(l, row, NULL, NULL);
        join(l, from, place);
        from = place;
    }
    join(l, from, to);
}

static char *words_of(const fv_graph_node *node) {
    const char *op = *node->called ? node->called : node->op;
    return *node->name && strcmp(node->name, op) ? fv__sprintf("%s = %s", node->name, op) : fv__strdup(op);
}

static void add_nodes(layout *l, const fv_story *story, int part) {
    const fv_graph_part *p = &story->graph->parts[part];
    int                 *own = fv__alloc((size_t)(p->nnodes + 1) * sizeof *own);
    for (int i = 0; i < p->nnodes; i++) {
        const fv_graph_node *node = &p->nodes[i];
        int                  row = 0;
        own[i] = -1;
        if (node->constant || l->count >= MOST_BOXES) continue;
        for (int k = 0; k < node->nin; k++)
            if (own[node->in[k]] >= 0) row = FV_MAX(row, l->boxes[own[node->in[k]]].row + 1);
        int at = own[i] = add_box(l, row, words_of(node), fv__strdup(node->type));
        l->boxes[at].node = node;
        l->boxes[at].seconds = fv__story_node(story, part, node->id);
        l->most = FV_MAX(l->most, l->boxes[at].seconds);
        for (int k = 0; k < node->nin; k++)
            if (own[node->in[k]] >= 0) lead(l, own[node->in[k]], at);
    }
    for (int i = 0; i < p->nsinks; i++) {
        const fv_graph_sink *sink = &p->sinks[i];
        bool                 shown = sink->node >= 0 && own[sink->node] >= 0 && l->count < 2 * MOST_BOXES;
        if (!shown || strcmp(sink->what, "file")) continue;
        int at = add_box(l, l->boxes[own[sink->node]].row + 1, fv__strdup(sink->name), NULL);
        l->boxes[at].sink = true;
        join(l, own[sink->node], at);
    }
    free(own);
}

static int by_wanted(const void *a, const void *b) {
    const box *x = *(box *const *)a, *y = *(box *const *)b;
    if (x->wanted != y->wanted) return x->wanted < y->wanted ? -1 : 1;
    return x < y ? -1 : 1;
}

static void place_row(layout *l, int row, box **list) {
    int    n = 0;
    double width = -APART;
    for (int i = 0; i < l->count; i++) {
        box *b = &l->boxes[i];
        if (b->row != row) continue;
        b->wanted = 0;
        for (int k = 0; k < b->nabove; k++) b->wanted += l->boxes[b->above[k]].x / b->nabove;
        width += b->width + APART;
        list[n++] = b;
    }
    if (row) qsort(list, (size_t)n, sizeof *list, by_wanted);
    double at = -width / 2;
    for (int i = 0; i < n; i++) {
        list[i]->x = at + list[i]->width / 2;
        at += list[i]->width + APART;
    }
    l->wide = FV_MAX(l->wide, width);
}

/* From white to a warm orange. */
static unsigned shade(double share) {
    double t = sqrt(fmin(fmax(share, 0), 1));
    int    g = (int)(255 - t * (255 - 166)), b = (int)(255 - t * (255 - 77));
    return 0xff0000u | (unsigned)g << 8 | (unsigned)b;
}

static double top_of(const box *b) { return 2 + b->row * (HIGH + BELOW); }

static void put_words(fv_bytes *out, const char *text, double size, double width, double x, double y, const char *color) {
    char *fitting = fv__text_fit(text, size, width - SIDE);
    fv__bytes_printf(out, "<text x=\"%.0f\" y=\"%.0f\" font-size=\"%.0f\" text-anchor=\"middle\" fill=\"%s\">", x, y, size,
                     color);
    fv__html_text(out, fitting);
    fv__bytes_printf(out, "</text>");
    free(fitting);
}

static void put_box(fv_bytes *out, const layout *l, const box *b, double middle) {
    double x = middle + b->x, y = top_of(b);
    char   took[FV_WORDS];
    for (int k = 0; k < b->nabove; k++) {
        const box *from = &l->boxes[b->above[k]];
        double     start = top_of(from) + (from->words ? HIGH : HIGH / 2.), end = y + (b->words ? 0 : HIGH / 2.);
        double     half = (start + end) / 2, begin = middle + from->x;
        fv__bytes_printf(out, "<path d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f\" fill=\"none\" stroke=\"#888\"/>", begin,
                         start, begin, half, x, half, x, end);
    }
    if (!b->words) return;
    fv__bytes_printf(out, "<g><title>");
    fv__html_text(out, b->words);
    if (b->node)
        fv__html_printf(out, "(%s), %s, line %d: %s", b->node->parameters, b->node->type, b->node->line,
                        fv__say_seconds(b->seconds, took));
    fv__bytes_printf(
        out, "</title><rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%d\" rx=\"%d\" fill=\"#%06x\" stroke=\"%s\"/>",
        x - b->width / 2, y, b->width, HIGH, b->sink ? 0 : 5, b->sink ? 0xeef3f8 : shade(l->most > 0 ? b->seconds / l->most : 0),
        b->node && b->node->stored ? "#0072b2\" stroke-width=\"2" : "#777");
    if (b->sink)
        put_words(out, b->words, 12, b->width, x, y + 25, "#222");
    else {
        char *more = fv__sprintf("%s \xc2\xb7 %s", b->more, fv__say_seconds(b->seconds, took));
        put_words(out, b->words, 12, b->width, x, y + 16, "#222");
        put_words(out, fv__text_width(more, 10) > b->width - SIDE ? took : more, 10, b->width, x, y + 31, "#444");
        free(more);
    }
    fv__bytes_printf(out, "</g>\n");
}

void fv__put_graph(fv_bytes *out, const fv_story *story, int part) {
    layout l = { 0 };
    add_nodes(&l, story, part);
    box **list = fv__alloc((size_t)(l.count + 1) * sizeof *list);
    for (int row = 0; row < l.rows; row++) place_row(&l, row, list);
    double wide = l.wide + 4, high = l.rows * (HIGH + BELOW) - BELOW + 4;
    fv__bytes_printf(out,
                     "<svg class=\"zoom graph\" role=\"img\" aria-label=\"graph of the pipeline\" width=\"%.0f\" height=\"%.0f\""
                     " viewBox=\"0 0 %.0f %.0f\">\n",
                     wide, high, wide, high);
    for (int i = 0; i < l.count; i++) put_box(out, &l, &l.boxes[i], wide / 2);
    fv__bytes_printf(out, "</svg>\n");
    for (int i = 0; i < l.count; i++) {
        free(l.boxes[i].above);
        free(l.boxes[i].words);
        free(l.boxes[i].more);
    }
    free(list);
    free(l.boxes);
}
