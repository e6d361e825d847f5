// What is chosen in the lanes, in words: the thread, its phase, who ended the wait, and the stack.

const phaseBox = byId("lanes-phase");

function groupKind(group) {
    const row = report.rows[group];
    return row ? row.kind : "";
}

function showPhase() {
    if (!chosenLane) {
        return;
    }
    if (chosenLane.lanes) {
        phaseBox.replaceChildren(made("p", "", headerText(chosenLane)));
        return;
    }
    const lane = chosenLane;
    const who = made("b", "", lane.name + " (" + lane.tid + ")");
    const verdict = groupKind(lane.group);
    const of = " of " + lane.process + " (" + lane.pid + (verdict ? ", " + verdict : "") + ")";
    if (chosenPhase < 0) {
        phaseBox.replaceChildren(made("p", "", who, of + ": it did not exist at this time, or nothing is known of it"));
        return;
    }
    const [begin, end] = [laneBegins[chosenPhase], phaseEnd(lane, chosenPhase)];
    const kind = events.kinds[laneKinds[chosenPhase]];
    const shown = kind === "not known" ? "unknown" : kind;
    const length = duration(Math.round((end - begin) * events.unit));
    const at = timeText(begin * events.unit, 1e4);
    const line = made("p", "", who, of + ": ", kindCell(shown), " for " + length + ", from " + at + " on");
    const waker = laneWakers[chosenPhase];
    const nodes = [line];
    if (kind === "runnable" && waker) {
        nodes.push(made("p", "", "Woken by " + threadName(waker) + "."));
    } else if (chosenPhase + 1 < lane.after && laneWakers[chosenPhase + 1] && laneKinds[chosenPhase] > 1) {
        nodes.push(made("p", "", "Ended by " + threadName(laneWakers[chosenPhase + 1]) + "."));
    }
    const stack = laneKinds[chosenPhase] === 0 ? sampleIn(lane, chosenPhase) : laneStacks[chosenPhase];
    const frames = framesOf(stack);
    nodes.push(frames.length
        ? stackList(frames)
        : made("p", "", kind === "running" ? "No sample was taken in this time." : "Its stack is not known."));
    if (kind === "runnable" && frames.length) {
        nodes.splice(nodes.length - 1, 0, made("p", "", "It left its core in:"));
    }
    phaseBox.replaceChildren(...nodes);
}

function threadName(tid) {
    const lane = byTid.get(tid);
    return lane ? lane.name + " (" + tid + ") of " + lane.process + " (" + lane.pid + ")" : "thread " + tid + ", which was not traced";
}

function lanesLegend() {
    const line = byId("lanes-legend");
    const present = new Uint8Array(events.kinds.length);
    for (let i = 0; i < laneKinds.length; i++) {
        present[laneKinds[i]] = 1;
    }
    events.kinds.forEach(function (kind, i) {
        if (present[i]) {
            line.append(kindCell(kind === "not known" ? "unknown" : kind));
        }
    });
}

function lanesNotes() {
    const told = [];
    if (events.kept) {
        told.push(grouped(String(events.older)) + " " + (events.kept === "newest" ? "older" : "newer")
            + " events are not in the lanes: there were more than are kept.");
    }
    if (events.dropped) {
        told.push("The page shows the newest part: " + grouped(String(events.dropped)) + " phases before it are left out.");
    }
    if (events.lost) {
        told.push(grouped(String(events.lost)) + " events were lost.");
    }
    byId("lanes-none").hidden = !told.length;
    byId("lanes-none").textContent = told.join(" ");
}
