// The lanes' pointer and keys.

const SHORTEST = 20; // units that can be shown

function showTime(begin, end) {
    const least = Math.max(SHORTEST, 1);
    const length = Math.min(Math.max(end - begin, least), span);
    from = Math.min(Math.max(begin, 0), span - length);
    to = from + length;
    redraw();
}

let asked = false;
let shownLanes = 0;

function describe() {
    const [begin, end] = [from, to].map((time) => timeText(time * events.unit, 1e4));
    lanesCanvas.setAttribute("aria-label", "Lanes of " + plural(shownLanes, "thread") + " from " + begin + " to " + end
        + "; arrow keys go from phase to phase, what is chosen is told below; the table of threads has their times");
}

function redraw() {
    if (!asked) {
        asked = true;
        requestAnimationFrame(function () {
            asked = false;
            drawLanes();
            drawAll();
            describe();
        });
    }
}

function zoomTime(factor, around) {
    const middle = around === undefined ? (from + to) / 2 : around;
    showTime(middle - (middle - from) * factor, middle + (to - middle) * factor);
}

// Rows have changed: headers, search, groups.
function refit() {
    const { still, hidden } = chooseRows();
    if (chosenLane && chosenLane.lanes) { // headers are made anew
        const same = rowsOfLanes.find((row) => (row.lane || row).pid === chosenLane.pid);
        chosenLane = same ? same.lane || same : null;
    }
    byId("lanes-still-text").textContent = counted(still, "others") + ": idle, of the kernel, or without a move";
    byId("lanes-still").parentNode.hidden = still === 0;
    const shown = rowsOfLanes.filter((row) => row.lane).length;
    byId("lanes-result").textContent = nameHits
        ? plural(shown, "thread") + " found" + (hidden ? ", " + grouped(String(hidden)) + " others" : "")
        : plural(shown, "thread") + " shown";
    shownLanes = shown;
    fitLanes();
    redraw();
}

function choose(row, phase) {
    const found = rowsOfLanes[row];
    chosenLane = found ? found.lane || found : null;
    chosenPhase = phase;
    showPhase();
    redraw();
}

const rowOfChosen = () => rowsOfLanes.findIndex((row) => row === chosenLane || row.lane === chosenLane);

function phaseUnder(lane, time) {
    const phase = time < laneBegins[lane.first] ? lane.after : phaseAt(lane, time);
    return phase < lane.after ? phase : -1;
}

function placeIn(event) {
    const box = lanesCanvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
}

function fold(header) {
    if (!folded.delete(header.pid)) {
        folded.add(header.pid);
    }
    refit();
}

let drag = null;

lanesCanvas.addEventListener("pointerdown", function (event) {
    const [x, y] = placeIn(event);
    if (event.button === 0) {
        drag = { x, y, from, to, moved: false, zooms: event.shiftKey, scroll: lanesView.scrollTop };
        lanesCanvas.setPointerCapture(event.pointerId);
    }
});
lanesCanvas.addEventListener("pointermove", function (event) {
    if (!drag) {
        return;
    }
    const [x] = placeIn(event);
    drag.moved = drag.moved || Math.abs(x - drag.x) > 3;
    if (drag.moved && !drag.zooms) {
        const shift = (drag.x - x) / (lanesWidth - gutter) * (drag.to - drag.from);
        showTime(drag.from + shift, drag.to + shift);
    }
});
lanesCanvas.addEventListener("pointerup", function (event) {
    const [x, y] = placeIn(event);
    const begun = drag;
    drag = null;
    if (!begun) {
        return;
    }
    if (begun.moved && begun.zooms) {
        const times = [begun.x, x].map((each) => atTime(Math.max(each, gutter))).sort((a, b) => a - b);
        showTime(...times);
    } else if (!begun.moved) {
        const row = rowUnder(y);
        const found = rowsOfLanes[row];
        if (found && !found.lane) {
            choose(row, -1);
            fold(found);
        } else if (found) {
            choose(row, x < gutter ? -1 : phaseUnder(found.lane, atTime(x)));
        }
    }
});
lanesCanvas.addEventListener("pointercancel", () => (drag = null));
lanesCanvas.addEventListener("dblclick", function (event) {
    const [x] = placeIn(event);
    if (x >= gutter) {
        zoomTime(0.25, atTime(x));
    }
});
lanesCanvas.addEventListener("wheel", function (event) {
    const [x] = placeIn(event);
    if (event.ctrlKey || event.metaKey) {
        zoomTime(Math.exp(event.deltaY / 250), atTime(Math.max(x, gutter)));
        event.preventDefault();
    } else if (event.deltaX && Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
        const shift = (event.deltaX || event.deltaY) / (lanesWidth - gutter) * (to - from);
        showTime(from + shift, to + shift);
        event.preventDefault();
    }
}, { passive: false });
lanesView.addEventListener("scroll", redraw);

let chosenPart = null;

function timeInAll(event) {
    const box = allCanvas.getBoundingClientRect();
    return Math.max(0, (event.clientX - box.left - gutter) / (box.width - gutter) * span);
}

allCanvas.addEventListener("pointerdown", function (event) {
    chosenPart = timeInAll(event);
    allCanvas.setPointerCapture(event.pointerId);
});
allCanvas.addEventListener("pointerup", function (event) {
    if (chosenPart !== null) {
        const end = timeInAll(event);
        const [begin, after] = [Math.min(chosenPart, end), Math.max(chosenPart, end)];
        const half = (to - from) / 2;
        if (after - begin > span / 300) {
            showTime(begin, after);
        } else {
            showTime(end - half, end + half);
        }
        chosenPart = null;
    }
});

// ---- Keys

function reachRow(row) {
    const top = row * LANE;
    const room = lanesView.clientHeight - AXIS;
    if (top < lanesView.scrollTop) {
        lanesView.scrollTop = top;
    } else if (top + LANE > lanesView.scrollTop + room) {
        lanesView.scrollTop = top + LANE - room;
    }
}

function reachPhase(lane, phase) {
    const [begin, end] = [laneBegins[phase], phaseEnd(lane, phase)];
    if (begin < from || begin > to || end < from) {
        const middle = (begin + Math.min(end, begin + to - from)) / 2;
        showTime(middle - (to - from) / 2, middle + (to - from) / 2);
    }
}

function step(key) {
    const row = rowOfChosen();
    if (key === "ArrowUp" || key === "ArrowDown" || row < 0) {
        const next = row < 0 ? Math.max(0, rowUnder(AXIS)) : row + (key === "ArrowUp" ? -1 : 1);
        if (next >= 0 && next < rowsOfLanes.length) {
            const lane = rowsOfLanes[next].lane;
            const time = chosenPhase >= 0 && !chosenLane.lanes ? Math.max(laneBegins[chosenPhase], from) : from;
            choose(next, lane ? phaseUnder(lane, time) : -1);
            reachRow(next);
        }
        return;
    }
    const lane = rowsOfLanes[row].lane;
    if (lane) {
        const now = chosenPhase >= 0 ? chosenPhase + (key === "ArrowLeft" ? -1 : 1) : phaseUnder(lane, from);
        if (now >= lane.first && now < lane.after) {
            choose(row, now);
            reachPhase(lane, now);
        }
    }
}

lanesCanvas.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) {
        return;
    }
    const page = (to - from) * 0.8;
    const actions = {
        "+": () => zoomTime(0.5),
        "=": () => zoomTime(0.5),
        "-": () => zoomTime(2),
        Home: () => showTime(0, span),
        PageDown: () => showTime(from + page, to + page),
        PageUp: () => showTime(from - page, to - page),
        Enter: () => chosenLane && chosenLane.lanes && fold(chosenLane),
    };
    if (event.key.startsWith("Arrow")) {
        step(event.key);
    } else if (actions[event.key]) {
        actions[event.key]();
    } else {
        return;
    }
    event.preventDefault();
});

byId("lanes-in").addEventListener("click", () => zoomTime(0.5));
byId("lanes-out").addEventListener("click", () => zoomTime(2));
byId("lanes-whole").addEventListener("click", () => showTime(0, span));
byId("lanes-still").addEventListener("change", function (event) {
    showsStill = event.target.checked;
    refit();
});
byId("lanes-group").addEventListener("change", function (event) {
    lanesGroup = Number(event.target.value);
    lanesView.scrollTop = 0;
    refit();
});

function openLanes(buffer) {
    readLanes(buffer);
    const present = [...new Set(lanes.map((lane) => lane.group))].sort((a, b) => a - b);
    const choice = byId("lanes-group");
    for (const group of [-1, ...present]) {
        const option = made("option", "", group < 0 ? "All" : report.rows[group] ? report.rows[group].label : "others");
        option.value = group;
        choice.append(option);
    }
    showsStill = lanes.every(isQuiet);
    byId("lanes-still").checked = showsStill;
    readInks();
    lanesLegend();
    lanesNotes();
    to = span;
    refit();
    new ResizeObserver(function () {
        fitLanes();
        redraw();
    }).observe(lanesView);
}

function showLanesOf(label) {
    const group = report.rows.findIndex((row) => row.label === label);
    lanesGroup = lanes.some((lane) => lane.group === group) ? group : -1;
    byId("lanes-group").value = lanesGroup;
    lanes.forEach((lane) => lane.group === group && folded.delete(lane.pid));
    refit();
    byId("lanes").scrollIntoView();
    lanesCanvas.focus({ preventScroll: true });
}
