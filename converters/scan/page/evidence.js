// What a verdict rests on: opened below its row.

function stackList(frames) {
    return made("ol", "stack", ...frames.map((frame) => made("li", "", frame)));
}

function definitions(pairs) {
    const list = made("dl", "");
    for (const [term, ...content] of pairs) {
        if (content.some((each) => each !== "" && each !== null)) {
            list.append(made("dt", "", term), made("dd", "", ...content));
        }
    }
    return list;
}

// Running, runnable and blocked as parts of the threads' time.
function timesBar(times) {
    const rest = Math.max(times.wall - times.on_cpu - times.runnable, 0);
    const bar = made("span", "parts");
    bar.setAttribute("aria-hidden", "true");
    for (const [kind, part] of [["running", times.on_cpu], ["runnable", times.runnable], ["events", rest]]) {
        const piece = made("i", "k-" + kind);
        piece.style.width = 100 * part / Math.max(times.wall, 1) + "%";
        piece.style.backgroundColor = fillOf("k-" + kind);
        bar.append(piece);
    }
    const told = share(times.on_cpu, times.wall) + " running, " + share(times.runnable, times.wall)
        + " runnable, " + share(rest, times.wall) + " blocked, of " + duration(times.wall) + " of "
        + plural(times.threads, "thread");
    return [bar, told];
}

function placeDetails(place) {
    const call = [place.call && "in " + place.call, place.lock && "for the lock of " + place.lock].filter(Boolean).join(", ");
    const title = place.frames.join(" → ") + (place.kernel ? " │ " + place.kernel : "");
    const summary = made("summary", "", kindCell(place.kind), " ", title || "no stack", call ? made("span", "faint", " " + call) : "");
    return made("details", "", summary, stackList(place.stack));
}

function waitsTable(waits, wall) {
    const table = made("table", "");
    table.append(made("caption", "", "Longest waits of all threads of these processes"));
    const head = made("tr", "", ...["Time", "Share", "Waits", "Kind", "Where"].map(function (label, i) {
        const cell = made("th", i < 3 ? "number" : "word", label);
        cell.scope = "col";
        return cell;
    }));
    const body = made("tbody", "", ...waits.map((wait) => made(
        "tr", "",
        made("td", "number", duration(wait.time)),
        made("td", "number", share(wait.time, wall)),
        made("td", "number", wait.count ? grouped(String(wait.count)) : "-"),
        made("td", "", kindCell(wait.kind === "core" ? "runnable" : wait.kind)),
        made("td", "", wait.where || "-"),
    )));
    table.append(made("thead", "", head), body);
    return table;
}

function evidenceOf(row) {
    const found = row.finding;
    const counted = found && found.count
        ? grouped(String(found.count)) + " waits, " + duration(Math.round(found.time / found.count)) + " on average, "
            + duration(found.max) + " at most"
        : "";
    const threads = found
        ? plural(found.number, "thread") + ": " + found.threads.join(", ") + (found.number > found.threads.length ? ", …" : "")
        : "";
    const ender = row.ender
        ? row.ender.name + (row.ender.pids.length ? " (" + row.ender.pids.slice(0, 8).join(", ") + ")" : "") + ": "
            + percent(row.ender.share)
        : "";
    const pids = row.pids.join(", ") + (row.number > row.pids.length ? ", …" : "");
    const go = made("button", "go", "Show in the graph");
    go.addEventListener("click", () => showGroup(row.label));
    const lanes = made("button", "go", "Show over time");
    lanes.addEventListener("click", () => showLanesOf(row.label));
    return [
        definitions([
            ["Verdict", row.told],
            ["Over time", ...(row.slices ? overTime(row.slices) : [""])],
            ["Kind", kindCell(row.kind), ": " + row.meaning],
            ["Rule", row.rule && made("code", "", row.rule)],
            ["Threads", threads],
            ["Waits", counted],
            ["Ended by", ender],
            ["All threads", ...(row.times.wall ? timesBar(row.times) : [""])],
            ["Processes", pids],
        ]),
        ...(found && found.places.length ? [made("p", "", "Where the verdict's threads wait, with their stacks:"), ...found.places.map(placeDetails)] : []),
        row.waits.length ? waitsTable(row.waits, row.times.wall) : "",
        made("p", "", go, " ", hasLanes() ? lanes : ""),
    ];
}
