// User interaction: the bar, the details of a frame, pointer and keys. Names go into the document
// as text nodes only.

// ---- The bar

function html(name, className) {
    const element = document.createElementNS(XHTML, name);
    element.className = className || "";
    return element;
}

function overlay(id) {
    const element = document.createElementNS(SVG, "foreignObject");
    element.id = id;
    svg.appendChild(element);
    return element;
}

const barBox = overlay("bar");
const bar = html("div", "bar");
const result = html("output");
const input = html("input");
const caseButton = html("button");
const resetButton = html("button");
input.type = "text";
input.placeholder = "Search: regular expression";
input.title = "/ or Ctrl-F";
input.spellcheck = false;
input.setAttribute("autocomplete", "off");
input.setAttribute("aria-label", "Search frames by regular expression");
caseButton.textContent = "Aa";
caseButton.title = "Match case";
caseButton.setAttribute("aria-label", "Match case");
bar.setAttribute("role", "search");
framesGroup.setAttribute("role", "group");
framesGroup.setAttribute("aria-label", "Frames: arrow keys move, Enter zooms, Escape shows all, / searches");
resetButton.textContent = "Reset";
resetButton.title = "Zoom out and end the search (Escape)";
bar.append(result, input, caseButton, resetButton);
barBox.appendChild(bar);

function barWidth() {
    return shift ? pageWidth - 2 * PAD : Math.min(640, Math.floor(pageWidth * 0.55));
}

// Until the first input the bar stays on top, so that it covers no frame in a picture of the whole graph.
let attended = false;

function attend() {
    if (!attended) {
        attended = true;
        placeBar();
    }
}

for (const kind of ["pointermove", "pointerdown", "wheel", "keydown", "touchstart"]) {
    window.addEventListener(kind, attend, { capture: true, passive: true });
}

function placeBar() {
    const w = barWidth();
    const top = attended ? window.scrollY : 0;
    barBox.setAttribute("x", pageWidth - PAD - w);
    barBox.setAttribute("y", 10 + top);
    barBox.setAttribute("width", w);
    barBox.setAttribute("height", 36);
    bar.classList.toggle("stuck", top > 20);
}

// ---- Details

const tipBox = overlay("tip");
const tip = html("div", "tip");
tip.setAttribute("role", "status");
tipBox.appendChild(tip);
tipBox.setAttribute("display", "none");
let tipFrame = -1;

function details(i) {
    const shares = [told(total[i]), share(total[i], total[0]) + " of all"];
    if (zoomed && i >= zoomed && i < end[zoomed]) {
        shares.push(share(total[i], total[zoomed]) + " of " + shorten(names[zoomed]));
    }
    const text = [shares.join(" · ")];
    if (CHART && parent[i] >= 0) {
        const stop = start[i] + total[i];
        const step = total[i] / 100; // three digits, as in the length
        text.push("from " + position(start[i], step, stop) + " to " + position(stop, step, stop));
    }
    if (times[i] > 0) {
        const mean = NANOSECONDS || UNIT === "bytes" ? ", " + human(total[i] / times[i]) + " on average" : "";
        text.push(counted(times[i], COUNTED) + mean);
    }
    if (DRAWN) {
        text.push(...compared(i));
    } else if (i > 0) {
        text.push(told(own[i]) + " in itself, " + told(total[i] - own[i]) + " in what it calls");
    }
    return text;
}

function compared(i) {
    const drawnBefore = DRAWN === "before";
    const other = drawnBefore ? total[i] + delta[i] : total[i] - delta[i];
    const [after, before] = drawnBefore ? [other, total[i]] : [total[i], other];
    const text = [(drawnBefore ? "after " : "before ") + human(other) + ": " + change(after, before)];
    const ownBefore = drawnBefore ? own[i] : own[i] - ownDelta[i];
    if ((own[i] || ownDelta[i]) && (own[i] !== total[i] || ownDelta[i] !== delta[i])) {
        text.push("in itself " + human(own[i]) + ": " + change(ownBefore + ownDelta[i], ownBefore));
    }
    return text;
}

function shorten(name) {
    return name.length > 40 ? shortened(Array.from(name), 38, name) : name;
}

function showTip(i, x, y) {
    if (i !== tipFrame) {
        tipFrame = i;
        rects[i].replaceChildren(); // the <title> would pop up beside the details
        const name = html("b");
        name.textContent = names[i];
        const rows = details(i).map(function (line) {
            const row = html("div");
            row.textContent = line;
            return row;
        });
        const origin = html("i");
        origin.textContent = origins[i];
        tip.replaceChildren(name, ...rows, origin);
    }
    const most = Math.min(620, pageWidth - 2 * PAD);
    tip.style.maxWidth = most + "px";
    tipBox.removeAttribute("display");
    tipBox.setAttribute("width", most);
    tipBox.setAttribute("height", 10);
    const w = tip.offsetWidth;
    const h = tip.offsetHeight;
    const bottom = window.scrollY + window.innerHeight;
    const below = y + 18 + h < bottom ? y + 18 : y - h - 10;
    tipBox.setAttribute("x", Math.max(4, Math.min(x + 12, pageWidth - w - 6)));
    tipBox.setAttribute("y", Math.max(window.scrollY + 4, below));
    tipBox.setAttribute("height", h);
}

function hideTip() {
    tipFrame = -1;
    tipBox.setAttribute("display", "none");
}

// ---- Pointer and keys

function frameAt(event) {
    const i = indexOf.get(event.target);
    return i === undefined ? -1 : i;
}

framesGroup.addEventListener("click", function (event) {
    const i = frameAt(event);
    if (i >= 0) {
        setFocused(i);
        zoom(i);
    }
});

svg.addEventListener("pointermove", function (event) {
    const i = frameAt(event);
    if (i >= 0) {
        showTip(i, event.clientX + window.scrollX, event.clientY + window.scrollY);
    } else {
        hideTip();
    }
});

svg.addEventListener("pointerleave", hideTip);

// On the document: Chromium lets Tab stop at an SVG element that listens for focus.
document.addEventListener("focusin", function (event) {
    const i = frameAt(event);
    if (i >= 0 && event.target.matches(":focus-visible")) {
        showTip(i, left[i], tops[i] + shift + 8);
    }
});
document.addEventListener("focusout", hideTip);

// One frame at a time can be reached with Tab; the arrow keys move on from there.
function setFocused(i) {
    rects[focused].removeAttribute("tabindex");
    focused = i;
    const rect = rects[i];
    rect.setAttribute("tabindex", "0");
    rect.setAttribute("role", "button");
    rect.setAttribute("aria-label", names[i] + ", " + details(i).join(", "));
}

function widestChild(i) {
    let best = -1;
    for (let child = i + 1; child < end[i]; child = end[child]) {
        if (shown[child] && (best < 0 || width[child] > width[best])) {
            best = child;
        }
    }
    return best;
}

function neighbour(i, step) {
    for (let j = i + step; j >= 0 && j < count; j += step) {
        if ((depth[i] ? tops[j] === tops[i] : depth[j] === 0) && width[j] >= 0.5) {
            return j;
        }
    }
    return -1;
}

function move(key) {
    const from = shown[focused] ? focused : zoomed;
    const outward = INVERTED ? "ArrowDown" : "ArrowUp";
    if (key === "ArrowLeft" || key === "ArrowRight") {
        return neighbour(from, key === "ArrowLeft" ? -1 : 1);
    }
    return key === outward ? widestChild(from) : parent[from];
}

framesGroup.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) {
        return;
    }
    if (event.key === "Enter" || event.key === " ") {
        zoom(focused);
        event.preventDefault();
    } else if (event.key.startsWith("Arrow")) {
        const next = move(event.key);
        if (next >= 0) {
            setFocused(next);
            rects[next].focus();
        }
        event.preventDefault();
    }
});

document.addEventListener("keydown", function (event) {
    const inSearch = event.target === input;
    const find = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "f";
    if (event.key === "Escape") {
        reset();
        input.blur();
    } else if (!inSearch && (find || (event.key === "/" && !event.ctrlKey && !event.metaKey))) {
        input.focus();
        input.select();
        event.preventDefault();
    }
});

input.addEventListener("input", () => setSearch(input.value, matchCase));
caseButton.addEventListener("click", () => setSearch(pattern, !matchCase));
resetButton.addEventListener("click", reset);

// ---- Window

let queued = false;
window.addEventListener("resize", function () {
    if (!queued) {
        queued = true;
        requestAnimationFrame(function () {
            queued = false;
            layout();
        });
    }
});
window.addEventListener("scroll", function () {
    hideTip();
    placeBar();
});
window.addEventListener("hashchange", restore);
window.addEventListener("beforeprint", () => setHeight(HEIGHT + shift));
window.addEventListener("afterprint", layout);

labelsGroup.replaceChildren();
advance = asciiAdvance();
setFocused(0);
restore();
// In a graph that is taller than the window, the roots should be visible first.
if (!INVERTED && !CHART && window.innerHeight < HEIGHT && window.scrollY === 0) {
    window.scrollTo(0, HEIGHT);
}
