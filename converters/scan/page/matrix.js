// Who waits for whom: a table whose cells are coloured by how long.

function matrixTable(report) {
    const host = document.querySelector("#waits .host");
    const found = report.matrix;
    if (!found) {
        none(host, "Who ends waits was not recorded.");
        return;
    }
    // Only those who waited have a row, only those who ended waits a column.
    const rows = [...new Set(found.cells.map(([victim]) => victim))].sort((a, b) => a - b);
    const columns = [...new Set(found.cells.map(([, end]) => end))].sort((a, b) => a - b);
    const times = new Map(found.cells.map(([victim, end, time]) => [victim + " " + end, time]));
    const most = Math.max(...found.cells.map(([, , time]) => time));
    const line = made("p", "", "");
    line.setAttribute("role", "status");
    const table = made("table", "cells");
    table.id = "matrix";
    const who = found.by === "process" ? "process" : "thread";
    host.append(made("p", "", "Rows: who waited. Columns: the last " + who + " of the chain that ended the wait. In % of "
        + duration(found.total) + " of waiting" + (found.idle ? "; " + duration(found.idle) + " of threads that only wait for work are left out" : "")
        + ". Arrow keys go from cell to cell."));
    table.append(made("caption", "", "Waiting in %"));
    const corner = made("td", "");
    const head = made("tr", "", corner, ...columns.map(function (column) {
        const cell = made("th", "", made("span", "", found.names[column]));
        cell.scope = "col";
        cell.title = found.names[column];
        return cell;
    }));
    const body = made("tbody", "", ...rows.map(function (row) {
        const title = made("th", "", found.names[row]);
        title.scope = "row";
        title.title = found.names[row];
        return made("tr", "", title, ...columns.map((column) => heatCell(found, row, column, times, most)));
    }));
    table.append(made("thead", "", head), body);
    host.append(table, line);
    const say = function (cell) {
        line.textContent = cell.title;
    };
    roam(body, say);
    body.addEventListener("click", (event) => event.target.closest("td") && say(event.target.closest("td")));
    pairTable(host, found);
}

// The same as a table of pairs, which is made when it is wanted.
function pairTable(host, found) {
    const box = made("details", "", made("summary", "", "As a table"));
    box.id = "pairs";
    box.addEventListener("toggle", function () {
        if (!box.open || box.querySelector("table")) {
            return;
        }
        dataTable(box, {
            caption: "",
            noun: "pair",
            rows: found.cells.slice().sort((a, b) => b[2] - a[2]),
            text: ([victim, end]) => found.names[victim] + "\n" + found.names[end],
            columns: [
                word("Who waited", ([victim]) => found.names[victim]),
                word("For whom", ([, end]) => found.names[end]),
                number("Waited", ([, , time]) => time, duration),
                number("Share", ([, , time]) => time, (time) => share(time, found.total), "Of all waiting"),
            ],
        });
    });
    host.append(box);
}

function heatCell(found, row, column, times, most) {
    const time = times.get(row + " " + column) || 0;
    const text = made("span", "", time ? heatText(time, found.total) : "");
    const cell = made("td", row === column && time ? "self" : "", text);
    cell.tabIndex = -1;
    cell.title = time
        ? found.names[row] + " waited " + duration(time) + (row === column ? " for itself" : " for " + found.names[column])
            + ": " + share(time, found.total) + " of all waiting"
        : found.names[row] + " did not wait for " + found.names[column];
    if (time) {
        text.dataset.heat = Math.sqrt(time / most).toFixed(3);
        paintHeat(text);
    }
    return cell;
}

// The colour of heat lies over the paper; the text is black or white, whichever can be read better.
function paintHeat(text) {
    const part = 0.08 + 0.92 * Number(text.dataset.heat);
    const paper = paperColor();
    const mixed = fillOf("heat").match(/\d+/g).map((value, i) => Math.round(part * value + (1 - part) * paper[i]));
    const [red, green, blue] = mixed.map((value) => value / 255).map((value) => (value <= 0.04 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    text.style.backgroundColor = "rgb(" + mixed.join(",") + ")";
    text.style.color = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

function heatText(time, total) {
    const part = 100 * time / total;
    return part >= 9.95 ? part.toFixed(0) : part >= 0.05 ? part.toFixed(1) : "·";
}

// One cell is reached by Tab, the others by the arrow keys.
function roam(body, say) {
    const first = body.querySelector("td");
    if (first) {
        first.tabIndex = 0;
    }
    body.addEventListener("keydown", function (event) {
        const cell = event.target.closest("td");
        const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
        if (!cell || !step || event.ctrlKey || event.metaKey || event.altKey) {
            return;
        }
        const line = body.rows[cell.parentNode.sectionRowIndex + step[0]];
        const to = line && line.cells[cell.cellIndex + step[1]];
        if (to && to.tagName === "TD") {
            cell.tabIndex = -1;
            to.tabIndex = 0;
            to.focus();
            say(to);
        }
        event.preventDefault();
    });
}
