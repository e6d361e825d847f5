// The lanes' data (see lanes.py): phases of threads, sums over them, which rows are shown, and what the search finds.

let events = null; // about the block; null if there is none
let span = 0; // the whole time, in units
let laneKinds; // Uint8Array by phase: index of events.kinds
let laneBegins, laneStacks, laneWakers; // Uint32Arrays by phase; a stack is an index + 1
let samples = null; // { times, stacks, of: by lane [first, after] }
let stackBegins, stackFrames;
let overview; // Uint32Array: thousandths of threads that run, then of those that are runnable, by part of the time
const lanes = []; // { pid, tid, name, process, group, first, after, end, running, runnable }
const byTid = new Map();
let rowsOfLanes = []; // { lane } or { pid: of a header, … }
const folded = new Set(); // pids of processes that show only their header
let lanesGroup = -1; // index of the group that is shown; -1: all
let showsStill = false; // also threads that isQuiet tells of
let stackHits = null; // Uint8Array by stack, during a search
let nameHits = null; // Uint8Array by lane

const hasLanes = () => events !== null;

function readLanes(buffer) {
    const view = new DataView(buffer);
    const length = view.getUint32(0, true);
    const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const columns = {};
    let at = 4 + length;
    for (const [name, count, type] of about.columns) {
        columns[name] = type === "u8" ? new Uint8Array(buffer, at, count) : unplaned(new Uint8Array(buffer, at, 4 * count), count);
        at += count * (type === "u8" ? 1 : 4);
    }
    span = Math.max(1, Math.ceil((about.end - about.begin) / about.unit));
    laneKinds = columns.kinds;
    laneStacks = columns.stacks;
    laneWakers = columns.wakers;
    stackBegins = columns.stackBegins;
    stackFrames = columns.stackFrames;
    overview = columns.all;
    laneBegins = columns.since;
    makeLanes(about, columns);
    readSamples(columns);
    events = about;
    orderLanes(about);
}

function unplaned(bytes, count) {
    const numbers = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
        numbers[i] = bytes[i] | bytes[count + i] << 8 | bytes[2 * count + i] << 16 | bytes[3 * count + i] << 24;
    }
    return numbers;
}

function makeLanes(about, columns) {
    let first = 0;
    about.threads.forEach(function ([pid, tid, name, process, group], i) {
        const after = first + columns.counts[i];
        const lane = { pid, tid, name, process, group, first, after, end: columns.ends[i], running: 0, runnable: 0 };
        let now = 0;
        for (let phase = first; phase < after; phase++) {
            now += laneBegins[phase];
            laneBegins[phase] = now;
        }
        for (let phase = first; phase < after; phase++) {
            const kind = laneKinds[phase];
            if (kind < 2) {
                lane[kind ? "runnable" : "running"] += phaseEnd(lane, phase) - laneBegins[phase];
            }
        }
        lanes.push(lane);
        byTid.set(tid, lane);
        first = after;
    });
}

function readSamples(columns) {
    const of = lanes.map(() => [0, 0]);
    const order = Array.from(columns.sampleTimes, (_, i) => i);
    order.sort((a, b) => columns.sampleThreads[a] - columns.sampleThreads[b] || columns.sampleTimes[a] - columns.sampleTimes[b]);
    order.forEach(function (sample, place) {
        const range = of[columns.sampleThreads[sample]];
        range[0] = range[1] ? range[0] : place;
        range[1] = place + 1;
    });
    samples = { times: order.map((i) => columns.sampleTimes[i]), stacks: order.map((i) => columns.sampleStacks[i]), of };
}

// Groups in the order of the report, then processes by rank, then those that ran most; main threads first.
function orderLanes(about) {
    const most = new Map();
    for (const lane of lanes) {
        most.set(lane.pid, Math.max(most.get(lane.pid) || 0, lane.running + lane.runnable));
    }
    lanes.forEach((lane, i) => {
        lane.index = i;
    });
    const rank = (lane) => about.ranks[lane.pid] || 0;
    lanes.ordered = lanes.slice().sort((a, b) => a.group - b.group || rank(a) - rank(b) || most.get(b.pid) - most.get(a.pid) || a.pid - b.pid
        || (b.tid === b.pid) - (a.tid === a.pid) || b.running + b.runnable - a.running - a.runnable || a.tid - b.tid);
}

const moved = (lane) => lane.after - lane.first > 2 || lane.running > span / 1000;

// Threads that are not shown at first: of idle processes and of the kernel, unless they are chosen, and those that did
// not move.
function isQuiet(lane) {
    const kind = groupKind(lane.group);
    return !moved(lane) || (lanesGroup < 0 && (kind === "idle" || kind === ""));
}

function chooseRows() {
    rowsOfLanes = [];
    let still = 0;
    let hidden = 0;
    let header = null;
    for (const lane of lanes.ordered) {
        if (lanesGroup >= 0 && lane.group !== lanesGroup) {
            continue;
        }
        if (isQuiet(lane)) {
            still++;
            if (!showsStill) {
                continue;
            }
        }
        if (nameHits && !nameHits[lane.index] && !stackIsHit(lane)) {
            hidden++;
            continue;
        }
        if (!header || header.pid !== lane.pid) {
            header = { pid: lane.pid, process: lane.process, group: lane.group, lanes: [] };
            rowsOfLanes.push(header);
        }
        header.lanes.push(lane);
        if (!folded.has(lane.pid)) {
            rowsOfLanes.push({ lane });
        }
    }
    // A process with one thread needs no row of its own.
    rowsOfLanes = rowsOfLanes.filter((row) => row.lane || row.lanes.length > 1 || folded.has(row.pid));
    const counts = new Map();
    rowsOfLanes.forEach((row) => row.lane && counts.set(row.lane.pid, (counts.get(row.lane.pid) || 0) + 1));
    rowsOfLanes.forEach((row) => {
        row.alone = row.lane && counts.get(row.lane.pid) === 1;
    });
    return { still, hidden };
}

// ---- Phases

const phaseEnd = (lane, phase) => (phase + 1 < lane.after ? laneBegins[phase + 1] : lane.end);

// The phase of a lane at a time, or the one after it if there is none; lane.after behind its end.
function phaseAt(lane, time, from) {
    let low = from === undefined ? lane.first : from;
    let high = lane.after;
    if (time >= lane.end) {
        return lane.after;
    }
    // Doubling steps first: the next one that is asked for is near.
    for (let step = 8; low + step < high; step *= 2) {
        if (laneBegins[low + step] > time) {
            high = low + step;
            break;
        }
        low += step;
    }
    while (high - low > 1) {
        const middle = (low + high) >>> 1;
        if (laneBegins[middle] <= time) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// The level of detail of a lane that has more phases than pixels: for each kind that it has, the time in it up to each
// phase. What a thread did between any two times is then a difference. Made for lanes that are shown, a few are kept.
const sumsOfLanes = new Map();
const MOST_SUMS = 3e7; // numbers that are kept
let sumsKept = 0;

function laneSums(lane) {
    let found = sumsOfLanes.get(lane);
    if (found) {
        return found;
    }
    const present = new Uint8Array(events.kinds.length);
    for (let phase = lane.first; phase < lane.after; phase++) {
        present[laneKinds[phase]] = 1;
    }
    const kinds = events.kinds.map((_, kind) => kind).filter((kind) => present[kind]);
    const number = lane.after - lane.first + 1;
    const sums = kinds.map(() => new Uint32Array(number));
    const place = new Map(kinds.map((kind, i) => [kind, i]));
    const now = new Float64Array(kinds.length);
    for (let i = 0; i < number - 1; i++) {
        const phase = lane.first + i;
        now[place.get(laneKinds[phase])] += phaseEnd(lane, phase) - laneBegins[phase];
        for (let kind = 0; kind < kinds.length; kind++) {
            sums[kind][i + 1] = now[kind];
        }
    }
    if (sumsKept > MOST_SUMS) {
        sumsOfLanes.clear();
        sumsKept = 0;
    }
    sumsKept += number * kinds.length;
    found = { kinds, sums };
    sumsOfLanes.set(lane, found);
    return found;
}

// Times by kind (index of `sums.kinds`) between two times, into `into`. `first` and `last` are the phases there.
function timesBetween(lane, sums, begin, end, first, last, into) {
    for (let kind = 0; kind < sums.kinds.length; kind++) {
        into[kind] = sums.sums[kind][last - lane.first] - sums.sums[kind][first - lane.first];
    }
    const add = (phase, time) => {
        into[sums.kinds.indexOf(laneKinds[phase])] += time;
    };
    add(first, -(Math.max(begin, laneBegins[first]) - laneBegins[first]));
    if (last < lane.after) {
        add(last, Math.max(0, Math.min(end, phaseEnd(lane, last)) - laneBegins[last]));
    }
}

// ---- Search

function searchLanes(expression) {
    stackHits = nameHits = null;
    if (!expression) {
        return;
    }
    const frames = Uint8Array.from(events.frames, (name) => (expression.test(name) ? 1 : 0));
    stackHits = new Uint8Array(stackBegins.length);
    for (let stack = 0; stack + 1 < stackBegins.length; stack++) {
        for (let i = stackBegins[stack]; i < stackBegins[stack + 1]; i++) {
            stackHits[stack + 1] |= frames[stackFrames[i]];
        }
    }
    nameHits = Uint8Array.from(lanes, (lane) => (expression.test(lane.name) || expression.test(lane.process) || expression.test(String(lane.tid)) ? 1 : 0));
    for (const lane of lanes) {
        lane.hit = undefined;
    }
}

function stackIsHit(lane) {
    if (lane.hit === undefined) {
        lane.hit = false;
        for (let phase = lane.first; phase < lane.after && !lane.hit; phase++) {
            lane.hit = stackHits[laneStacks[phase]] === 1;
        }
        const [first, after] = samples.of[lane.index];
        for (let i = first; i < after && !lane.hit; i++) {
            lane.hit = stackHits[samples.stacks[i]] === 1;
        }
    }
    return lane.hit;
}

function framesOf(stack) {
    return stack ? Array.from(stackFrames.subarray(stackBegins[stack - 1], stackBegins[stack]), (i) => events.frames[i]) : [];
}

// The sample nearest to the middle of a phase in which the thread ran: its stack, 0 if there is none.
function sampleIn(lane, phase) {
    const [first, after] = samples.of[lane.index];
    const [begin, end] = [laneBegins[phase], phaseEnd(lane, phase)];
    let best = 0;
    let least = Infinity;
    for (let i = first; i < after && samples.times[i] <= end; i++) {
        const distance = Math.abs(samples.times[i] - (begin + end) / 2);
        if (samples.times[i] >= begin && distance < least) {
            [best, least] = [samples.stacks[i], distance];
        }
    }
    return best;
}
