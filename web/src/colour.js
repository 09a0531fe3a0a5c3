// Colour maps, colours of channels, colours of labels. A colour in memory is the 32-bit word of an ImageData: 0xAABBGGRR.
const ANCHORS = {
    grey: "000000 ffffff",
    viridis: "440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725",
    inferno: "000004 210c4a 57106e 8a226a bc3754 e45a31 f98e09 f9cb35 fcffa4",
    magma: "000004 1d1147 51127c 832681 b73779 e75263 fc8961 fec488 fcfdbf",
    cyclic: "e2d9e2 9ebbc9 6785be 5e43a5 2f1436 741e4f b0554c cda488 e2d9e2",
    difference: "2166ac 67a9cf f7f7f7 ef8a62 b2182b",
};
export const COLOUR_MAPS = Object.keys(ANCHORS);
/* A colour for each number, as for labels. */
export const OBJECTS = "objects";
/* The maps that an image can have: numbers of objects are whole. */
export const mapsOf = ({ dtype, rgb }) => (/int/.test(dtype) && !rgb ? [...COLOUR_MAPS, OBJECTS] : COLOUR_MAPS);

export const parts = (hex) => [0, 2, 4].map((at) => parseInt(hex.replace("#", "").slice(at, at + 2), 16) || 0);
const word = (r, g, b) => (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;

const made = new Map();
/* 256 colours of a map as words. */
export function colourMap(name, invert = false) {
    const key = name + invert;
    if (made.has(key)) return made.get(key);
    const anchors = (ANCHORS[name] ?? ANCHORS.grey).split(" ").map(parts);
    const table = new Uint32Array(256);
    for (let i = 0; i < 256; i++) {
        const at = ((invert ? 255 - i : i) / 255) * (anchors.length - 1);
        const low = Math.min(Math.floor(at), anchors.length - 2);
        table[i] = word(
            ...[0, 1, 2].map((k) => Math.round(anchors[low][k] + (at - low) * (anchors[low + 1][k] - anchors[low][k]))),
        );
    }
    made.set(key, table);
    return table;
}

/* 255 colours that neighbours can be told apart by; the first is not used, because 0 is no label. */
export const LABEL_COLOURS = (() => {
    const table = new Uint32Array(256);
    for (let i = 1; i < 256; i++) {
        const hue = (i * 0.61803398875) % 1,
            value = 0.75 + 0.25 * ((i * 0.37) % 1),
            strength = 0.55 + 0.4 * ((i * 0.71) % 1);
        const shade = (n) => {
            const k = (n + hue * 6) % 6;
            return Math.round(255 * value * (1 - strength * Math.max(0, Math.min(k, 4 - k, 1))));
        };
        table[i] = word(shade(5), shade(3), shade(1));
    }
    return table;
})();

/* Always the same colour for the same label: its place in a table of 255. */
export const labelIndex = (label) => (label ? 1 + ((Math.imul(label, 0x9e3779b1) >>> 8) % 255) : 0);

export const cssColour = (colour) => `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;

const CHANNEL_COLOURS = ["#ff00ff", "#00ff00", "#00ffff", "#ff0000", "#ffff00", "#4080ff"];
export function channelColour(image, channel) {
    return image.channels?.[channel]?.colour ?? CHANNEL_COLOURS[channel % CHANNEL_COLOURS.length];
}
