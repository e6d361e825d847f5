// Tables that can be sorted, searched and opened row by row. All texts are set as text.
// page.py puts the scripts of the graph (writers/html) and those of this folder into one function: tables, report,
// evidence, strip, matrix, jobs, meetings, steps, host, lanes, drawing, details, pointer, open.

const FEW_ROWS = 100;
const tables = [];
let searched = null; // the regular expression of the search, or null

function made(name, className, ...children) {
    const node = document.createElement(name);
    if (className) {
        node.className = className;
    }
    node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return node;
}

// The colour of a kind is in the style sheet, as a fill, so that it follows dark mode; the name is beside it.
function swatchOf(kind) {
    const swatch = made("span", "swatch k-" + kind);
    swatch.setAttribute("aria-hidden", "true");
    swatch.style.backgroundColor = fillOf("k-" + kind);
    return swatch;
}

const fills = new Map();

function fillOf(className) {
    if (!fills.has(className)) {
        const probe = made("i", className);
        document.body.append(probe);
        fills.set(className, getComputedStyle(probe).fill);
        probe.remove();
    }
    return fills.get(className);
}

function paperColor() {
    if (!fills.has(" paper")) {
        fills.set(" paper", getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
    }
    return fills.get(" paper");
}

function repaintSwatches() {
    fills.clear();
    document.querySelectorAll("[data-heat]").forEach(paintHeat);
    for (const each of document.querySelectorAll("[class*='k-']")) {
        const name = Array.from(each.classList).find((part) => part.startsWith("k-"));
        each.style.backgroundColor = fillOf(name);
    }
}

function kindCell(kind) {
    return made("span", "kind", swatchOf(kind), kind);
}

function shareBar(part, kind) {
    const fill = made("i", "k-" + kind);
    fill.style.width = Math.max(0, Math.min(100, 100 * part)) + "%";
    fill.style.backgroundColor = fillOf("k-" + kind);
    const bar = made("span", "bar", fill);
    bar.setAttribute("aria-hidden", "true");
    return bar;
}

function percent(part) {
    return part === null || part === undefined ? "-" : share(part, 1);
}

function orDash(value, shown) {
    return value === null || value === undefined ? "-" : shown(value);
}

// `spec`: caption, noun of a row; columns, each with label, value (to sort by: number or text), cell (text or nodes),
// and word (for text); rows; text (of a row, for the search); open (the nodes of a row's details), if it has some.
function dataTable(host, spec) {
    const table = made("table", "");
    const caption = made("caption", "");
    const head = made("tr", "");
    const body = made("tbody", "");
    const rest = made("button", "more");
    const state = { sorted: -1, ascending: false, limit: FEW_ROWS, opened: new Set(), order: spec.rows.map((_, i) => i) };
    const texts = [];

    function textOf(i) {
        texts[i] = texts[i] || spec.text(spec.rows[i]);
        return texts[i];
    }

    function sort() {
        state.order = spec.rows.map((_, i) => i);
        if (state.sorted < 0) {
            return;
        }
        const value = spec.columns[state.sorted].value;
        const sign = state.ascending ? 1 : -1;
        const keys = spec.rows.map(value);
        const missing = (key) => key === null || key === undefined;
        state.order.sort(function (a, b) {
            if (missing(keys[a]) || missing(keys[b])) {
                return missing(keys[a]) - missing(keys[b]) || a - b;
            }
            return sign * (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0) || a - b;
        });
    }

    function heads() {
        head.replaceChildren(...spec.columns.map(function (column, i) {
            const button = made("button", "", column.label);
            button.title = column.title || "";
            button.addEventListener("click", function () {
                state.ascending = state.sorted === i ? !state.ascending : Boolean(column.word);
                state.sorted = i;
                sort();
                draw();
                head.children[i].firstChild.focus();
            });
            const cell = made("th", column.word ? "word" : "number", button);
            cell.scope = "col";
            if (state.sorted === i) {
                cell.setAttribute("aria-sort", state.ascending ? "ascending" : "descending");
            }
            return cell;
        }));
    }

    function rowOf(i) {
        const row = spec.rows[i];
        const line = made("tr", state.opened.has(i) ? "open" : "");
        spec.columns.forEach(function (column) {
            const cell = made("td", column.word ? "" : "number");
            const content = column.cell(row);
            if (column.opens && spec.open) {
                const button = made("button", "row", ...[].concat(content.title || content));
                button.setAttribute("aria-expanded", String(state.opened.has(i)));
                button.addEventListener("click", function () {
                    toggle(i);
                    body.querySelector('[data-row="' + i + '"]').focus();
                });
                button.dataset.row = i;
                cell.append(button, ...[].concat(content.more || []));
            } else {
                cell.append(...[].concat(content));
            }
            line.append(cell);
        });
        if (!state.opened.has(i)) {
            return [line];
        }
        const cell = made("td", "", ...spec.open(row));
        cell.colSpan = spec.columns.length;
        return [line, made("tr", "detail", cell)];
    }

    function toggle(i) {
        if (!state.opened.delete(i)) {
            state.opened.add(i);
        }
        draw();
    }

    function draw() {
        const wanted = searched ? state.order.filter((i) => searched.test(textOf(i))) : state.order;
        const shown = wanted.slice(0, state.limit);
        heads();
        body.replaceChildren(...shown.flatMap(rowOf));
        const found = searched ? grouped(String(wanted.length)) + " of " : "";
        caption.textContent = found + plural(spec.rows.length, spec.noun) + (searched ? " found" : "")
            + (spec.caption ? ". " + spec.caption : "");
        rest.hidden = wanted.length <= shown.length;
        rest.textContent = "Show more of " + grouped(String(wanted.length));
    }

    rest.addEventListener("click", function () {
        state.limit *= 5;
        draw();
    });
    table.append(caption, made("thead", "", head), body);
    host.append(table, rest);
    draw();
    tables.push(draw);
    return { open: (i) => (state.opened.has(i) ? null : toggle(i)) };
}

function none(host, text) {
    host.append(made("p", "none", text));
}
