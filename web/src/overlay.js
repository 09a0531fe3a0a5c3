// What is drawn over a plane: cross-hair, scale bar, letters of orientation.
import { letters, PLANE, roundLength, SPACE, spacing } from "./geometry.js";
import { imageOf, store } from "./state.js";
import { upward, viewOf } from "./viewport.js";

const BAR = 0.3; // of the width of the plane, at most

function text(ctx, words, x, y, align) {
    ctx.textAlign = align;
    ctx.lineWidth = 3;
    ctx.strokeStyle = "rgb(0 0 0 / 75%)";
    ctx.fillStyle = "#fff";
    ctx.strokeText(words, x, y);
    ctx.fillText(words, x, y);
}

function crosshair(ctx, view) {
    const { along, down } = PLANE[view.axis],
        { pixels, centre, position } = viewOf(view.image);
    const x = (position[along] + 0.5 - centre[along]) * pixels[along] + view.width / 2;
    const y = (position[down] + 0.5 - centre[down]) * pixels[down] * upward(view.axis) + view.height / 2;
    ctx.strokeStyle = "rgb(255 214 10 / 70%)";
    ctx.lineWidth = 1;
    ctx.beginPath();
    const gap = 7;
    for (const [x0, y0, x1, y1] of [
        [0, y, x - gap, y],
        [x + gap, y, view.width, y],
        [x, 0, x, y - gap],
        [x, y + gap, x, view.height],
    ]) {
        ctx.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
        ctx.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
    }
    ctx.stroke();
}

/* A bar of a round length, in the unit of the image or in voxels. */
function scaleBar(ctx, view) {
    const { along } = PLANE[view.axis],
        { pixels } = viewOf(view.image),
        step = spacing(view.image)?.[along] ?? null;
    const perUnit = pixels[along] / (step ?? 1);
    const length = roundLength((view.width * BAR) / perUnit),
        wide = length * perUnit;
    if (!isFinite(wide) || wide < 4) return;
    const x = 12,
        y = view.height - 12;
    ctx.fillStyle = "rgb(0 0 0 / 75%)";
    ctx.fillRect(x - 1, y - 5, wide + 2, 6);
    ctx.fillStyle = "#fff";
    ctx.fillRect(x, y - 4, wide, 4);
    text(ctx, `${Number(length.toPrecision(3))} ${step ? (view.image.unit ?? "") : "voxels"}`, x, y - 10, "left");
}

function orientation(ctx, view) {
    const { along, down } = PLANE[view.axis],
        { width, height } = view;
    const across = letters(view.image, along),
        upright = letters(view.image, down);
    if (across) {
        text(ctx, across[0], 8, height / 2, "left");
        text(ctx, across[1], width - 8, height / 2, "right");
    }
    if (upright) {
        const [top, bottom] = upward(view.axis) < 0 ? [upright[1], upright[0]] : upright;
        text(ctx, top, width / 2, 18, "center");
        text(ctx, bottom, width / 2, height - 8, "center");
    }
}

/* Small arrows that name the axes. */
function axes(ctx, view) {
    const { along, down } = PLANE[view.axis],
        turn = upward(view.axis),
        x = view.width - 34,
        y = view.height - (turn < 0 ? 14 : 34);
    if (view.width < 120) return;
    ctx.strokeStyle = "rgb(255 255 255 / 80%)";
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(x, y + 18 * turn);
    ctx.lineTo(x, y);
    ctx.lineTo(x + 18, y);
    ctx.stroke();
    text(ctx, SPACE[along], x + 21, y + 4, "left");
    text(ctx, SPACE[down], x, y + (turn < 0 ? -22 : 28), "center");
}

export function overlay(view) {
    const ctx = view.context,
        { compare, other } = store.values;
    ctx.font = "13px system-ui, sans-serif";
    if (store.get("crosshair")) crosshair(ctx, view);
    scaleBar(ctx, view);
    axes(ctx, view);
    orientation(ctx, view);
    if (compare === "blink") text(ctx, (view.blinked && imageOf(other) ? imageOf(other) : view.image).name, 10, 20, "left");
}
