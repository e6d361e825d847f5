// The start of the page: its blocks are unpacked one after the other, the report first.

let report = null;
const SECTIONS = {
    verdicts: "Verdicts", stacks: "Stacks", lanes: "Over time", machine: "Host", waits: "Who waits", locks: "Locks", calls: "Calls",
    cores: "Cores", threads: "Threads", lost: "Cost and losses",
};

function sections() {
    for (const [name, label] of Object.entries(SECTIONS)) {
        const section = byId(name);
        const button = made("button", "", label);
        button.title = byId("h-" + name).textContent;
        button.addEventListener("click", function () {
            section.scrollIntoView();
            section.tabIndex = -1;
            section.focus({ preventScroll: true });
        });
        byId("sections").append(button);
    }
}

// ---- Groups of processes in the graph

function nodesOfGroups() {
    const found = new Map();
    for (let i = 1; i < count; i = end[i]) {
        found.set(nameOf(i), i);
    }
    return found;
}

const VALUES = {
    wall: "wall: all time of the threads",
    "off-CPU": "off-CPU: blocked or runnable",
    "on-CPU": "on-CPU: running",
    wakers: "wakers: blocked, and who ended it",
    calls: "calls: in calls that are timed",
};

function groupsOfGraph() {
    for (const option of byId("value").options) {
        const [name] = about.values[option.value];
        option.textContent = VALUES[name] || name;
    }
    const choice = byId("group");
    const nodes = nodesOfGroups();
    const labels = report.rows.map((row) => row.label).filter((label) => nodes.has(label));
    const others = [...nodes.keys()].filter((label) => !labels.includes(label));
    choice.append(...["", ...labels, ...others].map(function (label) {
        const option = made("option", "", label || "All");
        option.value = label ? nodes.get(label) : 0;
        return option;
    }));
    choice.addEventListener("change", () => zoom(Number(choice.value)));
    watchers.push(function () {
        let node = zoomed;
        while (node > 0 && depth[node] > 1) {
            node = parent[node];
        }
        choice.value = node;
    });
    // The first group is what the answer is about; all of a host is mostly idle.
    const first = nodes.get(labels[0]);
    if (first && !location.hash.includes("zoom=")) {
        zoomed = focused = first;
        refresh();
        reveal(first);
    }
}

function showGroup(label) {
    const node = nodesOfGroups().get(label);
    if (node !== undefined) {
        if (view === "table") {
            setView(lastGraph);
        }
        zoom(node);
        byId("stacks").scrollIntoView();
        canvas.focus({ preventScroll: true });
    }
}

// ---- Search in all sections

let lastSearch = "";

function searchAll() {
    const now = pattern + "\n" + matchCase;
    if (now === lastSearch) {
        return;
    }
    lastSearch = now;
    searched = expressionOf(pattern, matchCase);
    tables.forEach((draw) => draw());
    if (hasLanes()) {
        searchLanes(searched);
        refit();
    }
}

// Without a graph nothing else listens to the search.
function searchWithoutGraph() {
    const input = byId("search");
    const again = function () {
        pattern = input.value;
        searchAll();
    };
    input.addEventListener("input", again);
}

function withoutLanes() {
    byId("lanes-box").hidden = true;
    byId("lanes-none").hidden = false;
    byId("lanes-none").textContent = "This scan has no events of the scheduler, of which the lanes are made: trace-scan records them when it is given -o scan.html or -o scan.d.";
}

function recolor() {
    repaintSwatches();
    if (hasLanes()) {
        readInks();
        fitLanes();
        redraw();
    }
}

async function unpackText(name) {
    return JSON.parse(new TextDecoder().decode(await unpack(byId(name))));
}

async function open() {
    report = await unpackText("data");
    told(report);
    jobTables(report);
    meetingTable(report);
    stepTable(report);
    sections();
    verdictTable(report);
    hostTables(report);
    matrixTable(report);
    lockTable(report);
    callTable(report);
    coreTable(report);
    threadTable(report);
    document.documentElement.dataset.report = "1";
    if (byId("graphdata")) {
        readData(await unpack(byId("graphdata")));
        openGraph();
        groupsOfGraph();
        watchers.push(searchAll);
    } else {
        byId("bar").hidden = true;
        giveUp("it has no samples.");
        searchWithoutGraph();
    }
    if (byId("lanesdata")) {
        await unpack(byId("lanesdata")).then(openLanes).catch(function (error) {
            events = null;
            withoutLanes();
            byId("lanes-none").textContent = "The lanes cannot be shown: their data is damaged (" + error.message + ").";
        });
    } else {
        withoutLanes();
    }
    lostTable(report);
    searchAll();
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);
    window.matchMedia("print").addEventListener("change", recolor);
    document.documentElement.dataset.ready = "1";
}

if (canUnpack()) {
    open().catch(damaged);
}
