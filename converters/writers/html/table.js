// The table of functions under the zoomed frame: self, total, share; sorted by any column, filtered by the search.

const PAGE_ROWS = 200;

const scopeLine = document.getElementById("scope");
const heads = document.getElementById("heads");
const rows = document.getElementById("rows");
const more = document.getElementById("more");

let sortKey = "";
let ascending = false;
let rowLimit = PAGE_ROWS;
let table = null; // columns by key, each with one entry per function; null when it must be rebuilt

const NUMBERS = [["self", "Self"], ["selfShare", "Self %"], ["total", "Total"], ["totalShare", "Total %"]];
const DELTA_NUMBERS = [
    ["self0", "Self before"], ["self", "Self after"], ["selfDelta", "Self change"],
    ["total0", "Total before"], ["total", "Total after"], ["totalDelta", "Total change"],
];
const WORDS = [["name", "Function"], ["origin", "Kind, module"]];

function tableColumns() {
    return (about.differential ? DELTA_NUMBERS : NUMBERS).concat(WORDS);
}

function makeTable() {
    table = {};
    [table.self, table.total] = perFunction(zoomed, about.differential ? 0 : chosen);
    if (about.differential) {
        [table.self0, table.total0] = perFunction(zoomed, 1);
        table.selfDelta = table.self.map((after, f) => after - table.self0[f]);
        table.totalDelta = table.total.map((after, f) => after - table.total0[f]);
    } else {
        table.selfShare = table.self;
        table.totalShare = table.total;
    }
}

function wantedRows() {
    const wanted = [];
    for (let f = 0; f < about.names.length; f++) {
        const there = table.total[f] > 0 || (about.differential && table.total0[f] > 0);
        if (there && about.kinds[f] >= 0 && (hits === null || hits[f])) {
            wanted.push(f);
        }
    }
    const sign = ascending ? 1 : -1;
    if (sortKey === "name" || sortKey === "origin") {
        const texts = sortKey === "name" ? about.names : about.names.map((_, f) => originOf(f));
        wanted.sort((a, b) => sign * (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : a - b));
    } else {
        const numbers = table[sortKey];
        const key = sortKey.endsWith("Delta") ? (f) => Math.abs(numbers[f]) : (f) => numbers[f];
        wanted.sort((a, b) => sign * (key(a) - key(b)) || table.total[b] - table.total[a] || a - b);
    }
    return wanted;
}

function cell(key, f) {
    const unit = about.values[about.differential ? 0 : chosen][1];
    switch (key) {
    case "name":
        return about.names[f];
    case "origin":
        return originOf(f);
    case "selfShare":
    case "totalShare":
        return share(table[key][f], total[zoomed]);
    case "selfDelta":
        return change(table.self[f], table.self0[f], unit);
    case "totalDelta":
        return change(table.total[f], table.total0[f], unit);
    default:
        return table[key][f] ? human(table[key][f], unit) : "0";
    }
}

function drawTable() {
    sortKey = sortKey || (about.differential ? "selfDelta" : "self");
    if (table === null) {
        makeTable();
    }
    const wanted = wantedRows();
    const shown = wanted.slice(0, rowLimit);
    drawHeads();
    rows.replaceChildren(...shown.map(tableRow));
    scopeLine.textContent = plural(wanted.length, "function") + (hits ? " found" : "")
        + (zoomed ? " under " + shorten(nameOf(zoomed)) : "");
    const rest = wanted.length - shown.length;
    more.hidden = rest === 0;
    more.textContent = "Show " + plural(Math.min(rest, PAGE_ROWS), "more row") + " of " + grouped(String(rest));
}

function drawHeads() {
    heads.replaceChildren(...tableColumns().map(function ([key, label]) {
        const head = document.createElement("th");
        const button = document.createElement("button");
        button.textContent = label;
        button.dataset.key = key;
        head.scope = "col";
        head.className = key === "name" || key === "origin" ? "word" : "number";
        if (key === sortKey) {
            head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        }
        head.appendChild(button);
        return head;
    }));
}

function tableRow(f) {
    const row = document.createElement("tr");
    for (const [key] of tableColumns()) {
        const item = document.createElement("td");
        const text = cell(key, f);
        if (key === "name") {
            const button = document.createElement("button");
            button.className = "name";
            button.dataset.function = f;
            button.title = "Show it in the graph";
            button.textContent = text;
            const swatch = document.createElement("span");
            swatch.className = "swatch";
            swatch.style.backgroundColor = about.differential
                ? colors.deltas[deltaStep(table.total[f], table.total0[f])]
                : colors.classes[about.css[f]];
            item.append(swatch, button);
        } else {
            item.textContent = text;
        }
        item.className = key === "name" ? "function" : key === "origin" ? "origin" : "number";
        if (key.endsWith("Delta") && table[key][f]) {
            item.classList.add(table[key][f] > 0 ? "worse" : "better");
        }
        row.appendChild(item);
    }
    return row;
}

heads.addEventListener("click", function (event) {
    const key = event.target.dataset.key;
    if (!key) {
        return;
    }
    ascending = key === sortKey ? !ascending : key === "name" || key === "origin";
    sortKey = key;
    rowLimit = PAGE_ROWS;
    drawTable();
    heads.querySelector('[data-key="' + key + '"]').focus();
});

more.addEventListener("click", function () {
    rowLimit += PAGE_ROWS;
    drawTable();
});

rows.addEventListener("click", function (event) {
    const f = event.target.dataset.function;
    if (f !== undefined) {
        setSearch("^" + about.names[Number(f)].replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&") + "$", true);
        setView(lastGraph);
    }
});
