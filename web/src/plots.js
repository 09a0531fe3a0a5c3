// Plots of a table's columns: a histogram and points. What is brushed filters the rows and lights up the objects.
import uPlot from "../vendor/uplot.js";
import { html, short, useEffect, useRef, useStore } from "./ui.js";
import { getJson } from "./api.js";
import { filterRows, say, store } from "./state.js";

const BINS = 64;
const POINTS = 20000;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function axis(label) {
    return {
        label,
        labelSize: 16,
        labelFont: "12px system-ui",
        font: "11px system-ui",
        stroke: colour("--quiet"),
        size: 34,
        gap: 2,
        grid: { stroke: colour("--line"), width: 0.5 },
        ticks: { stroke: colour("--line"), size: 4 },
    };
}

/* Keeps conditions on other columns and takes these instead of the ones on the same columns. */
function brush(conditions) {
    const names = conditions.map(({ column }) => column);
    filterRows([...store.get("table").where.filter(({ column }) => !names.includes(column)), ...conditions]);
}

/* A plot in an element that follows its size. make: (width, height) → uPlot. */
function usePlot(make, inputs) {
    const box = useRef(),
        plot = useRef(null);
    useEffect(() => {
        let ended = false;
        const element = box.current;
        const sizes = new ResizeObserver(() =>
            plot.current?.setSize({ width: element.clientWidth, height: element.clientHeight }),
        );
        make(element).then(
            (made) => {
                if (ended) return made?.destroy();
                plot.current = made;
                sizes.observe(element);
            },
            (error) => say(error.message),
        );
        return () => {
            ended = true;
            sizes.disconnect();
            plot.current?.destroy();
            plot.current = null;
        };
    }, inputs);
    return [box, plot];
}

const common = (box) => ({
    width: box.clientWidth || 300,
    height: box.clientHeight || 180,
    legend: { show: false },
    padding: [6, 8, 0, 0],
    cursor: { x: false, y: false, points: { show: false }, drag: { setScale: false, x: true, y: false } },
});

function ColumnHistogram({ table, column }) {
    const [box] = usePlot(
        async (element) => {
            const {
                edges: [low, high],
                counts,
            } = await getJson("column", { table: table.id, column, bins: BINS });
            const wide = (high - low || 1) / counts.length,
                middles = counts.map((_, k) => low + (k + 0.5) * wide);
            return new uPlot(
                {
                    ...common(element),
                    scales: { x: { time: false, range: [low, high > low ? high : low + 1] } },
                    axes: [axis(column), axis("rows")],
                    series: [
                        {},
                        {
                            paths: uPlot.paths.bars({ size: [1, 100] }),
                            fill: colour("--accent"),
                            stroke: colour("--panel"),
                            width: 0.5,
                            points: { show: false },
                        },
                    ],
                    hooks: {
                        setSelect: [
                            (plot) => {
                                const { left, width } = plot.select;
                                if (width > 2)
                                    brush([{ column, low: plot.posToVal(left, "x"), high: plot.posToVal(left + width, "x") }]);
                            },
                        ],
                    },
                },
                [middles, counts],
                element,
            );
        },
        [table.id, column],
    );
    return html`<div class="plot" role="img" aria-label=${`histogram of ${column}`} ref=${box}></div>`;
}

/* Points by hand: twenty thousand small squares, those of lit objects above the others. */
function drawPoints(plot, labels) {
    const { ctx } = plot,
        { lit, selected } = store.values,
        [xs, ys] = plot.data,
        size = Math.max(2, 2.5 * devicePixelRatio);
    ctx.save();
    for (const above of lit ? [false, true] : [true]) {
        ctx.fillStyle = above ? colour("--accent") : colour("--line");
        for (let i = 0; i < xs.length; i++)
            if (!lit || lit.has(labels[i]) === above)
                ctx.fillRect(plot.valToPos(xs[i], "x", true) - size / 2, plot.valToPos(ys[i], "y", true) - size / 2, size, size);
    }
    const at = labels.indexOf(selected);
    if (selected && at >= 0) {
        ctx.strokeStyle = colour("--text");
        ctx.lineWidth = 2;
        ctx.strokeRect(plot.valToPos(xs[at], "x", true) - 6, plot.valToPos(ys[at], "y", true) - 6, 12, 12);
    }
    ctx.restore();
}

function Scatter({ table, x, y }) {
    const { lit, selected } = useStore(store, "lit", "selected");
    const [box, plot] = usePlot(
        async (element) => {
            const points = await getJson("scatter", { table: table.id, x, y, limit: POINTS });
            const order = points.x
                .map((_, k) => k)
                .filter((k) => points.x[k] !== null && points.y[k] !== null)
                .sort((a, b) => points.x[a] - points.x[b]);
            const data = [order.map((k) => points.x[k]), order.map((k) => points.y[k])],
                labels = order.map((k) => points.label?.[k]);
            const options = common(element);
            return new uPlot(
                {
                    ...options,
                    cursor: { ...options.cursor, drag: { setScale: false, x: true, y: true, uni: 5 } },
                    scales: { x: { time: false } },
                    axes: [axis(x), axis(y)],
                    series: [{}, { paths: () => null, points: { show: false }, stroke: colour("--accent") }],
                    hooks: {
                        draw: [(made) => drawPoints(made, labels)],
                        setSelect: [
                            (made) => {
                                const { left, top, width, height } = made.select;
                                if (width > 2 && height > 2)
                                    brush([
                                        { column: x, low: made.posToVal(left, "x"), high: made.posToVal(left + width, "x") },
                                        { column: y, low: made.posToVal(top + height, "y"), high: made.posToVal(top, "y") },
                                    ]);
                            },
                        ],
                    },
                },
                data,
                element,
            );
        },
        [table.id, x, y],
    );
    useEffect(() => plot.current?.redraw(false), [lit, selected]);
    return html`<div class="plot" role="img" aria-label=${`${y} against ${x}`} ref=${box}></div>`;
}

/* The same as a brush, by typing. */
function Between({ column }) {
    const known = store.get("table").where.find((one) => one.column === column);
    const ends = { low: known?.low ?? -Number.MAX_VALUE, high: known?.high ?? Number.MAX_VALUE };
    const box = (name, end) => html`<input type="number" step="any" aria-label=${`${column} ${name}`}
        value=${known && Math.abs(known[end]) < Number.MAX_VALUE ? short(known[end]) : ""}
        onChange=${({ target }) => {
            const open = end === "low" ? -Number.MAX_VALUE : Number.MAX_VALUE;
            brush([{ column, ...ends, [end]: target.value === "" ? open : target.valueAsNumber }]);
        }} />`;
    return html`<p class="row between quiet">Drag, or from ${box("from", "low")} to ${box("to", "high")}</p>`;
}

export function Plots({ table }) {
    const { table: view } = useStore(store, "table");
    const names = table.columns.filter(({ type }) => type !== "text").map(({ name }) => name);
    const others = names.filter((name) => name !== table.label_column),
        [first, second] = others.length ? others : names;
    if (!first) return null;
    const x = view.x ?? first,
        y = view.y ?? "";
    const choice = (
        label,
        value,
        options,
        change,
    ) => html`<select aria-label=${label} value=${value} onChange=${(event) => change(event.target.value)}>
        ${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}</select>`;
    return html`<div class="plots"><div class="row">
            ${choice(
                "column of the plot",
                x,
                names.map((name) => [name, name]),
                (name) => store.merge("table", { x: name }),
            )}
            ${
                second &&
                choice("second column", y, [["", "histogram"], ...names.map((name) => [name, `against ${name}`])], (name) =>
                    store.merge("table", { y: name || null }),
                )
            }
        </div>
        ${
            y
                ? html`<${Scatter} table=${table} x=${x} y=${y} key=${`${x} ${y}`} />`
                : html`<${ColumnHistogram}
            table=${table} column=${x} key=${x} />`
        }
        <${Between} column=${x} key=${`between ${x}`} /></div>`;
}
