// The tables of the report, and what is said around them.

function told(report) {
    const start = report.start ? new Date(report.start).toISOString().slice(0, 19).replace("T", " ") + " UTC" : "";
    const used = report.duration && report.cores_number
        ? (report.on_cpu / report.duration).toFixed(2) + " of " + plural(report.cores_number, "core") + " used, "
            + ((report.on_cpu + report.runnable) / report.duration).toFixed(2) + " wanted"
        : "";
    const scanned = byId("scanned");
    scanned.textContent = [scanned.textContent.replace(/\.$/, ""), start, used].filter(Boolean).join(" · ");
    byId("findings").append(...report.findings.map((each) => made("li", "", each)));
    if (report.next) {
        byId("nextstep").hidden = false;
        byId("nextstep").append("Next: ", made("code", "", report.next[0]), "  " + report.next[1]);
    }
    const gone = report.lost.filter((each) => each[3]);
    const line = byId("lostline");
    line.textContent = gone.length
        ? "Missing: " + gone.map(([kind, number]) => counted(number, kind)).join(", ") + "."
        : report.counted ? "Nothing lost." : "What was lost is not known.";
    line.classList.toggle("warning", gone.length > 0);
}

function verdictTable(report) {
    const host = document.querySelector("#verdicts .host");
    const trace = report.duration;
    return dataTable(host, {
        caption: "Those in which most time would be saved come first. Share: of the time of the threads that the verdict is on. A row opens what it rests on.",
        noun: "row",
        rows: report.rows,
        text: (row) => [row.name, row.kind, row.pids.join(" "), row.place.join(" "), row.kernel, row.ender ? row.ender.name : ""].join("\n"),
        open: evidenceOf,
        columns: [
            { label: "Verdict", word: true, value: (row) => row.kind, cell: verdictCell },
            {
                label: "Share",
                value: (row) => row.share,
                cell: (row) => (row.share === null ? "-" : [shareBar(row.share, row.kind), made("span", "part", percent(row.share))]),
            },
            { label: "Cores", title: "Cores that all threads used on average", value: (row) => row.on_cpu, cell: (row) => (trace ? (row.on_cpu / trace).toFixed(2) : "-") },
            ...(report.rows.some((row) => row.slices) ? [overTimeColumn(trace)] : []),
            { label: "Processes", word: true, opens: true, value: (row) => row.name, cell: processesCell },
            { label: "Where", word: true, value: (row) => row.place.join(" → "), cell: (row) => [row.place.join(" → ") || "-", row.kernel ? made("span", "where", row.kernel) : ""] },
            {
                label: "Ended by",
                word: true,
                value: (row) => (row.ender ? row.ender.name : null),
                cell: (row) => (row.ender ? [row.ender.name, made("span", "where", percent(row.ender.share))] : "-"),
            },
        ],
    });
}

function verdictCell(row) {
    const cell = kindCell(row.kind);
    cell.title = row.meaning;
    return cell;
}

function overTimeColumn(trace) {
    return {
        label: "Over time",
        word: true,
        title: "What matters most in each slice of the scan. Sorted by the number of changes",
        value: (row) => (row.slices ? changesOf(row.slices) : null),
        cell: (row) => (row.slices ? stripOf(row.slices, trace) : "-"),
    };
}

function processesCell(row) {
    const pids = row.pids.slice(0, 8).join(", ") + (row.number > 8 ? ", …" : "");
    return {
        title: (row.number > 1 ? grouped(String(row.number)) + " × " : "") + row.name,
        more: [made("span", "where", (row.number > 1 ? "pids " : "pid ") + pids)],
    };
}

const number = (label, value, shown, title) => ({ label, title, value, cell: (row) => orDash(value(row), shown) });
const whole = (value) => grouped(String(Math.round(value)));
const word = (label, value) => ({ label, word: true, value, cell: (row) => value(row) || "-" });

function lockTable(report) {
    const host = document.querySelector("#locks .host");
    if (!report.locks.length) {
        none(host, "No wait for a lock was recorded.");
        return;
    }
    const members = (list) => list.map(([name, time]) => name + ": " + duration(time)).join(", ");
    dataTable(host, {
        caption: "Contended ones come first.",
        noun: "lock",
        rows: report.locks,
        text: (row) => [row.name, row.place, members(row.waiters), members(row.holders)].join("\n"),
        open: (row) => [definitions([
            ["Waited", members(row.waiters)],
            ["Had it meanwhile", members(row.holders) || "not known"],
            ["Waited in", row.place],
            ["Convoy", row.queue ? "somebody always waited for " + duration(row.queue) : ""],
        ])],
        columns: [
            { label: "Lock", word: true, opens: true, value: (row) => row.name, cell: (row) => ({ title: row.name }) },
            word("Contended", (row) => (row.contention === null ? "not known" : row.contention ? "yes" : "no")),
            number("Waited", (row) => row.time, duration),
            number("Share", (row) => row.time, (time) => share(time, report.wall), "Of all threads' time"),
            number("Waits", (row) => row.waits, whole),
            number("Ave", (row) => row.mean, duration),
            number("Max", (row) => row.max, duration),
            number("Threads", (row) => row.threads, whole, "Threads that waited"),
        ],
    });
}

function callTable(report) {
    const host = document.querySelector("#calls .host");
    sharedTable(report, host);
    if (!report.calls.length) {
        none(host, "No call was timed: no traced process called an ioctl or a library whose calls are timed.");
        return;
    }
    const all = report.calls.reduce((sum, row) => sum + row.own, 0);
    dataTable(host, {
        caption: "Ratio: of the time in all calls.",
        noun: "call",
        rows: report.calls,
        text: (row) => [row.name, row.where, row.each.map(([name]) => name).join(" ")].join("\n"),
        open: (row) => [
            definitions([["Takes", row.locks], ["Blocked in", row.blocked_in], ["Not ended", row.open ? grouped(String(row.open)) : ""]]),
            definitions(row.each.map(([name, of]) => [name, plural(of.calls, "call") + ", " + duration(of.total) + ", "
                + duration(of.ave) + " on average, " + duration(of.max) + " at most"])),
        ],
        columns: [
            { label: "Event", word: true, opens: true, value: (row) => row.name, cell: (row) => ({ title: row.name, more: [made("span", "where", row.where)] }) },
            number("Calls", (row) => row.calls, whole),
            number("Total", (row) => row.total, duration),
            number("CPU", (row) => row.cpu, (time) => (time ? duration(time) : "0"), "Part of the total on a core"),
            number("Blocked", (row) => row.blocked, (time) => (time ? duration(time) : "0")),
            number("Min", (row) => row.min, duration),
            number("Max", (row) => row.max, duration),
            number("Ave", (row) => row.ave, duration),
            number("Ratio", (row) => row.own, (time) => share(time, all)),
            number("Errors", (row) => row.errors, whole),
            number("Processes", (row) => row.processes, whole),
        ],
    });
}

function sharedTable(report, host) {
    if (!report.shared.length) {
        return;
    }
    host.append(made("h3", "", "Calls that several processes were in at the same time"));
    const turns = (row) => row.turns.map(([name, time]) => name + ": " + duration(time)).join(", ");
    dataTable(host, {
        caption: "Factor: how many times as long a call takes as without another process on the device, or as its turn (from the return before it to its own).",
        noun: "call",
        rows: report.shared,
        text: (row) => [row.name, row.device, turns(row)].join("\n"),
        open: (row) => [definitions([["Turns", turns(row)], ["Compared with", row.alone ? "calls that were alone" : "the calls' turns"]])],
        columns: [
            { label: "Call", word: true, opens: true, value: (row) => row.name, cell: (row) => ({ title: row.name, more: [made("span", "where", row.device)] }) },
            number("Factor", (row) => row.factor, (factor) => factor.toFixed(1) + " ×"),
            number("Shared", (row) => row.shared, percent, "Part of its time with two or more processes inside"),
            number("Inside", (row) => row.inside, (inside) => inside.toFixed(1), "Processes inside on average"),
            number("Calls", (row) => row.calls, whole),
        ],
    });
    host.append(made("h3", "", "All calls"));
}

function coreTable(report) {
    const host = document.querySelector("#cores .host");
    if (!report.cores.length) {
        none(host, "What processes may use was not recorded.");
        return;
    }
    const two = (value) => value.toFixed(2);
    dataTable(host, {
        caption: "Wanted: threads that ran or waited for a core, on average.",
        noun: "row",
        rows: report.cores,
        text: (row) => row.name + "\n" + row.pids.join(" "),
        columns: [
            { label: "Processes", word: true, value: (row) => row.name, cell: (row) => [(row.processes > 1 ? row.processes + " × " : "") + row.name, made("span", "where", row.pids.join(", ") + (row.processes > row.pids.length ? ", …" : ""))] },
            number("Used", (row) => row.used, two),
            number("Wanted", (row) => row.wanted, two),
            number("Allowed", (row) => row.allowed, two),
            number("Waited for a core", (row) => row.runnable, (time) => (time ? duration(time) : "0")),
            number("Threads", (row) => row.threads, whole),
            number("Created", (row) => row.created, whole, "Threads created during the scan"),
            number("Switches", (row) => row.switches, whole),
            word("Quota", (row) => row.quotas.join("; ")),
        ],
    });
}

function threadTable(report) {
    const host = document.querySelector("#threads .host");
    const names = ["thread", "process", "tid", "wall", "on_cpu", "runnable", "blocked", "switches"];
    const rows = report.threads.rows.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i]])));
    const cut = report.threads.number > rows.length ? " The first " + whole(rows.length) + " of " + whole(report.threads.number) + "." : "";
    const part = (key) => [
        number(key[1], (row) => row[key[0]], (time) => (time ? duration(time) : "0")),
        { label: "%", title: key[1] + ", of the thread's time", value: (row) => row[key[0]] / Math.max(row.wall, 1), cell: (row) => share(row[key[0]], row.wall) },
    ];
    dataTable(host, {
        caption: "Those that ran most come first." + cut,
        noun: "thread",
        rows,
        text: (row) => row.thread + "\n" + row.process + "\n" + row.tid,
        columns: [
            { label: "Thread", word: true, value: (row) => row.thread, cell: (row) => row.thread + (row.tid ? " (" + row.tid + ")" : "") },
            word("Process", (row) => row.process),
            ...part(["on_cpu", "Running"]),
            ...part(["runnable", "Runnable"]),
            ...part(["blocked", "Blocked"]),
            number("Switches", (row) => row.switches, whole),
        ],
    });
}

function lostTable(report) {
    const host = document.querySelector("#lost .host");
    if (report.lost.length) {
        dataTable(host, {
            caption: "",
            noun: "kind",
            rows: report.lost,
            text: (row) => row[0],
            columns: [
                { label: "What", word: true, value: (row) => row[0], cell: (row) => row[0] },
                number("Number", (row) => row[1], whole),
                number("Time", (row) => row[2], duration),
                word("Meaning", (row) => (row[3] ? "missing in the figures" : "only details of stacks are missing")),
            ],
        });
    } else {
        none(host, report.counted ? "Nothing was lost." : "What was lost was not counted.");
    }
    if (report.notes.length) {
        host.append(made("h3", "", "Notes"), made("ul", "", ...report.notes.map((note) => made("li", "", note))));
    }
    const recorded = plural(report.samples, "distinct stack") + (hasLanes() ? " and " + plural(events.events, "event") + " of the scheduler" : "");
    host.append(made("p", "", recorded + " recorded. What the scan itself cost the host was not measured."));
}
