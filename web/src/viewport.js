// Where voxels are on the screen. All planes share a centre and a zoom, so that they stay linked.
import { isEmpty, letters, PLANE, ratio, sizes, stretch } from "./geometry.js";
import { shown, store } from "./state.js";

export const views = new Set();
export const addView = (view) => views.add(view);
export const removeView = (view) => views.delete(view);
export const isBusy = () => [...views].some((view) => view.busy);

/* Screen pixels per smallest voxel edge: as chosen, or so that every plane that is seen fits. */
export function zoom() {
    const chosen = store.get("zoom");
    if (chosen !== null) return chosen;
    const image = shown(),
        size = sizes(image),
        edge = stretch(image);
    let most = Infinity;
    for (const { axis, width, height } of views) {
        const { down, along } = PLANE[axis];
        if (width > 8 && height > 8)
            most = Math.min(most, (width * 0.94) / (size[along] * edge[along]), (height * 0.94) / (size[down] * edge[down]));
    }
    return isFinite(most) && most > 0 ? Math.min(most, 64) : 1;
}

/* -1 where the plane across an axis is drawn upside down: heads and front sides are up where the file tells the orientation. */
export function upward(axis) {
    const ends = letters(shown(), PLANE[axis].down);
    return ends && "SA".includes(ends[1]) ? -1 : 1;
}

/* Screen pixels per voxel of an image along z, y, x, with the centre and the cross-hair in its voxels. */
export function viewOf(image) {
    const main = shown(),
        scale = image === main ? [1, 1, 1] : ratio(main, image),
        edge = stretch(main),
        factor = zoom();
    const { centre, position, zoom: chosen } = store.values,
        size = sizes(main);
    const middle = chosen === null ? size.map((n) => n / 2) : centre;
    return {
        pixels: edge.map((one, k) => (one * factor) / scale[k]),
        centre: middle.map((c, k) => c * scale[k]),
        position: position.map((p, k) => Math.floor((p + 0.5) * scale[k])),
    };
}

/* Zooms by a factor and keeps the point under (x, y), pixels from the middle of a plane, where it is. */
export function zoomBy(by, axis, x = 0, y = 0) {
    const image = shown();
    if (isEmpty(image)) return;
    const { pixels, centre } = viewOf(image),
        { down, along } = PLANE[axis];
    const before = zoom(),
        after = Math.min(Math.max(before * by, 1e-3), 200),
        moved = [...centre];
    moved[along] += (x / pixels[along]) * (1 - before / after);
    moved[down] += ((y * upward(axis)) / pixels[down]) * (1 - before / after);
    store.set({ zoom: after, centre: moved });
}
