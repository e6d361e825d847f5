// User interaction: views, search, zoom, pointer and keys; the state in the address; print and dark mode.

// Relative change from which each step of colour applies; see colors/palette.py.
const STEPS = [-0.5, -0.25, -0.1, -0.02, 0, 0.02, 0.1, 0.33, 1];
const MAX_LEGEND = 24;
const VIEWS = ["flame", "icicle", "table"];

const byId = (id) => document.getElementById(id);
const tableBox = byId("table");
const input = byId("search");
const caseButton = byId("case");
const resetButton = byId("reset");
const result = byId("result");
const choice = byId("value");
const mark = byId("mark");
const tip = byId("tip");
const nothing = byId("nothing");

let view = "flame";
let lastGraph = "flame";
let chosen = 0;
let pattern = "";
let matchCase = false;
let focused = 0;
const watchers = []; // called when what is shown, zoomed or searched has changed

function element(name, text, className) {
    const made = document.createElement(name);
    made.textContent = text;
    made.className = className || "";
    return made;
}

function shorten(name) {
    return name.length > 40 ? shortened(Array.from(name), 38, name) : name;
}

// ---- Text around the graph

function subtitle() {
    if (about.subtitle) {
        byId("about").textContent = about.subtitle;
        return;
    }
    const parts = [about.host];
    if (about.start) {
        parts.push(new Date(about.start).toISOString().slice(0, 19).replace("T", " ") + " UTC");
    }
    if (about.duration) {
        parts.push(duration(about.duration) + " long");
    }
    const [name, unit] = about.values[chosen];
    if (about.differential) {
        const [after, before] = [sumsOf(0)[1][0], sumsOf(1)[1][0]];
        parts.push(human(before, unit) + " before", human(after, unit) + " after", change(after, before, unit));
    } else {
        parts.push(human(total[0], unit) + " " + name);
    }
    parts.push(plural(about.stacks, "distinct stack"));
    byId("about").textContent = parts.filter(Boolean).join(" · ");
}

function legend() {
    for (const [className, label] of about.legend.slice(0, MAX_LEGEND)) {
        const swatch = element("span", "", "swatch " + className);
        const entry = element("span", label);
        entry.prepend(swatch);
        byId("legend").append(entry);
    }
    paintLegend();
}

function paintLegend() {
    for (const swatch of byId("legend").querySelectorAll(".swatch")) {
        swatch.style.backgroundColor = getComputedStyle(swatch).fill;
    }
}

function notes() {
    const [lost, isWarning] = about.lost;
    byId("notes").append(element("p", lost, isWarning ? "warning" : ""), ...about.notes.map((each) => element("p", each)));
}

function values() {
    about.values.forEach(function ([name, unit], i) {
        const option = element("option", name + (name === unit ? "" : " (" + unit + ")"));
        option.value = i;
        choice.append(option);
    });
    byId("choice").hidden = about.values.length < 2;
}

// ---- Differential: how much something changed, in steps of colour

function deltaStep(after, before) {
    const delta = after - before;
    let step = 4;
    while (delta > 0 && step < 8 && delta >= STEPS[step + 1] * before) {
        step++;
    }
    while (delta < 0 && step > 0 && delta <= STEPS[step - 1] * before) {
        step--;
    }
    return step;
}

// ---- Details of a frame

function details(i) {
    const unit = about.values[chosen][1];
    const told = (value) => (unit === "count" ? counted(value, things(about.values[chosen][0])) : human(value, unit));
    const lines = [told(total[i]) + " · " + share(total[i], total[0]) + " of all"];
    if (zoomed && i >= zoomed && i < end[zoomed]) {
        lines[0] += " · " + share(total[i], total[zoomed]) + " of " + shorten(nameOf(zoomed));
    }
    if (about.differential) {
        const [after, before] = [sums[0][1][i], sums[1][1][i]];
        lines.push(human(before, unit) + " before, " + human(after, unit) + " after: " + change(after, before, unit));
    } else {
        about.values.forEach(function ([name, other], value) {
            if (value !== chosen) {
                lines.push(name + ": " + human(sumsOf(value)[1][i], other));
            }
        });
    }
    if (i > 0) {
        lines.push(told(own[i]) + " in itself, " + told(total[i] - own[i]) + " in what it calls");
    }
    return lines;
}

let tipNode = -1;

function showTip(i, x, y) {
    if (i !== tipNode) {
        tipNode = i;
        const lines = details(i).map((line) => element("div", line));
        tip.replaceChildren(element("b", nameOf(i)), ...lines, element("i", i > 0 ? originOf(func[i]) : ""));
        tip.hidden = false;
        placeMark(i);
    }
    const below = y + 18 + tip.offsetHeight < window.innerHeight ? y + 18 : Math.max(4, y - tip.offsetHeight - 10);
    tip.style.left = Math.max(4, Math.min(x + 12, window.innerWidth - tip.offsetWidth - 6)) + "px";
    tip.style.top = below + "px";
}

function hideTip() {
    tipNode = -1;
    tip.hidden = true;
    mark.hidden = true;
}

function placeMark(i) {
    const [x, w] = extent(i);
    mark.hidden = false;
    mark.style.left = x + "px";
    mark.style.top = top_(i) - graph.scrollTop + "px";
    mark.style.width = Math.max(w - (w > 4 ? GAP : 0), 1) + "px";
}

// ---- Search

// The regular expression of a search; null if it is none.
function expressionOf(text, exact) {
    for (const flags of text ? ["u", ""] : []) {
        try {
            return new RegExp(text, exact ? flags : "i" + flags);
        } catch (error) {
            // Without "u", more is allowed.
        }
    }
    return null;
}

function search() {
    const expression = expressionOf(pattern, matchCase);
    result.classList.toggle("bad", pattern !== "" && expression === null);
    hits = expression ? Uint8Array.from(about.names, (name) => (expression.test(name) ? 1 : 0)) : null;
    report();
}

function report() {
    let text = "";
    if (hits) {
        const unit = about.values[chosen][1];
        const all = matchedUnder(0, hits);
        text = "matched " + share(all, total[0]) + " (" + human(all, unit) + ")";
        if (zoomed) {
            text += ", " + share(matchedUnder(zoomed, hits), total[zoomed]) + " here";
        }
    } else if (pattern) {
        text = "not a regular expression";
    }
    result.textContent = text;
    resetButton.disabled = !zoomed && !pattern;
}

// ---- State; it is in the fragment of the address

function usualView() {
    return about.inverted ? "icicle" : "flame";
}

function readState() {
    const state = new URLSearchParams(location.hash.slice(1));
    const whole = (key, most) => {
        const wanted = Number(state.get(key));
        return Number.isInteger(wanted) && wanted > 0 && wanted < most ? wanted : 0;
    };
    view = VIEWS.includes(state.get("view")) ? state.get("view") : usualView();
    chosen = state.has("value") ? whole("value", about.values.length) : about.value;
    zoomed = whole("zoom", count);
    pattern = state.get("search") || "";
    matchCase = state.get("case") === "1";
    input.value = pattern;
}

function saveState(step) {
    const state = new URLSearchParams();
    const put = (key, value, usual) => value !== usual && state.set(key, value);
    put("view", view, usualView());
    put("value", chosen, about.value);
    put("zoom", zoomed, 0);
    put("search", pattern, "");
    put("case", matchCase ? 1 : 0, 0);
    const fragment = "#" + state.toString();
    if (fragment === (location.hash || "#")) {
        return;
    }
    try {
        history[step](null, "", fragment);
    } catch (error) {
        // A sandboxed page may not have a history: the graph works, only its place is not kept.
    }
}

function restore() {
    readState();
    chooseValue(chosen);
    if (!(total[zoomed] > 0)) {
        zoomed = 0;
    }
    search();
    show();
    reveal(zoomed);
}

// ---- Showing

function show() {
    const isTable = view === "table";
    if (!isTable) {
        lastGraph = view;
    }
    inverted = lastGraph === "icicle";
    const empty = !(total[0] > 0);
    graph.hidden = isTable || empty;
    tableBox.hidden = !isTable || empty;
    nothing.hidden = !empty;
    nothing.textContent = about.samples
        ? "Nothing to show: " + plural(about.samples, "sample") + ", none with a value above 0."
        : "Nothing to show: the profile has no samples.";
    for (const button of byId("views").children) {
        button.setAttribute("aria-pressed", String(button.dataset.view === view));
    }
    caseButton.setAttribute("aria-pressed", String(matchCase));
    choice.value = chosen;
    subtitle();
    refresh();
}

function refresh() {
    hideTip();
    table = null;
    report();
    if (view === "table") {
        drawTable();
    } else if (!graph.hidden) {
        fitCanvas();
        draw();
        canvas.setAttribute("aria-label", "Graph of " + plural(count, "frame") + "; arrow keys move, Enter zooms");
    }
    watchers.forEach((watcher) => watcher());
}

function setView(wanted) {
    const turned = wanted !== "table" && wanted !== lastGraph;
    view = wanted;
    show();
    if (turned) {
        reveal(zoomed);
    }
    saveState("pushState");
}

function zoom(i) {
    if (i !== zoomed && total[i] > 0) {
        zoomed = i;
        focused = i;
        refresh();
        reveal(i);
        saveState("pushState");
    }
}

function setSearch(text, exact) {
    pattern = text;
    matchCase = exact;
    input.value = text;
    rowLimit = PAGE_ROWS;
    caseButton.setAttribute("aria-pressed", String(exact));
    search();
    refresh();
    saveState("replaceState");
}

function reset() {
    setSearch("", matchCase);
    zoom(0);
}

// Scrolls so that the row of a frame and the rows of its next callees are visible.
function reveal(i) {
    const y = top_(i);
    const room = Math.min(6 * ROW, Math.max(0, graph.clientHeight - 2 * ROW));
    const [high, low] = inverted ? [y, y + room] : [y - room, y];
    if (low + ROW > graph.scrollTop + graph.clientHeight) {
        graph.scrollTop = low + ROW - graph.clientHeight;
    }
    if (high < graph.scrollTop) {
        graph.scrollTop = Math.max(0, high);
    }
}
