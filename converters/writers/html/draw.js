// The graph on its canvas: only what the window shows is drawn, and nothing that is narrower than half a pixel.

const ROW = 18;
const GAP = 1;
const LABEL_PAD = 4;
const MIN_WIDTH = 0.5;
const FONT = '12px "DejaVu Sans Mono", Menlo, Consolas, "Liberation Mono", monospace';
const MAX_PRINTED = 12000; // px; browsers refuse canvases that are much higher

const graph = document.getElementById("graph");
const space = document.getElementById("space");
const window_ = document.getElementById("window");
const canvas = document.getElementById("canvas");
const pen = canvas.getContext("2d", { alpha: false });

let zoomed = 0;
let inverted = false;
let hits = null; // Uint8Array by function during a search
let width = 0;
let height = 0;
let printing = false;
let advance = 0;
let colors = null;

// ---- Colours, from the style sheet, so that they follow its media queries

function readColors() {
    const probe = document.createElement("i");
    document.body.appendChild(probe);
    const style = getComputedStyle(probe);
    const fill = function (name) {
        probe.className = name;
        return style.fill;
    };
    colors = { root: fill(about.root), hit: fill("hit"), paper: fill("paper"), text: fill("label"), hitText: fill("hitlabel") };
    colors.classes = about.classes.map(fill);
    colors.deltas = about.differential ? STEPS.map((_, step) => fill("x" + step)) : [];
    probe.remove();
}

// ---- Places

function top_(i) {
    return (inverted ? depth[i] : levels - 1 - depth[i]) * ROW;
}

function isAbove(i) {
    return i <= zoomed && end[i] > zoomed;
}

// Left edge and width of a node in px; a width of 0 if it is not shown.
function extent(i) {
    if (isAbove(i)) {
        return [0, width];
    }
    if (i < zoomed || i >= end[zoomed]) {
        return [0, 0];
    }
    const scale = width / total[zoomed];
    return [(start[i] - start[zoomed]) * scale, total[i] * scale];
}

function nodeUnder(x, y) {
    const row = Math.floor(y / ROW);
    const level = inverted ? row : levels - 1 - row;
    if (level < depth[zoomed]) {
        let i = zoomed;
        while (i >= 0 && depth[i] > level) {
            i = parent[i];
        }
        return i;
    }
    const i = nodeAt(level, start[zoomed] + (x / width) * total[zoomed]);
    return i >= zoomed && i < end[zoomed] && extent(i)[1] >= MIN_WIDTH ? i : -1;
}

function fitCanvas() {
    space.style.height = levels * ROW + "px";
    graph.style.minHeight = Math.min(levels * ROW, 6 * ROW) + "px";
    width = Math.max(graph.clientWidth, 200);
    height = printing ? Math.min(levels * ROW, MAX_PRINTED) : graph.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    for (const [key, size] of [["width", width], ["height", height]]) {
        const pixels = Math.max(1, Math.round(size * ratio));
        if (canvas[key] !== pixels) {
            canvas[key] = pixels;
        }
        canvas.style[key] = size + "px";
        window_.style[key] = size + "px";
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = FONT;
    pen.textBaseline = "middle";
    const wide = pen.measureText("WWWWWWWWWW").width / 10;
    const thin = pen.measureText("iiiiiiiiii").width / 10;
    advance = Math.abs(wide - thin) < 0.05 ? wide : 0; // 0: not monospaced, every label is measured
}

// ---- Drawing

function draw() {
    pen.globalAlpha = 1;
    pen.fillStyle = colors.paper;
    pen.fillRect(0, 0, width, height);
    if (!total || !(total[zoomed] > 0)) {
        return;
    }
    const scroll = printing ? (inverted ? 0 : Math.max(0, levels * ROW - height)) : graph.scrollTop;
    const first = Math.floor(scroll / ROW);
    const last = Math.floor((scroll + height) / ROW);
    const [lowest, highest] = inverted ? [first, last] : [levels - 1 - last, levels - 1 - first];
    const labels = [];
    for (let i = parent[zoomed]; i >= 0; i = parent[i]) {
        if (depth[i] >= lowest && depth[i] <= highest) {
            box(i, 0, top_(i) - scroll, width, 0.4, labels);
        }
    }
    const scale = width / total[zoomed];
    const origin = start[zoomed];
    const stop = end[zoomed];
    const ratio = window.devicePixelRatio || 1;
    const inked = new Float64Array(levels).fill(-1); // per level, the last device pixel that a narrow box has inked
    let i = zoomed;
    while (i < stop) {
        const w = total[i] * scale;
        const level = depth[i];
        if (w < MIN_WIDTH || level > highest) {
            i = end[i];
            continue;
        }
        if (level >= lowest) {
            const x = (start[i] - origin) * scale;
            const pixel = Math.floor(x * ratio);
            if (w * ratio >= 2 || pixel !== inked[level]) {
                inked[level] = pixel;
                box(i, x, top_(i) - scroll, w, 1, labels);
            }
        }
        i++;
    }
    drawLabels(labels);
}

function colorOf(i) {
    if (about.differential) {
        return colors.deltas[deltaStep(sums[0][1][i], sums[1][1][i])];
    }
    if (i === 0) {
        return colors.root;
    }
    return colors.classes[about.byNode ? nodeClass[i - 1] : about.css[func[i]]];
}

function box(i, x, y, w, alpha, labels) {
    const found = hits !== null && i > 0 && hits[func[i]] === 1;
    pen.globalAlpha = found || hits === null ? alpha : alpha * 0.45;
    pen.fillStyle = found ? colors.hit : colorOf(i);
    // The gap between neighbours is taken from the box, unless the box is too narrow for that.
    pen.fillRect(x, y, w > 4 * GAP ? w - GAP : w, ROW - 1);
    if (w > 2 * LABEL_PAD + 14) {
        labels.push([i, x, y, w, found, alpha]);
    }
}

function drawLabels(labels) {
    for (const [i, x, y, w, found, alpha] of labels) {
        const text = fitLabel(nameOf(i), w - GAP - 2 * LABEL_PAD);
        if (text) {
            pen.globalAlpha = alpha < 1 ? 0.65 : 1;
            pen.fillStyle = found ? colors.hitText : colors.text;
            pen.fillText(text, x + LABEL_PAD, y + ROW / 2);
        }
    }
}

// ---- Text that fits

const ASCII = /^[\x20-\x7e]*$/;

function fitLabel(text, room) {
    if (advance && ASCII.test(text)) {
        const most = Math.floor(room / advance);
        return text.length <= most ? text : most >= 4 ? shortened(Array.from(text), most - 2, text) : "";
    }
    if (pen.measureText(text).width <= room) {
        return text;
    }
    const chars = Array.from(PATH.test(text) ? text.slice(-1000) : text.slice(0, 1000));
    let low = 0;
    let high = chars.length;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (pen.measureText(shortened(chars, middle, text)).width <= room) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low >= 2 ? shortened(chars, low, text) : "";
}
