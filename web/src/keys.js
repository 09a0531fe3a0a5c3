// Keys. They act on the plane that was touched last, and leave fields of forms alone.
import { PLANE, sliders } from "./geometry.js";
import { mapsOf } from "./colour.js";
import { active, stride } from "./panes.js";
import { compareWith, displayOf, setDisplay, setMap, shown, step, store, walk } from "./state.js";
import { upward, zoomBy } from "./viewport.js";

const LAYOUTS = { 1: "all", 2: "z", 3: "y", 4: "x", 5: "volume" };

/* The list that the page shows under “?”. */
export const KEYS = [
    ["arrows", "move the cross-hair"],
    ["Page Up, Page Down", "next slices"],
    ["+ and −", "zoom"],
    ["0", "fit everything"],
    ["1 to 5", "all planes, across z, y, x, volume"],
    ["[ and ]", "earlier and later"],
    ["c", "next colours"],
    ["i", "invert"],
    ["l", "labels on and off"],
    ["o", "outlines or areas"],
    ["t", "table"],
    ["b", "blink with the other image"],
    ["p", "settings beside the planes"],
    ["?", "this list"],
];

const actions = {
    ArrowLeft: () => step(PLANE[active.axis].along, -1),
    ArrowRight: () => step(PLANE[active.axis].along, 1),
    ArrowUp: () => step(PLANE[active.axis].down, -upward(active.axis)),
    ArrowDown: () => step(PLANE[active.axis].down, upward(active.axis)),
    PageUp: () => step(PLANE[active.axis].across, stride(active.axis)),
    PageDown: () => step(PLANE[active.axis].across, -stride(active.axis)),
    "+": () => zoomBy(1.25, active.axis),
    "=": () => zoomBy(1.25, active.axis),
    "-": () => zoomBy(0.8, active.axis),
    0: () => store.set({ zoom: null }),
    "[": () => walk(sliders(shown())[0]?.name, -1),
    "]": () => walk(sliders(shown())[0]?.name, 1),
    c: () => {
        const maps = mapsOf(shown());
        setMap(shown(), maps[(maps.indexOf(displayOf(shown()).map) + 1) % maps.length]);
    },
    i: () => setDisplay(shown(), { invert: !displayOf(shown()).invert }),
    l: () => store.merge("labels", { on: !store.get("labels").on }),
    o: () => store.merge("labels", { outline: !store.get("labels").outline }),
    t: () => store.merge("table", { open: !store.get("table").open }),
    p: () => store.set({ side: !store.get("side") }),
    b: () => compareWith(store.get("compare") === "blink" ? "one" : "blink", store.get("other")),
    "?": () => store.set({ help: true }),
};

export function listenToKeys() {
    addEventListener("keydown", (event) => {
        const target = event.target,
            own = target.closest?.("input, select, textarea, dialog, .rows, [role=slider]");
        if (own || event.ctrlKey || event.metaKey || event.altKey) return;
        const action = LAYOUTS[event.key] ? () => store.set({ layout: LAYOUTS[event.key] }) : actions[event.key];
        if (!action) return;
        event.preventDefault();
        action();
    });
}
