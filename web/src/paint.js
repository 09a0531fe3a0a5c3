// Turns voxels into the pixels of a picture: by a colour map, by colours of channels, as RGB, or as labels.
import { colourMap, labelIndex, LABEL_COLOURS, OBJECTS, parts } from "./colour.js";

/* A colour for each of 65536 values of a small integer type; values below zero are found at their two's complement. */
function tableOfColours(data, low, scale, colours) {
    const wide = data.BYTES_PER_ELEMENT === 2,
        signed = data instanceof Int8Array || data instanceof Int16Array;
    const count = wide ? 65536 : 256,
        table = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
        const value = signed && i >= count / 2 ? i - count : i;
        table[i] = colours[Math.min(255, Math.max(0, Math.round((value - low) * scale)))];
    }
    return { table, mask: count - 1 };
}

/* Values by a colour map; what is not a number stays transparent. */
export function paintMap(data, { low, high, map, invert }, pixels) {
    if (map === OBJECTS) {
        for (let i = 0; i < data.length; i++) pixels[i] = data[i] ? LABEL_COLOURS[labelIndex(data[i])] : 0xff000000;
        return;
    }
    const colours = colourMap(map, invert),
        scale = 255 / (high - low || 1);
    if (data.BYTES_PER_ELEMENT <= 2 && data.length > 4096) {
        const { table, mask } = tableOfColours(data, low, scale, colours);
        for (let i = 0; i < data.length; i++) pixels[i] = table[data[i] & mask];
        return;
    }
    for (let i = 0; i < data.length; i++) {
        const at = (data[i] - low) * scale;
        pixels[i] = at !== at ? 0 : colours[at < 0 ? 0 : at > 255 ? 255 : (at + 0.5) | 0];
    }
}

/* The sum of channels, each in its colour. */
export function paintChannels(planes, settings, pixels) {
    const sum = new Float32Array(pixels.length * 3);
    planes.forEach(({ data }, k) => {
        const { low, high, colour } = settings[k],
            scale = 1 / (high - low || 1),
            [r, g, b] = parts(colour);
        for (let i = 0, j = 0; i < data.length; i++, j += 3) {
            let share = (data[i] - low) * scale;
            share = share > 1 ? 1 : share > 0 ? share : 0;
            sum[j] += share * r;
            sum[j + 1] += share * g;
            sum[j + 2] += share * b;
        }
    });
    for (let i = 0, j = 0; i < pixels.length; i++, j += 3)
        pixels[i] =
            (0xff000000 | (Math.min(255, sum[j + 2]) << 16) | (Math.min(255, sum[j + 1]) << 8) | Math.min(255, sum[j])) >>> 0;
}

export function paintRgb(data, { low, high, invert }, pixels) {
    const scale = 255 / (high - low || 1),
        flip = invert ? 0x00ffffff : 0;
    const shade = (value) => Math.min(255, Math.max(0, Math.round((value - low) * scale)));
    for (let i = 0, j = 0; i < pixels.length; i++, j += 3)
        pixels[i] = ((0xff000000 | (shade(data[j + 2]) << 16) | (shade(data[j + 1]) << 8) | shade(data[j])) ^ flip) >>> 0;
}

/* The difference of two planes of one shape, white where they are equal. */
export function paintDifference(a, b, reach, pixels) {
    const colours = colourMap("difference"),
        scale = 127.5 / (reach || 1);
    for (let i = 0; i < pixels.length; i++) {
        const at = 127.5 + (a[i] - b[i]) * scale;
        pixels[i] = at !== at ? 0 : colours[at < 0 ? 0 : at > 255 ? 255 : (at + 0.5) | 0];
    }
}

/* The colour of a label as a function. values: label → place in a colour map, or null. lit: the labels that count, or null. */
export function labelColours({ values, lit, map }) {
    const colours = values ? colourMap(map) : LABEL_COLOURS,
        dim = 0x30000000;
    return (label) => {
        let colour = 0xff808080;
        if (!values) colour = colours[labelIndex(label)];
        else if (values.has(label)) colour = colours[values.get(label)];
        return lit && !lit.has(label) ? ((colour & 0xffffff) | dim) >>> 0 : colour;
    };
}

/* Labels filled, or outlined where a neighbour has another one; the selected one has a white edge. 0 is transparent. */
export function paintLabels(data, [height, width], { colourOf, outline, selected }, pixels) {
    let last = -1,
        colour = 0;
    const known = new Map();
    for (let y = 0, i = 0; y < height; y++)
        for (let x = 0; x < width; x++, i++) {
            const label = data[i];
            if (!label) {
                pixels[i] = 0;
                continue;
            }
            if (label !== last) {
                last = label;
                colour = known.get(label);
                if (colour === undefined) known.set(label, (colour = colourOf(label)));
            }
            pixels[i] = colour;
            if (!outline && label !== selected) continue;
            const edge =
                (x > 0 && data[i - 1] !== label) ||
                (x + 1 < width && data[i + 1] !== label) ||
                (y > 0 && data[i - width] !== label) ||
                (y + 1 < height && data[i + width] !== label);
            if (label === selected && edge) pixels[i] = 0xffffffff;
            else if (outline && !edge) pixels[i] = 0;
        }
}

/* A picture of voxels as an element that can be drawn. paint fills its pixels. */
export function picture([height, width], paint) {
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const image = new ImageData(width, height);
    paint(new Uint32Array(image.data.buffer));
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
}
