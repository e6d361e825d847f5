// The frames of the graph, read back from the document, and their values.
// The svg_*.js are one script, in the order tree, draw, search, page, after values.js; svg.py puts them into one function.

const SVG = "http://www.w3.org/2000/svg";
const XHTML = "http://www.w3.org/1999/xhtml";
const svg = document.documentElement;
const rects = Array.from(document.querySelectorAll("#frames rect"));

const paper = document.getElementById("paper");
const page = document.getElementById("page");
const framesGroup = document.getElementById("frames");
const labelsGroup = document.getElementById("labels");
const PAD = Number(svg.dataset.pad);
const INVERTED = svg.dataset.inverted === "1";
const NANOSECONDS = Number(svg.dataset.ns); // in one unit; 0 when the values are no times
const UNIT = svg.dataset.unit;
const BASE = Number(svg.dataset.base); // from the top of a box to the base line of its label
const ROW = rects.length ? Number(rects[0].getAttribute("height")) + 1 : 0;
const DRAWN = svg.dataset.drawn || ""; // of a differential graph: "after" or "before"
const HEIGHT = Number(svg.getAttribute("height"));
const MIN_WIDTH = 0.1;
const GAP = 1;
const LABEL_PAD = 4;
const NARROW = 820;
const BAR_ROW = 42;

// ---- The tree, in pre-order: frame i has the descendants i + 1 … end[i] - 1.

const count = rects.length;
const names = new Array(count);
const amounts = new Array(count); // the value, for people
const origins = new Array(count); // kind and module
const tops = new Float64Array(count);
const depth = new Int32Array(count);
const start = new Float64Array(count);
const total = new Float64Array(count);
const own = new Float64Array(count);
const times = new Float64Array(count).fill(-1);
const delta = new Float64Array(count); // after minus before
const ownDelta = new Float64Array(count);
const parent = new Int32Array(count).fill(-1);
const end = new Int32Array(count);
const indexOf = new Map();

(function readTree() {
    const path = [];
    for (let i = 0; i < count; i++) {
        const rect = rects[i];
        const lines = rect.firstChild.textContent.split("\n");
        names[i] = lines[0];
        amounts[i] = lines[1].split(" · ")[0];
        origins[i] = lines[2];
        const numbers = rect.getAttribute("data-v").split(" ").map(Number);
        depth[i] = numbers[0];
        start[i] = numbers[1];
        total[i] = numbers[2];
        own[i] = numbers[3];
        if (DRAWN) {
            delta[i] = numbers[4];
            ownDelta[i] = numbers[5];
        } else if (numbers.length > 4) {
            times[i] = numbers[4];
        }
        tops[i] = Number(rect.getAttribute("y"));
        while (path.length > depth[i]) {
            end[path.pop()] = i;
        }
        parent[i] = path.length ? path[path.length - 1] : -1;
        path.push(i);
        indexOf.set(rect, i);
    }
    while (path.length) {
        end[path.pop()] = count;
    }
})();

// ---- State

let zoomed = 0;
let pattern = "";
let matchCase = false;
let focused = 0;
const hit = new Uint8Array(count);
const shown = new Uint8Array(count).fill(1);
const left = new Float64Array(count);
const width = new Float64Array(count);
let pageWidth = 0;
let shift = 0; // px by which a narrow window moves the page down, to make room for the bar

// ---- Values

function human(value) {
    return amount(value, UNIT, NANOSECONDS);
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
