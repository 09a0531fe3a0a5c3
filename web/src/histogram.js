// The histogram of an image with two handles: what is black, and what is white.
import { html, short, useEffect, useRef } from "./ui.js";
import { colourMap, cssColour } from "./colour.js";

const HEIGHT = 72;

/* The values at the left and the right edge: all of the data, and the handles. */
function range({ histogram }, low, high) {
    const [first, last] = histogram.edges,
        from = Math.min(first, low),
        to = Math.max(last, high);
    return to > from ? [from, to] : [from, from + 1];
}

function draw(canvas, { statistics, low, high, map, invert, colour }) {
    const scale = devicePixelRatio || 1,
        width = canvas.clientWidth;
    canvas.width = width * scale;
    canvas.height = HEIGHT * scale;
    const ctx = canvas.getContext("2d"),
        { counts, edges } = statistics.histogram,
        [from, to] = range(statistics, low, high);
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    ctx.clearRect(0, 0, width, HEIGHT);
    const at = (value) => ((value - from) / (to - from)) * width,
        most = Math.log1p(Math.max(1, ...counts));
    const bar = Math.max(1, ((edges[1] - edges[0]) / counts.length / (to - from)) * width),
        colours = colourMap(map, invert);
    counts.forEach((count, k) => {
        if (!count) return;
        const value = edges[0] + ((k + 0.5) / counts.length) * (edges[1] - edges[0]);
        const share = Math.min(1, Math.max(0, (value - low) / (high - low || 1)));
        ctx.fillStyle = colour ?? cssColour(colours[Math.round(share * 255)]);
        const high_ = (Math.log1p(count) / most) * (HEIGHT - 4);
        ctx.fillRect(at(value) - bar / 2, HEIGHT - high_, bar + 0.5, high_);
    });
}

/* settings: { statistics, low, high, map, invert, colour }; change is called with { low, high }. */
export function Histogram({ settings, change, name }) {
    const canvas = useRef(),
        { statistics, low, high } = settings;
    useEffect(() => {
        if (!statistics || low === null) return undefined;
        const paint = () => draw(canvas.current, settings),
            sizes = new ResizeObserver(paint);
        sizes.observe(canvas.current);
        return () => sizes.disconnect();
    }, [statistics, low, high, settings.map, settings.invert, settings.colour]);
    if (!statistics || low === null || high === null) return html`<p class="quiet">reading the image…</p>`;
    const [from, to] = range(statistics, low, high);
    const grab = (which) => (event) => {
        const track = event.currentTarget.parentNode,
            box = track.getBoundingClientRect();
        event.currentTarget.setPointerCapture(event.pointerId);
        const move = ({ clientX }) => {
            const value = from + Math.min(1, Math.max(0, (clientX - box.left) / box.width)) * (to - from);
            change(which === "low" ? { low: Math.min(value, high) } : { high: Math.max(value, low) });
        };
        const target = event.currentTarget;
        target.onpointermove = move;
        target.onpointerup = target.onpointercancel = () => (target.onpointermove = null);
    };
    const key = (which) => (event) => {
        const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10 }[event.key];
        if (!by) return;
        event.preventDefault();
        event.stopPropagation();
        const value = (which === "low" ? low : high) + (by * (to - from)) / 200;
        change(which === "low" ? { low: Math.min(value, high) } : { high: Math.max(value, low) });
    };
    const handle = (which, value) => html`<button type="button" class=${`handle ${which}`} role="slider"
        aria-label=${`${name}: ${which === "low" ? "darkest" : "brightest"} value`} aria-valuemin=${short(from)}
            aria-valuemax=${short(to)}
        aria-valuenow=${short(value)} style=${{ left: `${((value - from) / (to - from)) * 100}%` }}
        onPointerDown=${grab(which)} onKeyDown=${key(which)}></button>`;
    const box = (
        which,
        value,
    ) => html`<input type="number" step="any" value=${short(value)} aria-label=${`${name}: ${which} value`}
        onChange=${(event) => isFinite(event.target.valueAsNumber) && change({ [which]: event.target.valueAsNumber })} />`;
    return html`<div class="histogram">
        <div class="track"><canvas ref=${canvas} aria-hidden="true"></canvas>${handle("low", low)}${handle("high", high)}</div>
        <div class="ends">${box("low", low)}<span class="quiet">${statistics.nan ? `${statistics.nan} not a number` : ""}</span>
            ${box("high", high)}</div>
    </div>`;
}
