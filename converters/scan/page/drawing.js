// The lanes on their canvas: only rows and times that are shown are drawn.

const LANE = 18;
const BAR = 14;
const GUTTER_MOST = 230;
const AXIS = 20;
const DIM = 0.25;
const FAINT = 0;
const PLAIN = 1;
const MARKED = 2;
const MARK = 2;
const LEAST = 2; // px of what is there at all

const lanesView = byId("lanes-view");
const lanesSpace = byId("lanes-space");
const lanesWindow = byId("lanes-window");
const lanesCanvas = byId("lanes-canvas");
const lanesPen = lanesCanvas.getContext("2d", { alpha: false });
const allCanvas = byId("lanes-all");
const allPen = allCanvas.getContext("2d", { alpha: false });

let from = 0; // what is shown, in units
let to = 1;
let lanesWidth = 0;
let lanesHeight = 0;
let gutter = GUTTER_MOST;
let chosenLane = null;
let chosenPhase = -1;
let inks = null;
const parts = new Float64Array(32);

function readInks() {
    const kinds = events.kinds.map((kind) => fillOf("k-" + (kind === "not known" ? "unknown" : kind)));
    inks = { kinds, paper: fillOf("paper"), ink: fillOf("ink"), faint: fillOf("faintink"), grid: fillOf("grid"), accent: fillOf("accent"), header: fillOf("header"), hit: fillOf("hit") };
}

function sizeOf(canvas, pen, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const pixels = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) {
        [canvas.width, canvas.height] = pixels;
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.textBaseline = "middle";
    pen.font = '12px system-ui, "DejaVu Sans", "Segoe UI", Helvetica, Arial, sans-serif';
}

function fitLanes() {
    lanesSpace.style.height = AXIS + Math.max(rowsOfLanes.length, 1) * LANE + "px";
    lanesWidth = Math.max(lanesView.clientWidth, 300);
    lanesHeight = printing ? Math.min(AXIS + rowsOfLanes.length * LANE, MAX_PRINTED) : lanesView.clientHeight;
    gutter = Math.min(GUTTER_MOST, lanesWidth * 0.3);
    for (const node of [lanesCanvas, lanesWindow]) {
        node.style.width = lanesWidth + "px";
        node.style.height = lanesHeight + "px";
    }
    sizeOf(lanesCanvas, lanesPen, lanesWidth, lanesHeight);
    sizeOf(allCanvas, allPen, allCanvas.clientWidth, allCanvas.clientHeight);
}

const atTime = (x) => from + (x - gutter) / (lanesWidth - gutter) * (to - from);
const atPlace = (time) => gutter + (time - from) / (to - from) * (lanesWidth - gutter);
const rowUnder = (y) => (y < AXIS ? -1 : Math.floor((y - AXIS + lanesView.scrollTop) / LANE));
const topOf = (row) => AXIS + row * LANE - (printing ? 0 : lanesView.scrollTop);

function drawLanes() {
    lanesPen.globalAlpha = 1;
    lanesPen.fillStyle = inks.paper;
    lanesPen.fillRect(0, 0, lanesWidth, lanesHeight);
    grid();
    const first = printing ? 0 : Math.floor(lanesView.scrollTop / LANE);
    const last = Math.min(rowsOfLanes.length - 1, first + Math.ceil(lanesHeight / LANE));
    for (let row = first; row <= last; row++) {
        if (rowsOfLanes[row].lane) {
            drawLane(rowsOfLanes[row].lane, topOf(row), rowsOfLanes[row].alone);
        } else {
            drawHeader(rowsOfLanes[row], topOf(row));
        }
    }
    axis();
}

// ---- Time

function steps() {
    const room = (lanesWidth - gutter) / 110;
    const rough = (to - from) * events.unit / Math.max(room, 1);
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].find((each) => each * power >= rough) * power;
    const found = [];
    for (let time = Math.ceil(from * events.unit / step) * step; time <= to * events.unit; time += step) {
        found.push([time, atPlace(time / events.unit)]);
    }
    return { step, found };
}

function grid() {
    lanesPen.fillStyle = inks.grid;
    for (const [, x] of steps().found) {
        lanesPen.fillRect(Math.round(x), AXIS, 1, lanesHeight);
    }
}

function axis() {
    lanesPen.globalAlpha = 1;
    lanesPen.fillStyle = inks.paper;
    lanesPen.fillRect(0, 0, lanesWidth, AXIS);
    lanesPen.fillStyle = inks.faint;
    lanesPen.fillText(duration(Math.round((to - from) * events.unit)) + " shown", 6, AXIS / 2);
    const { step, found } = steps();
    for (const [time, x] of found) {
        lanesPen.fillStyle = inks.grid;
        lanesPen.fillRect(Math.round(x), AXIS - 4, 1, 4);
        lanesPen.fillStyle = inks.faint;
        lanesPen.fillText(timeText(time, step), x + 3, AXIS / 2);
    }
    lanesPen.fillStyle = inks.grid;
    lanesPen.fillRect(0, AXIS - 1, lanesWidth, 1);
}

// A time since the beginning, with as many digits as the step needs.
function timeText(ns, step) {
    const [unit, size] = step >= 1e8 ? ["s", 1e9] : step >= 1e5 ? ["ms", 1e6] : ["µs", 1e3];
    const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
    return grouped((ns / size).toFixed(Math.min(digits, 3))) + " " + unit;
}

// ---- Rows

function drawHeader(header, y) {
    lanesPen.globalAlpha = 1;
    lanesPen.fillStyle = inks.header;
    lanesPen.fillRect(0, y, lanesWidth, LANE);
    if (header === chosenLane) {
        lanesPen.fillStyle = inks.accent;
        lanesPen.fillRect(0, y, 3, LANE);
    }
    kindMark(header.group, y);
    lanesPen.fillStyle = inks.ink;
    lanesPen.font = BOLD + plain();
    lanesPen.fillText(fitted(headerText(header), lanesWidth - 32), 20, y + LANE / 2);
    lanesPen.font = plain();
}

// The verdict on the process, as a colour; the header and what is chosen tell it in words.
function kindMark(group, y) {
    const kind = groupKind(group);
    if (kind) {
        lanesPen.fillStyle = fillOf("k-" + kind);
        lanesPen.fillRect(7, y + 5, 8, 8);
    }
}

function headerText(header) {
    const label = groupKind(header.group);
    return (folded.has(header.pid) ? "▸ " : "▾ ") + header.process + " (" + header.pid + ")" + (label ? " · " + label : "")
        + " · " + plural(header.lanes.length, "thread");
}

function fitted(text, room) {
    if (lanesPen.measureText(text).width <= room) {
        return text;
    }
    let [low, high] = [0, text.length];
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (lanesPen.measureText(text.slice(0, middle) + "…").width <= room) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return text.slice(0, low) + "…";
}

const BOLD = "600 ";
const plain = () => lanesPen.font.replace(/^(?:600|bold) /, "");

function drawLane(lane, y, alone) {
    lanesPen.globalAlpha = 1;
    if (lane === chosenLane) {
        lanesPen.fillStyle = inks.header;
        lanesPen.fillRect(0, y, gutter, LANE);
        lanesPen.fillStyle = inks.accent;
        lanesPen.fillRect(0, y, 3, LANE);
    }
    lanesPen.fillStyle = nameHits && nameHits[lane.index] ? inks.hit : inks.ink;
    const indent = alone ? 20 : 32;
    const number = String(lane.tid);
    const room = gutter - indent - 12 - lanesPen.measureText(number).width;
    lanesPen.font = (alone ? BOLD : "") + plain();
    const text = fitted(alone ? lane.process : lane.name, room);
    lanesPen.fillText(text, indent, y + LANE / 2);
    const at = indent + lanesPen.measureText(text).width;
    lanesPen.font = plain();
    if (alone) {
        kindMark(lane.group, y);
    }
    lanesPen.fillStyle = inks.faint;
    lanesPen.fillText(number, at + 4, y + LANE / 2);
    drawPhases(lane, y + (LANE - BAR) / 2);
    if (lane === chosenLane && chosenPhase >= 0) {
        const [begin, end] = [atPlace(laneBegins[chosenPhase]), atPlace(phaseEnd(lane, chosenPhase))];
        lanesPen.globalAlpha = 1;
        lanesPen.strokeStyle = inks.ink;
        lanesPen.lineWidth = 1.5;
        const x = Math.max(begin, gutter);
        lanesPen.strokeRect(x - 0.5, y + 0.5, Math.max(2, Math.min(end, lanesWidth) - x + 1), LANE - 1);
    }
}

// How high a kind's bar is: what runs, and what wants to, stands out; gaps between them are low.
const heightOf = (kind) => (kind === 0 ? BAR : kind === 1 ? BAR : BAR * 0.5);

function drawPhases(lane, y) {
    const scale = (lanesWidth - gutter) / (to - from);
    const stop = Math.min(to, lane.end);
    let now = Math.max(from, laneBegins[lane.first]);
    let phase = phaseAt(lane, now);
    let sums = null;
    while (phase < lane.after && now < stop) {
        const end = Math.min(phaseEnd(lane, phase), stop);
        const x = gutter + (now - from) * scale;
        const width = (end - now) * scale;
        if (width >= 1) {
            bar(laneKinds[phase], x, y, width, isHit(lane, phase));
            now = end;
            phase++;
            continue;
        }
        // Up to the next pixel there may be several phases: their parts of it.
        const edge = Math.floor(x + 0.001) + 1;
        const until = Math.max(Math.min(from + (edge - gutter) / scale, stop), now + 1e-6);
        const next = phaseAt(lane, until, phase);
        if (next === phase) {
            bar(laneKinds[phase], x, y, edge - x, isHit(lane, phase));
        } else {
            sums = sums || laneSums(lane);
            timesBetween(lane, sums, now, until, phase, next, parts);
            mixed(sums, x, y, edge - x, until - now, anyHit(lane, phase, next));
        }
        now = until;
        phase = next;
    }
}

// During a search a phase is marked if its stack has what is searched, faint if not; all is plain in a thread that was
// found by its name.
function isHit(lane, phase) {
    if (!stackHits) {
        return PLAIN;
    }
    const found = stackHits[laneStacks[phase]] === 1 && laneKinds[phase] !== 0;
    return found ? MARKED : nameHits[lane.index] ? PLAIN : FAINT;
}

function anyHit(lane, phase, next) {
    const stop = stackHits ? Math.min(next, phase + 64) : phase + 1;
    let best = FAINT;
    for (let i = phase; i < stop; i++) {
        best = Math.max(best, isHit(lane, i));
    }
    return best;
}

function bar(kind, x, y, width, hit) {
    const height = heightOf(kind);
    lanesPen.globalAlpha = hit === FAINT ? DIM : 1;
    lanesPen.fillStyle = inks.kinds[kind];
    lanesPen.fillRect(x, y + BAR - height, width, height);
    if (hit === MARKED) {
        lanesPen.fillStyle = inks.hit;
        lanesPen.fillRect(x, y + BAR - height - MARK, width, MARK);
    }
}

// A pixel: blocked below, of the kind with most time; on it the parts of running and runnable.
function mixed(sums, x, y, width, whole, hit) {
    let most = -1;
    let running = 0;
    let runnable = 0;
    for (let i = 0; i < sums.kinds.length; i++) {
        if (sums.kinds[i] === 0) {
            running = parts[i];
        } else if (sums.kinds[i] === 1) {
            runnable = parts[i];
        } else if (parts[i] > 0 && (most < 0 || parts[i] > parts[most])) {
            most = i;
        }
    }
    if (most >= 0) {
        bar(sums.kinds[most], x, y, width, hit);
    }
    lanesPen.globalAlpha = hit === FAINT ? DIM : 1;
    const ran = running > 0 ? Math.min(BAR, Math.max(LEAST, BAR * running / whole)) : 0;
    const wanted = runnable > 0 ? Math.min(BAR - ran, Math.max(LEAST, BAR * runnable / whole)) : 0;
    lanesPen.fillStyle = inks.kinds[1];
    lanesPen.fillRect(x, y + BAR - ran - wanted, width, wanted);
    lanesPen.fillStyle = inks.kinds[0];
    lanesPen.fillRect(x, y + BAR - ran, width, ran);
}

// ---- The whole time

function drawAll() {
    const [width, height] = [allCanvas.clientWidth, allCanvas.clientHeight];
    const bins = events.bins;
    allPen.fillStyle = inks.paper;
    allPen.fillRect(0, 0, width, height);
    let most = 1000;
    for (let i = 0; i < bins; i++) {
        most = Math.max(most, overview[i] + overview[bins + i]);
    }
    const place = (i) => gutter + i / bins * (width - gutter);
    for (let i = 0; i < bins; i++) {
        const x = place(i);
        const ran = (height - 4) * overview[i] / most;
        const wanted = (height - 4) * overview[bins + i] / most;
        allPen.fillStyle = inks.kinds[1];
        allPen.fillRect(x, height - ran - wanted, place(i + 1) - x + 0.5, wanted);
        allPen.fillStyle = inks.kinds[0];
        allPen.fillRect(x, height - ran, place(i + 1) - x + 0.5, ran);
    }
    allPen.fillStyle = inks.faint;
    allPen.fillText("Up to " + (most / 1000).toFixed(1) + " threads", 6, 14);
    allPen.fillText("running, runnable", 6, 30);
    const [begin, end] = [from, to].map((time) => gutter + time / span * (width - gutter));
    allPen.strokeStyle = inks.accent;
    allPen.lineWidth = 2;
    allPen.strokeRect(begin + 1, 1, Math.max(end - begin - 2, 2), height - 2);
}
