// The frames of the graph, read back from the document, and their values.
// writer.py puts base/values.js and the scripts of this folder into one function: tree, axis, draw, search, page.

const SVG = "http://www.w3.org/2000/svg";
const XHTML = "http://www.w3.org/1999/xhtml";
const svg = document.documentElement;

const paper = document.getElementById("paper");
const page = document.getElementById("page");
const framesGroup = document.getElementById("frames");
const labelsGroup = document.getElementById("labels");
const PAD = Number(svg.dataset.pad);
const INVERTED = svg.dataset.inverted === "1";
const CHART = Number(svg.dataset.chart || 0); // of a flame chart: where its frames begin, in px; their x is a time
const NANOSECONDS = Number(svg.dataset.ns); // in one unit; 0 if the values are not times
const UNIT = svg.dataset.unit;
const THINGS = svg.dataset.things || ""; // what is counted, if the unit is only a count
const COUNTED = svg.dataset.counted || "times"; // what the events of a frame are
const FACTOR = Number(svg.dataset.factor || 1); // values are shown times this
const BASE = Number(svg.dataset.base); // from the top of a box to the base line of its label
const ROW = Number(framesGroup.firstElementChild.getAttribute("height")) + 1;
const DRAWN = svg.dataset.drawn || ""; // of a differential graph: "after" or "before"
const HEIGHT = Number(svg.getAttribute("height"));
const MIN_WIDTH = 0.1;
const GAP = 1;
const LABEL_PAD = 4;
const NARROW = 820;
const BAR_ROW = 42;

// ---- The tree, in pre-order: frame i has the descendants i + 1 … end[i] - 1. A chart has several roots.

const rects = []; // undefined for a frame that was never wide enough to be seen
const names = [];
const origins = []; // kind and module
const classes = []; // colour
const tops = [];
const depth = [];
const start = [];
const total = [];
const own = [];
const times = [];
const delta = []; // after minus before
const ownDelta = [];
const parent = [];
const end = [];
const indexOf = new Map();

(function readTree() {
    const path = [];
    const known = document.getElementById("names");
    const texts = known ? known.textContent.split("\n").map((line) => line.split("\t")) : [];

    function add(rect, css, numbers, name, origin) {
        const i = names.length;
        while (path.length > numbers[0]) {
            end[path.pop()] = i;
        }
        rects.push(rect);
        names.push(name);
        origins.push(origin);
        classes.push(css);
        depth.push(numbers[0]);
        start.push(numbers[1]);
        total.push(numbers[2]);
        own.push(numbers[3]);
        times.push(DRAWN || numbers.length < 5 ? -1 : numbers[4]);
        delta.push(DRAWN ? numbers[4] : 0);
        ownDelta.push(DRAWN ? numbers[5] : 0);
        parent.push(path.length ? path[path.length - 1] : -1);
        tops.push(rect ? Number(rect.getAttribute("y")) : tops[parent[i]] + (INVERTED ? ROW : -ROW));
        end.push(0);
        path.push(i);
    }

    function addBox(rect) {
        const [name, , origin] = rect.firstChild.textContent.split("\n");
        indexOf.set(rect, names.length);
        add(rect, rect.getAttribute("class"), rect.getAttribute("data-v").split(" ").map(Number), name, origin);
    }

    function addLines(text) {
        for (const line of text.split("\n")) {
            if (line) {
                const fields = line.split(" ");
                const [name, origin] = texts[Number(fields.pop())];
                add(undefined, fields[0], fields.slice(1).map(Number), name, origin);
            }
        }
    }

    let text = ""; // a browser may cut a long text into several nodes
    for (let node = framesGroup.firstChild; node; node = node.nextSibling) {
        if (node.nodeType === Node.TEXT_NODE) {
            text += node.data;
        } else {
            addLines(text);
            text = "";
            addBox(node);
        }
    }
    addLines(text);
    while (path.length) {
        end[path.pop()] = names.length;
    }
})();

const count = names.length;
const ROOTS = depth.filter((level) => level === 0).length;

// ---- State

let zoomed = 0;
let pattern = "";
let matchCase = false;
let focused = 0;
const hit = new Uint8Array(count);
const faded = new Uint8Array(count); // part of it is outside the zoomed frame
const shown = Uint8Array.from(rects, (rect) => rect ? 1 : 0);
const isExtra = Uint8Array.from(shown, (there) => 1 - there); // in the document only while it is shown
const left = new Float64Array(count);
const width = new Float64Array(count);
let pageWidth = 0;
let shift = 0; // px by which a narrow window moves the page down, to make room for the bar

function makeRect(i) {
    const rect = document.createElementNS(SVG, "rect");
    rect.setAttribute("class", classes[i] + (hit[i] ? " hit" : "") + (faded[i] ? " up" : ""));
    rect.setAttribute("y", tops[i]);
    rect.setAttribute("height", ROW - 1);
    indexOf.set(rect, i);
    return rect;
}

function mark(i, flags, className, on) {
    if (flags[i] !== on) {
        flags[i] = on;
        if (rects[i]) {
            rects[i].classList.toggle(className, on === 1);
        }
    }
}

// ---- Values

function human(value) {
    return amount(value * FACTOR, UNIT, NANOSECONDS);
}

// With the things counted: "15 samples".
function told(value) {
    return THINGS ? counted(value, THINGS) : human(value);
}

function change(after, before) {
    const sign = after > before ? "+" : "-";
    const difference = Math.abs(after - before);
    if (!difference) {
        return "no change";
    }
    const part = before <= 0 ? "new" : after <= 0 ? "gone" : share(difference, before);
    return sign + human(difference) + " (" + (/^\d/.test(part) ? sign : "") + part + ")";
}
