// Places frames and labels for the window and the zoom.

// ---- Text that fits

const probe = document.createElementNS(SVG, "text");
probe.setAttribute("visibility", "hidden");
probe.setAttribute("aria-hidden", "true");

function measure(text) {
    probe.textContent = text;
    return probe.getComputedTextLength();
}

// 0 if the font turns out not to be monospaced; then every label is measured.
function asciiAdvance() {
    labelsGroup.appendChild(probe);
    const wide = measure("WWWWWWWWWWWWWWWWWWWW") / 20;
    const thin = measure("iiiiiiiiiiiiiiiiiiii") / 20;
    probe.remove();
    return Math.abs(wide - thin) < 0.05 ? Math.max(wide, thin) : 0;
}

function fitAscii(text, room, advance) {
    const most = Math.floor(room / advance);
    if (text.length <= most) {
        return text;
    }
    return most >= 4 ? shortened(Array.from(text), most - 2, text) : "";
}

// As much of the text (with "..") as is no wider than room; needs the probe in place.
function fitMeasured(text, room) {
    if (measure(text) <= room) {
        return text;
    }
    const chars = Array.from(text);
    let low = 0;
    let high = chars.length - 1;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (measure(shortened(chars, middle, text)) <= room) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low >= 2 ? shortened(chars, low, text) : "";
}

const ASCII = /^[\x20-\x7e]*$/;
let advance = 0;

function fitLabel(text, room) {
    if (room < 2 * (advance || 0.3 * ROW)) {
        return "";
    }
    return advance && ASCII.test(text) ? fitAscii(text, room, advance) : fitMeasured(text, room);
}

// ---- Drawing

const lines = Array.from(page.querySelectorAll(".heading,.line,.warning,.nothing"))
    .filter((line) => line.parentNode === page)
    .map((line) => [line, line.textContent]);

function windowWidth() {
    const viewport = window.visualViewport;
    const inner = viewport ? viewport.width * viewport.scale : window.innerWidth;
    return Math.max(360, Math.floor(inner));
}

function setHeight(height) {
    for (const element of [svg, paper]) {
        element.setAttribute("width", pageWidth);
        element.setAttribute("height", height);
    }
    svg.setAttribute("viewBox", "0 0 " + pageWidth + " " + height);
}

function layout() {
    pageWidth = windowWidth();
    shift = pageWidth < NARROW ? BAR_ROW : 0;
    // Never lower than the window: the details would be cut off at the edge of a low picture.
    setHeight(Math.max(HEIGHT + shift, window.innerHeight));
    page.setAttribute("transform", "translate(0," + shift + ")");
    placeFrames();
    drawLabels();
    drawAxis();
    placeBar();
    fitLegend();
    fitLines();
}

// The zoomed frame is the window: frames are clipped at its edges, and callers fill it.
function placeFrames() {
    const from = start[zoomed];
    const to = from + total[zoomed];
    const scale = (pageWidth - 2 * PAD) / (to - from);
    for (let i = 0; i < count; i++) {
        const begin = start[i];
        const stop = begin + total[i];
        const low = begin > from ? begin : from;
        const high = stop < to ? stop : to;
        left[i] = PAD + (low - from) * scale;
        width[i] = high > low ? (high - low) * scale : 0;
        const across = width[i] > 0 && (begin < from || stop > to);
        mark(i, faded, "up", across || (i < zoomed && end[i] > zoomed) ? 1 : 0);
        place(i);
    }
}

function place(i) {
    const w = width[i];
    if (w < MIN_WIDTH) {
        if (shown[i]) {
            shown[i] = 0;
            if (isExtra[i]) {
                rects[i].remove();
            } else {
                rects[i].setAttribute("width", "0"); // far cheaper than display="none"
            }
        }
        return;
    }
    const rect = rects[i] || (rects[i] = makeRect(i));
    if (!shown[i]) {
        shown[i] = 1;
        if (isExtra[i]) {
            framesGroup.appendChild(rect);
        }
    }
    rect.setAttribute("x", left[i].toFixed(2));
    rect.setAttribute("width", (w > 4 * GAP ? w - GAP : w).toFixed(2));
}

function drawLabels() {
    const texts = [];
    labelsGroup.appendChild(probe);
    for (let i = 0; i < count; i++) {
        if (!shown[i]) {
            continue;
        }
        const text = fitLabel(names[i], width[i] - GAP - 2 * LABEL_PAD);
        if (text) {
            texts.push([i, text]);
        }
    }
    probe.remove();
    while (labelsGroup.childElementCount > texts.length) {
        labelsGroup.lastElementChild.remove();
    }
    while (labelsGroup.childElementCount < texts.length) {
        labelsGroup.appendChild(document.createElementNS(SVG, "text"));
    }
    let label = labelsGroup.firstElementChild;
    for (const [i, text] of texts) {
        label.removeAttribute("textLength");
        label.setAttribute("x", (left[i] + LABEL_PAD).toFixed(2));
        label.setAttribute("y", tops[i] + BASE);
        label.setAttribute("data-i", i);
        label.setAttribute("class", hit[i] ? "hit" : faded[i] ? "up" : "");
        label.textContent = text;
        label = label.nextElementSibling;
    }
}

// Entries without room are left out: a frame's details say the same.
function fitLegend() {
    let x = PAD;
    for (const swatch of document.querySelectorAll("#legend rect")) {
        const label = swatch.nextElementSibling;
        swatch.setAttribute("x", x);
        label.setAttribute("x", x + 17);
        x += 17 + label.getComputedTextLength();
        const visibility = x <= pageWidth - PAD ? "visible" : "hidden";
        swatch.setAttribute("visibility", visibility);
        label.setAttribute("visibility", visibility);
        x += 14;
    }
}

function fitLines() {
    for (const [line, text] of lines) {
        const barBeside = !shift && line.classList.contains("heading");
        const room = pageWidth - 2 * PAD - (barBeside ? barWidth() + 2 * PAD : 0);
        line.textContent = text;
        const chars = Array.from(text);
        while (chars.length > 3 && line.getComputedTextLength() > room) {
            chars.splice(-Math.max(1, chars.length >> 4));
            line.textContent = chars.join("").trimEnd() + "..";
        }
    }
}
