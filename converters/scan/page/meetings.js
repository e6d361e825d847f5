// Meetings of ranks: a row for each rank of each communicator.

const signed = (time) => (time < 0 ? "-" + duration(-time) : duration(time));

function meetingTable(report) {
    const section = document.getElementById("meetings");
    if (!report.meetings.length) {
        section.remove();
        return;
    }
    dataTable(section.querySelector(".host"), {
        caption: "Last: of the meetings to which all ranks came. Late: median, after the median of all ranks.",
        noun: "rank",
        rows: report.meetings,
        text: (row) => [row.name, row.met, row.who, row.standing, ...row.waits.map(([place]) => place)].join("\n"),
        open: (row) => [definitions([
            ["Communicator", row.met],
            ["Stands still", row.standing],
            ...row.waits.map(([place, part]) => ["Between, " + percent(part), place]),
            ...row.kinds.map(([name, meetings, spread, longest]) => [
                name, plural(meetings, "meeting") + ", " + duration(spread) + " from the first arrival to the last (median), "
                    + duration(longest) + " at most",
            ]),
        ])],
        columns: [
            { label: "Rank", word: true, opens: true, value: (row) => row.who, cell: (row) => ({ title: row.who, more: [made("span", "where", row.name)] }) },
            number("Last", (row) => row.last, percent),
            number("Late", (row) => row.late, signed),
            number("Waited", (row) => row.waited, duration, "For the last ones, all together"),
            number("Calls", (row) => row.calls, whole),
            number("Between", (row) => row.between, duration, "From the end of a meeting to its next arrival"),
        ],
    });
}
