// Axes, levels and distances of an image. Everything here is in the order z, y, x; an axis that is not there has one voxel.
export const SPACE = ["z", "y", "x"];
/* For the plane across an axis: which of z, y, x is across, down and along. */
export const PLANE = {
    z: { across: 0, down: 1, along: 2 },
    y: { across: 1, down: 0, along: 2 },
    x: { across: 2, down: 0, along: 1 },
};

const onSpace = (image, values, missing) =>
    SPACE.map((axis) => {
        const place = image.axes.indexOf(axis);
        return place < 0 || !values ? missing : values[place];
    });

export const sizes = (image, level = 0) => onSpace(image, image.levels?.[level]?.shape ?? image.shape, 1);
export const factors = (image, level) => onSpace(image, image.levels?.[level]?.factors, 1);
export const isFlat = (image) => sizes(image)[0] <= 1;
export const isEmpty = (image) => sizes(image).some((size) => size === 0);
export const middle = (image) => sizes(image).map((size) => size >> 1);
export const levelCount = (image) => Math.max(1, image.levels?.length ?? 1);

/* Spacing of z, y, x in the image's unit, or null. */
export function spacing(image) {
    return image.spacing ? onSpace(image, image.spacing, null).map((step) => (step > 0 ? step : null)) : null;
}

/* Size of a voxel along z, y, x, where the smallest of y and x is 1: what planes are stretched by. */
export function stretch(image) {
    const step = spacing(image);
    if (!step) return [1, 1, 1];
    const unit = Math.min(...step.filter((value) => value));
    return step.map((value) => (value ?? unit) / unit);
}

/* Axes that are walked through by a slider: all but those of space, and channels. */
export function sliders(image) {
    return image.axes
        .map((name, place) => ({ name, size: image.shape[place] }))
        .filter(({ name, size }) => !SPACE.includes(name) && name !== "c" && size > 1);
}

export const channelCount = (image) => (image.rgb || !image.axes.includes("c") ? 1 : image.shape[image.axes.indexOf("c")]);

/* How many voxels of one image there are to a voxel of the other along z, y, x: by their spacing, where both have one. */
export function ratio(from, to) {
    const a = spacing(from),
        b = spacing(to);
    return SPACE.map((_, k) => (a && b && a[k] && b[k] && from.unit === to.unit ? a[k] / b[k] : 1));
}

/* The coarsest level of which a voxel is not larger than some screen pixels; pixels: of a finest voxel along z, y, x. */
export function levelFor(image, axis, pixels, largest = 1.25) {
    const { down, along } = PLANE[axis];
    for (let level = levelCount(image) - 1; level > 0; level--) {
        const factor = factors(image, level);
        if (factor[down] * pixels[down] <= largest && factor[along] * pixels[along] <= largest) return level;
    }
    return 0;
}

/* A length that a scale bar should have: 1, 2 or 5 times a power of ten, at most this long. */
export function roundLength(most) {
    const power = 10 ** Math.floor(Math.log10(most));
    return [5, 2, 1].find((times) => times * power <= most) * power;
}

const OPPOSITE = { L: "R", R: "L", A: "P", P: "A", S: "I", I: "S" };
/* The letters at the low and at the high end of an axis, or null. */
export function letters(image, place) {
    const letter = image.orientation ? onSpace(image, image.orientation, null)[place] : null;
    return letter && OPPOSITE[letter] ? [OPPOSITE[letter], letter] : null;
}
