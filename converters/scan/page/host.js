// The host: what is short, what interrupts take, what is contended, threads made, quotas, neighbours, GPUs.

function hostTables(report) {
    const host = document.querySelector("#machine .host");
    const found = report.machine;
    const parts = [
        pressureTable, contendedTable, interruptTables, madeTable, poolTable, quotaTable, neighbourTable, gpuTable,
    ].map((part) => part(host, found, report));
    if (!parts.some(Boolean)) {
        none(host, "Nothing was recorded of the host.");
    }
}

function titled(host, title, ...lines) {
    host.append(made("h3", "", title), ...lines.map((line) => made("p", "", line)));
}

const spent = (time) => (time ? duration(time) : "0");

function partOf(label, time, whole, kind, title) {
    return {
        label,
        title,
        value: (row) => (whole(row) ? time(row) / whole(row) : null),
        cell: (row) => (whole(row) ? [shareBar(time(row) / whole(row), kind), made("span", "part", percent(time(row) / whole(row)))] : "-"),
    };
}

const RESOURCES = { cpu: "a core", io: "a disk", memory: "memory", irq: "an interrupt to end" };
const SHORT = { cpu: "cores", io: "io", memory: "memory", irq: "runnable" };

function pressureTable(host, found) {
    if (!found.pressure.length) {
        return false;
    }
    titled(host, "Pressure");
    const some = (row) => row.some;
    const full = (row) => row.full;
    const elapsed = (row) => row.elapsed;
    const bar = (label, time, title) => ({
        ...partOf(label, time, elapsed, "cores", title),
        cell: (row) => partOf("", time, elapsed, SHORT[row.resource]).cell(row),
    });
    dataTable(host, {
        caption: "For which part of the time tasks stood still, as the kernel counts it (PSI).",
        noun: "row",
        rows: found.pressure,
        text: (row) => row.resource + "\n" + row.where,
        columns: [
            word("Waited for", (row) => RESOURCES[row.resource]),
            word("Where", (row) => row.where || "host"),
            bar("Some", some, "At least one task stood still"),
            bar("All", full, "All tasks that were not idle stood still"),
        ],
    });
    return true;
}

function contendedTable(host, found) {
    if (!found.contended.length) {
        return false;
    }
    titled(host, "Contended calls and locks", ...found.outsiders);
    const times = (factor) => factor.toFixed(1) + " ×";
    dataTable(host, {
        caption: "Factor: how many times as long one takes with others at the same time as alone, or as its turn (†).",
        noun: "row",
        rows: found.contended,
        text: (row) => row.kind + "\n" + row.name,
        columns: [
            word("What", (row) => row.kind),
            { label: "Name", word: true, value: (row) => row.name, cell: (row) => row.name },
            { label: "Factor", value: (row) => row.factor, cell: (row) => orDash(row.factor, times) + (row.factor !== null && !row.known_alone ? " †" : "") },
            number("At a time", (row) => row.inside, (inside) => inside.toFixed(1), "That waited, or were inside, while one was: the mean"),
            number("Alone", (row) => row.alone, duration, "Mean of those with nobody else at the same time"),
            number("With others", (row) => row.with_others, duration, "Mean of those with others at the same time"),
            number("Time", (row) => row.time, duration, "Waited for a lock, or inside of a call, in all"),
            number("Count", (row) => row.count, whole, "Waits, or calls"),
            number("By", (row) => row.waiters, whole, "Threads of a lock, processes of a call"),
        ],
    });
    return true;
}

function interruptTables(host, found) {
    if (!found.taken.length) {
        return false;
    }
    const kinds = { hard: "hard interrupts", soft: "soft interrupts", stolen: "given to other virtual machines" };
    const told = found.taken.map(([kind, time, count, part]) => kinds[kind] + " " + percent(part)
        + (count === null ? "" : " (" + plural(count, "interrupt") + ")"));
    titled(host, "Taken from the cores", "Of all cores' time: " + told.join(", ") + ".");
    if (found.sources.length) {
        const most = found.sources.slice(0, 5).map(([kind, name, count]) => name + " (" + kind + "): " + whole(count));
        host.append(made("p", "", "Most come from " + most.join("; ") + "."));
    }
    if (found.cores.length) {
        coresTable(host, found);
    }
    return true;
}

function coresTable(host, found) {
    const threads = (row) => row.threads.map(([name, time, taken]) => name + " had it for " + duration(time)
        + (taken ? ", of which interrupts took about " + duration(taken) : "")).join("; ");
    dataTable(host, {
        caption: "Cores from which most was taken. The kernel counts by core: a thread's part is that of the time for which it had the core. "
            + (found.has_threads ? "" : "Which threads ran where was not recorded: those of processes that may use this core only are told."),
        noun: "core",
        rows: found.cores,
        text: (row) => "core " + row.core + "\n" + threads(row),
        columns: [
            { label: "Core", value: (row) => row.core, cell: (row) => String(row.core) },
            partOf("Interrupts", (row) => row.hard + row.soft, (row) => row.capacity, "runnable", "Hard and soft ones, of the core's time"),
            number("Hard", (row) => row.hard, spent),
            number("Soft", (row) => row.soft, spent),
            number("Stolen", (row) => row.stolen, spent, "Given to other virtual machines"),
            word("Threads", threads),
        ],
    });
}

function madeTable(host, found) {
    if (!found.made.length) {
        return false;
    }
    titled(host, "Threads that were created");
    dataTable(host, {
        caption: "",
        noun: "process",
        rows: found.made,
        text: (row) => row.name,
        columns: [
            { label: "Process", word: true, value: (row) => row.name, cell: (row) => row.name },
            number("Created", (row) => row.began, whole),
            number("Per second", (row) => row.rate, (rate) => rate.toFixed(1)),
            number("Ended", (row) => row.ended, whole),
            number("Running", (row) => row.on_cpu, spent, "Of those created"),
            number("Waited for a core", (row) => row.runnable, spent, "Of those created"),
        ],
    });
    return true;
}

function poolTable(host, found) {
    if (!found.pools.length) {
        return false;
    }
    titled(host, "Pools of threads");
    dataTable(host, {
        caption: "Threads of a process that run one function from their start on, with names of one pattern, that were created in one place. "
            + "Of those that existed before the scan it is not known where.",
        noun: "pool",
        rows: found.pools,
        text: (row) => [row.name, row.thread, row.runs, row.made_in, row.fed_in].join("\n"),
        columns: [
            { label: "Process", word: true, value: (row) => row.name, cell: (row) => row.name },
            { label: "Threads", word: true, value: (row) => row.thread, cell: (row) => [row.thread, made("span", "where", row.runs)] },
            number("Number", (row) => row.threads, whole),
            number("Ended", (row) => row.ended, whole),
            word("Created in", (row) => row.made_in || "-"),
            word("Gets work from", (row) => row.fed_in || "-"),
            number("Running", (row) => row.on_cpu, spent),
            number("Waited for a core", (row) => row.runnable, spent),
        ],
    });
    return true;
}

function quotaTable(host, found) {
    if (!found.quotas.length) {
        return false;
    }
    titled(host, "Quotas of control groups");
    dataTable(host, {
        caption: "",
        noun: "group",
        rows: found.quotas,
        text: (row) => row.cgroup,
        columns: [
            { label: "Control group", word: true, value: (row) => row.cgroup, cell: (row) => row.cgroup },
            number("Cores", (row) => row.cores, (cores) => cores.toFixed(2)),
            partOf("Stopped", (row) => row.stopped, (row) => row.periods, "quota", "Part of the periods in which it was stopped"),
        ],
    });
    return true;
}

function neighbourTable(host, found) {
    if (!found.neighbours.length) {
        return false;
    }
    titled(host, "Neighbours: processes that were not traced");
    dataTable(host, {
        caption: "",
        noun: "process",
        rows: found.neighbours,
        text: (row) => row.name + "\n" + row.pid,
        columns: [
            { label: "Process", word: true, value: (row) => row.name, cell: (row) => row.name + " (" + row.pid + ")" },
            number("Cores", (row) => row.used, (used) => used.toFixed(2), "Used on average"),
            number("Running", (row) => row.on_cpu, spent),
            word("May use", (row) => row.may),
        ],
    });
    return true;
}

function gpuTable(host, found) {
    if (!found.gpus.length) {
        return false;
    }
    titled(host, "GPUs", ...found.gpu_lines);
    const gib = (bytes) => (bytes / 2 ** 30).toFixed(1) + " GiB";
    const pair = (value, most, shown) => orDash(value, shown) + (most === null ? "" : " of " + shown(most));
    const of = (label, value, most, shown) => ({ label, value, cell: (row) => pair(value(row), most(row), shown) });
    const limits = (row) => row.limits.map(([reason, part]) => reason + " " + percent(part)).join(", ");
    dataTable(host, {
        caption: "As the driver tells of them once a second. Busy: some kernel ran.",
        noun: "GPU",
        rows: found.gpus,
        text: (row) => row.who + "\n" + row.name + "\n" + limits(row),
        columns: [
            { label: "GPU", word: true, value: (row) => row.who, cell: (row) => [row.who, made("span", "where", row.name)] },
            { label: "Busy", value: (row) => row.busy, cell: (row) => (row.busy === null ? "-" : [shareBar(row.busy, "gpu"), made("span", "part", percent(row.busy))]) },
            of("Memory", (row) => row.memory, (row) => row.of, gib),
            of("Clock", (row) => row.clock, (row) => row.most, (mhz) => whole(mhz) + " MHz"),
            of("Power", (row) => row.power, (row) => row.limit, (watts) => whole(watts) + " W"),
            word("Clocks limited by", limits),
        ],
    });
    return true;
}
