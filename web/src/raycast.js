// A ray caster in WebGL2: one texture of 8-bit voxels, a colour table, and three ways to add up what a ray meets. Voxels may also
// have colours of their own: red, green, blue, and the largest of these in the place of the value.
export const MODES = ["maximum", "average", "composite"];
const BLOCK = 8; // voxels along an edge
const LABELS = 3; // voxels are places in the colour table and are not mixed

const VERTEX = `#version 300 es
void main() { // one triangle that covers everything
    vec2 corner = vec2(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0);
    gl_Position = vec4(corner, 0.0, 1.0);
}`;

/* A ray goes from block to block, and passes over blocks in which nothing is bright enough to matter. */
const fragment = (coloured) => `#version 300 es
${coloured ? "#define COLOURED" : ""}
precision highp float;
precision highp sampler3D;
uniform sampler3D voxels, blocks;
uniform sampler2D colours;
uniform vec3 extent, along, right, down; // size of the box; direction of the rays; axes of the screen
uniform vec3 cells;                      // blocks along x, y, z; the last may be part of one
uniform vec2 screen;                     // pixels
uniform float span, stride, opacity, low, scale;
uniform int mode;
out vec4 result;

#ifdef COLOURED
#define VALUE a
vec3 colourAt(vec3 p, float value) { return textureLod(voxels, p, 0.0).rgb; }
#else
#define VALUE r
vec4 colourOf(float value) { return textureLod(colours, vec2((value * 255.0 + 0.5) / 256.0, 0.5), 0.0); }
vec3 colourAt(vec3 p, float value) { return colourOf(value).rgb; }
#endif
float at(vec3 p) { return clamp((textureLod(voxels, p, 0.0).VALUE - low) * scale, 0.0, 1.0); }

void addLight(inout vec4 sum, vec3 p, vec3 light) {
    bool labels = mode == ${LABELS};
    float value = labels ? textureLod(voxels, p, 0.0).VALUE : at(p);
    float covered = labels ? (value > 0.0 ? opacity : 0.0) : opacity * value * value;
    covered = min(1.0, covered * stride * 250.0);
    if (covered < 0.004) return;
    float before = labels ? textureLod(voxels, p + light, 0.0).VALUE : at(p + light);
    float shade = labels ? (before == value ? 0.55 : 1.0) : clamp(0.75 + 2.0 * (value - before), 0.35, 1.3);
    sum += (1.0 - sum.a) * covered * vec4(colourAt(p, value) * shade, 1.0);
}

void main() {
    vec2 place = (gl_FragCoord.xy - 0.5 * screen) / min(screen.x, screen.y) * span;
    vec3 start = right * place.x - down * place.y - along * 4.0, way = along + vec3(1e-6);
    vec3 a = (-0.5 * extent - start) / way, b = (0.5 * extent - start) / way, entries = min(a, b), exits = max(a, b);
    float enter = max(max(entries.x, entries.y), entries.z), leave = min(min(exits.x, exits.y), exits.z);
    if (leave <= enter) { result = vec4(0.0); return; }
    int steps = int(ceil((leave - enter) / stride));
    vec3 p = (start + way * (enter + 0.5 * stride)) / extent + 0.5, by = way * stride / extent, ahead = step(0.0, by);
    vec3 light = normalize(right * -0.5 - down * 0.7 - along * 0.5) * stride * 2.0 / extent;
    float most = mode == ${LABELS} ? 0.0 : low, total = 0.0;
    if (mode == 2) most += sqrt(0.004 / (opacity * stride * 250.0)) / scale; // what covers less is not seen
    vec4 sum = vec4(0.0);
#ifdef COLOURED
    vec3 brightest = vec3(0.0), all = vec3(0.0);
#endif
    for (int i = 0; i < steps && sum.a < 0.98;) {
        vec3 cell = floor(p * cells), far = ((cell + ahead) / cells - p) / by;
        int count = max(1, int(ceil(min(far.x, min(far.y, far.z)))));
        if (texelFetch(blocks, clamp(ivec3(cell), ivec3(0), textureSize(blocks, 0) - 1), 0).r <= most) {
            i += count;
            p += by * float(count);
            continue;
        }
        int end = min(i + count, steps);
#ifdef COLOURED
        if (mode == 0) {
            for (; i < end; i++, p += by) brightest = max(brightest, textureLod(voxels, p, 0.0).rgb);
            most = min(brightest.r, min(brightest.g, brightest.b));
        } else if (mode == 1) for (; i < end; i++, p += by) all += textureLod(voxels, p, 0.0).rgb;
#else
        if (mode == 0) for (; i < end; i++, p += by) most = max(most, textureLod(voxels, p, 0.0).r);
        else if (mode == 1) for (; i < end; i++, p += by) total += at(p);
#endif
        else for (; i < end; i++, p += by) addLight(sum, p, light);
    }
#ifdef COLOURED
    if (mode == 0) result = vec4(brightest, 1.0);
    else if (mode == 1) result = vec4(min(vec3(1.0), all / float(steps) * (1.0 + 9.0 * opacity)), 1.0);
#else
    if (mode == 0) result = colourOf(clamp((most - low) * scale, 0.0, 1.0));
    else if (mode == 1) result = colourOf(min(1.0, total / float(steps) * (1.0 + 9.0 * opacity)));
#endif
    else result = sum;
}`;

/* The brightest voxel of every block and of the voxels around it, which are mixed in at its border. */
export function brightest(voxels, [depth, height, width], step = 1) {
    const counts = [depth, height, width].map((size) => Math.ceil(size / BLOCK));
    const blocks = new Uint8Array(counts[0] * counts[1] * counts[2]);
    const span = (block, size) => [Math.max(0, block * BLOCK - 1), Math.min(size, (block + 1) * BLOCK + 1)];
    let place = 0;
    for (let bz = 0; bz < counts[0]; bz++)
        for (let by = 0; by < counts[1]; by++)
            for (let bx = 0; bx < counts[2]; bx++, place++) {
                const [z0, z1] = span(bz, depth),
                    [y0, y1] = span(by, height),
                    [x0, x1] = span(bx, width);
                let most = 0;
                for (let z = z0; z < z1; z++)
                    for (let y = y0; y < y1; y++)
                        for (let x = x0, i = ((z * height + y) * width + x0 + 1) * step - 1; x < x1; x++, i += step)
                            most = Math.max(most, voxels[i]);
                blocks[place] = most;
            }
    return { blocks, counts };
}

function compile(gl, type, text) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    return shader;
}

export class RayCaster {
    /* Throws where WebGL2 cannot be had. */
    constructor(canvas) {
        this.canvas = canvas;
        const gl = (this.gl = canvas.getContext("webgl2", { antialias: false, depth: false, premultipliedAlpha: true }));
        if (!gl) throw new Error("no WebGL2");
        gl.bindVertexArray(gl.createVertexArray());
        this.programs = {};
        this.shape = null;
        this.use(false);
    }

    /* The program for voxels with or without colours of their own, made when it is first needed. */
    use(coloured) {
        const { gl } = this;
        if (!this.programs[coloured]) {
            const program = gl.createProgram();
            gl.attachShader(program, compile(gl, gl.VERTEX_SHADER, VERTEX));
            gl.attachShader(program, compile(gl, gl.FRAGMENT_SHADER, fragment(coloured)));
            gl.linkProgram(program);
            if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
            this.programs[coloured] = { program, places: new Map() };
        }
        Object.assign(this, this.programs[coloured]);
        gl.useProgram(this.program);
        ["voxels", "colours", "blocks"].forEach((name, unit) => gl.uniform1i(this.place(name), unit));
    }

    get largest() {
        return this.gl.getParameter(this.gl.MAX_3D_TEXTURE_SIZE);
    }

    place(name) {
        if (!this.places.has(name)) this.places.set(name, this.gl.getUniformLocation(this.program, name));
        return this.places.get(name);
    }

    /* A texture of bytes in one of the places for textures, instead of what was there. */
    fill(name, unit, bytes, [depth, height, width], filter) {
        const { gl } = this,
            four = bytes.length === 4 * depth * height * width,
            [kind, order] = four ? [gl.RGBA8, gl.RGBA] : [gl.R8, gl.RED];
        if (this[name]) gl.deleteTexture(this[name]);
        this[name] = gl.createTexture();
        gl.activeTexture(gl.TEXTURE0 + unit);
        gl.bindTexture(gl.TEXTURE_3D, this[name]);
        gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
        gl.texImage3D(gl.TEXTURE_3D, 0, kind, width, height, depth, 0, order, gl.UNSIGNED_BYTE, bytes);
        const sides = [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T, gl.TEXTURE_WRAP_R];
        for (const side of sides) gl.texParameteri(gl.TEXTURE_3D, side, gl.CLAMP_TO_EDGE);
        for (const size of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_3D, size, filter);
    }

    /* voxels: Uint8Array of shape [z, y, x], or [z, y, x, 4] with colours; extent: its size as [x, y, z], the largest 1. False:
       it does not fit. */
    setVoxels(voxels, shape, extent, mixed) {
        const { gl } = this,
            step = Math.round(voxels.length / (shape[0] * shape[1] * shape[2])),
            { blocks, counts } = brightest(voxels, shape, step);
        this.use(step === 4);
        this.fill("texture", 0, voxels, shape, mixed ? gl.LINEAR : gl.NEAREST);
        this.fill("coarse", 2, blocks, counts, gl.NEAREST);
        gl.uniform3fv(this.place("cells"), [shape[2] / BLOCK, shape[1] / BLOCK, shape[0] / BLOCK]);
        Object.assign(this, { shape, extent });
        return gl.getError() === gl.NO_ERROR;
    }

    setColours(words) {
        const { gl } = this;
        this.colours ??= gl.createTexture();
        gl.activeTexture(gl.TEXTURE1);
        gl.bindTexture(gl.TEXTURE_2D, this.colours);
        gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(words.buffer));
        for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, side, gl.CLAMP_TO_EDGE);
        for (const kind of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, kind, gl.NEAREST);
    }

    /* camera: { along, right, down, span }; mode: a name of MODES, or "labels"; quality: 1 is one step per voxel. */
    aim({ camera, mode, opacity, low, high, width, height, quality }) {
        const { gl, extent, shape } = this;
        const voxel = Math.min(...shape.map((size, k) => extent[2 - k] / size)),
            stride = Math.max(voxel, 1 / 1024) / quality;
        gl.viewport(0, 0, width, height);
        for (const [name, value] of Object.entries({ extent, along: camera.along, right: camera.right, down: camera.down }))
            gl.uniform3fv(this.place(name), value);
        gl.uniform2f(this.place("screen"), width, height);
        for (const [name, value] of Object.entries({ span: camera.span, stride, opacity, low, scale: 1 / (high - low || 1) }))
            gl.uniform1f(this.place(name), value);
        gl.uniform1i(this.place("mode"), mode === "labels" ? LABELS : MODES.indexOf(mode));
    }

    /* Waits until everything that was asked for is drawn. */
    finish() {
        this.gl.readPixels(0, 0, 1, 1, this.gl.RGBA, this.gl.UNSIGNED_BYTE, new Uint8Array(4));
    }

    resize({ width, height }) {
        if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    }

    /* A picture at once. */
    draw(settings) {
        this.resize(settings);
        if (!this.shape) return;
        this.aim(settings);
        this.gl.drawArrays(this.gl.TRIANGLES, 0, 3);
        this.finish();
    }

    /* A picture in strips beside the canvas, which shows the one before until show is called. */
    begin({ width, height }) {
        const { gl } = this;
        this.beside ??= { frame: gl.createFramebuffer(), buffer: gl.createRenderbuffer() };
        gl.bindRenderbuffer(gl.RENDERBUFFER, this.beside.buffer);
        gl.renderbufferStorage(gl.RENDERBUFFER, gl.RGBA8, width, height);
        gl.bindFramebuffer(gl.FRAMEBUFFER, this.beside.frame);
        gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.RENDERBUFFER, this.beside.buffer);
        gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    }

    strip(settings, from, to) {
        const { gl } = this;
        gl.bindFramebuffer(gl.FRAMEBUFFER, this.beside.frame);
        this.aim(settings);
        gl.enable(gl.SCISSOR_TEST);
        gl.scissor(0, from, settings.width, to - from);
        gl.drawArrays(gl.TRIANGLES, 0, 3);
        gl.disable(gl.SCISSOR_TEST);
        this.finish();
        gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    }

    show({ width, height }) {
        const { gl } = this;
        this.resize({ width, height });
        gl.bindFramebuffer(gl.READ_FRAMEBUFFER, this.beside.frame);
        gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.COLOR_BUFFER_BIT, gl.NEAREST);
        gl.bindFramebuffer(gl.READ_FRAMEBUFFER, null);
    }

    end() {
        for (const texture of [this.texture, this.coarse]) this.gl.deleteTexture(texture);
        this.gl.getExtension("WEBGL_lose_context")?.loseContext();
    }
}
