// A plane with its slider, moved by pointer, wheel and fingers.
import { html, useEffect, useRef, useStore } from "./ui.js";
import { factors, isFlat, levelFor, PLANE, sizes } from "./geometry.js";
import { PlaneView } from "./plane.js";
import { imageOf, moveTo, pan, pointer, selectLabel, shown, step, store } from "./state.js";
import { upward, viewOf, zoomBy } from "./viewport.js";

const CLICK = 4; // pixels that a pointer may move in a click

/* The axis of the plane that was touched last; keys act on it. */
export const active = { axis: "z" };

/* Slices that a step goes on: at least so far that another plane is seen. */
export function stride(axis) {
    const image = shown(),
        level = levelFor(image, axis, viewOf(image).pixels);
    return Math.max(1, Math.round(factors(image, level)[PLANE[axis].across]));
}

/* Everything that is done to a plane with a pointer. Returns a function that ends it. */
function handle(canvas, view, axis) {
    const fingers = new Map(),
        { across, down, along } = PLANE[axis];
    let moved = 0,
        spread = 0,
        turned = 0;
    const local = ({ clientX, clientY }) => {
        const box = canvas.getBoundingClientRect();
        return [clientX - box.left, clientY - box.top];
    };
    const drag = (dx, dy) => {
        const { pixels } = viewOf(shown()),
            by = [0, 0, 0];
        by[along] = -dx / pixels[along];
        by[down] = (-dy * upward(axis)) / pixels[down];
        if (store.get("zoom") === null) zoomBy(1, axis);
        pan(by);
    };
    const actions = {
        pointerdown(event) {
            active.axis = axis;
            canvas.setPointerCapture(event.pointerId);
            fingers.set(event.pointerId, local(event));
            moved = spread = 0;
        },
        pointermove(event) {
            const [x, y] = local(event),
                before = fingers.get(event.pointerId);
            if (!before) return view.point(x, y);
            moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
            fingers.set(event.pointerId, [x, y]);
            if (fingers.size === 2) {
                const [a, b] = [...fingers.values()],
                    now = Math.hypot(a[0] - b[0], a[1] - b[1]);
                if (spread) zoomBy(now / spread, axis, (a[0] + b[0] - view.width) / 2, (a[1] + b[1] - view.height) / 2);
                spread = now;
            } else if (moved > CLICK) drag(x - before[0], y - before[1]);
        },
        pointerup(event) {
            const one = fingers.size === 1;
            fingers.delete(event.pointerId);
            if (!one || moved > CLICK) return;
            const [x, y] = local(event),
                at = view.voxelAt(x, y, shown());
            const size = sizes(shown());
            if (at.every((p, k) => p >= 0 && p < size[k])) moveTo(at);
            const label = view.labelAt(x, y);
            if (label || store.get("selected")) selectLabel(label, false);
        },
        pointercancel: (event) => fingers.delete(event.pointerId),
        pointerleave: () => pointer.set({ at: null }),
        dblclick: () => store.set({ zoom: null }),
        wheel(event) {
            event.preventDefault();
            active.axis = axis;
            const [x, y] = local(event),
                far = event.deltaMode ? event.deltaY * 30 : event.deltaY;
            if (event.ctrlKey || event.shiftKey || sizes(shown())[across] <= 1)
                return zoomBy(Math.exp(-(far || event.deltaX) / 300), axis, x - view.width / 2, y - view.height / 2);
            turned += far;
            const steps = Math.trunc(turned / 50) || (Math.abs(far) >= 50 ? Math.sign(far) : 0);
            if (!steps) return;
            turned = 0;
            step(across, Math.sign(steps) * stride(axis));
            view.point(x, y);
        },
    };
    for (const [name, action] of Object.entries(actions)) canvas.addEventListener(name, action, { passive: false });
    return () => Object.entries(actions).forEach(([name, action]) => canvas.removeEventListener(name, action));
}

/* id: of the image, or null for the chosen one. */
export function PlanePane({ axis, id = null, title = "" }) {
    const canvas = useRef(),
        { position } = useStore(store, "position", "image", "layout");
    useEffect(() => {
        const view = new PlaneView(canvas.current, axis, id),
            stop = handle(canvas.current, view, axis);
        return () => {
            stop();
            view.end();
        };
    }, [axis, id]);
    const image = id === null ? shown() : imageOf(id),
        place = PLANE[axis].across,
        size = sizes(shown())[place];
    const name = `${title || image.name}, plane across ${axis}`;
    const where = isFlat(image) && axis === "z" ? "" : `${axis} ${position[place]} of ${size - 1}`;
    return html`<section class="pane" aria-label=${name}>
        <canvas ref=${canvas} tabindex="0" role="img" data-axis=${axis} aria-label=${`${name}${where && `, ${where}`}`}
                onFocus=${() => (active.axis = axis)}></canvas>
        ${title && html`<p class="tag">${title}</p>`}
        ${
            size > 1 &&
            html`<label class="slice">
            <span>${axis}</span>
            <input type="range" min="0" max=${size - 1} value=${position[place]} aria-label=${`slice along ${axis}`}
                   onInput=${(event) => {
                       const next = [...store.get("position")];
                       next[place] = Number(event.target.value);
                       moveTo(next);
                   }} />
            <output>${position[place]}</output>
        </label>`
        }
    </section>`;
}
