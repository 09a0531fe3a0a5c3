// The graph of a run as a picture: a box per step, filled as far as it is done.
import * as dagre from "../vendor/dagre.js";
import { html } from "./ui.js";

const HIGH = 44;
const wide = ({ op, name }) => Math.max(90, 18 + 8 * Math.max(op.length, (name ?? "").length));

/* Places of boxes and lines; kept, because the graph of a run does not change. */
const layouts = new Map();
function layout(part) {
    const key = JSON.stringify(part.nodes.map(({ id, in: inputs }) => [id, inputs]));
    if (layouts.has(key)) return layouts.get(key);
    const graph = new dagre.graphlib.Graph().setGraph({ rankdir: "LR", nodesep: 14, ranksep: 34, marginx: 6, marginy: 6 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const node of part.nodes) graph.setNode(String(node.id), { width: wide(node), height: HIGH });
    for (const node of part.nodes)
        for (const input of node.in ?? []) if (graph.hasNode(String(input))) graph.setEdge(String(input), String(node.id));
    dagre.layout(graph);
    const { width = 100, height = 60 } = graph.graph(),
        lines = graph.edges().map((edge) => graph.edge(edge).points),
        heights = lines.flat().map(({ y }) => y); // lines may pass above and below all boxes
    const top = Math.min(0, ...heights.map((y) => y - 6));
    const made = {
        width,
        top,
        height: Math.max(height, ...heights.map((y) => y + 6)) - top,
        boxes: new Map(part.nodes.map(({ id }) => [id, graph.node(String(id))])),
        lines,
    };
    layouts.set(key, made);
    return made;
}

export function Graph({ part }) {
    if (!part.nodes?.length) return null;
    const { width, top, height, boxes, lines } = layout(part),
        most = Math.max(1e-9, ...part.nodes.map(({ seconds }) => seconds ?? 0));
    return html`<section class="card wide" aria-label=${`graph of ${part.title}`}><h2>${part.title}</h2>
        <div class="scroll" tabindex="0" role="region" aria-label=${`steps of ${part.title}`}>
        <svg class="graph" width=${width} height=${height} viewBox=${`0 ${top} ${width} ${height}`} role="img"
             aria-label=${part.nodes.map(({ op, fraction }) => `${op} ${Math.round((fraction ?? 0) * 100)} %`).join(", ")}>
            ${lines.map((points) => html`<polyline points=${points.map(({ x, y }) => `${x},${y}`).join(" ")} />`)}
            ${part.nodes.map((node) => {
                const { x, y, width: w } = boxes.get(node.id),
                    share = Math.min(1, Math.max(0, node.fraction ?? 0));
                return html`<g key=${node.id} transform=${`translate(${x - w / 2} ${y - HIGH / 2})`}><title>
                    ${node.text ?? node.op}</title>
                    <rect class="box" width=${w} height=${HIGH} rx="6" /><rect class="done" width=${w * share}
                        height=${HIGH} rx="6" />
                    <rect class="heat" y=${HIGH - 4} width=${w * ((node.seconds ?? 0) / most)} height="4" />
                    <text x=${w / 2} y="18">${node.op}</text>
                    <text class="small" x=${w / 2} y="34">
                        ${node.name ? `${node.name}, ` : ""}${Math.round(share * 100)} %</text></g>`;
            })}
        </svg></div></section>`;
}
