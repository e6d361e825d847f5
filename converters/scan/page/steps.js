// Steps: a row for each thread that makes some, named by the user or found by its regular waits.

const part = (time, row) => (row.wall ? time / row.wall : null);

function stepTable(report) {
    const section = document.getElementById("steps");
    if (!report.steps.length) {
        section.remove();
        return;
    }
    dataTable(section.querySelector(".host"), {
        caption: "Shares: of the time of the steps.",
        noun: "thread",
        rows: report.steps,
        text: (row) => [row.name, row.who, ...row.waits.map(([place]) => place)].join("\n"),
        open: (row) => [definitions([
            ["Found", row.evidence],
            ["Loader of data", row.loader ? duration(row.loader) + " of a step" : ""],
            ["Made by", row.reader ? madeBy(row.reader) : ""],
            ...row.waits.map(([place, time]) => [share(time, row.wall), place]),
        ])],
        columns: [
            { label: "Step", word: true, opens: true, value: (row) => row.name, cell: (row) => ({ title: row.name, more: [made("span", "where", row.who)] }) },
            number("Steps", (row) => row.count, whole),
            number("Per s", (row) => row.rate, (rate) => rate.toPrecision(3)),
            number("Median", (row) => row.median, duration),
            number("p90", (row) => row.p90, duration, "So long take nine in ten at most"),
            number("Max", (row) => row.max, duration),
            number("On CPU", (row) => part(row.on_cpu, row), percent),
            number("No core", (row) => part(row.runnable, row), percent),
        ],
    });
}

function madeBy([threads, work, most]) {
    const rate = most ? ", " + most.toPrecision(3) + " a second at most" : "";
    return plural(threads, "thread") + (threads > 1 ? ", one of which takes " : ", which takes ") + duration(work) + " for each" + rate;
}
