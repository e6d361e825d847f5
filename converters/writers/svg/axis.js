// Positions in time in a flame chart, formatted as in axis.py.

const AXIS_TIMES = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
const APART = 110; // px from one tick to the next, at least
const IN_UNIT = FACTOR * (NANOSECONDS || 1);
const axisGroup = document.getElementById("axis");

// Position of value in the unit that suits largest, with digits for steps of step.
function position(value, step, largest) {
    return positionText(value * IN_UNIT, step * IN_UNIT, largest * IN_UNIT);
}

function positionText(value, step, largest) {
    if (!NANOSECONDS) {
        return amount(value, UNIT, 0);
    }
    const [name, size] = AXIS_TIMES.find((candidate) => largest >= candidate[1]) || AXIS_TIMES[3];
    const digits = Math.round(Math.log10(size));
    const decimals = Math.min(digits, Math.max(0, Math.ceil(Math.log10(size / Math.max(step, 1)) - 1e-9)));
    return grouped((value / size).toFixed(decimals)) + " " + name;
}

// 1, 2 or 5 times a power of ten.
function roundStep(least) {
    const power = Math.pow(10, Math.floor(Math.log10(least) + 1e-9));
    return power * [1, 2, 5, 10].find((factor) => power * factor >= least * (1 - 1e-9));
}

function drawAxis() {
    if (!axisGroup) {
        return;
    }
    const full = pageWidth - 2 * PAD;
    const from = start[zoomed] * IN_UNIT;
    const to = (start[zoomed] + total[zoomed]) * IN_UNIT;
    const step = roundStep(Math.max((to - from) * APART / full, 1));
    const parts = [];
    for (let i = Math.ceil(from / step); i * step <= to; i++) {
        const x = PAD + (i * step - from) / (to - from) * full;
        const tick = document.createElementNS(SVG, "path");
        tick.setAttribute("d", "M" + x.toFixed(2) + " " + (CHART - 17) + "v14");
        const label = document.createElementNS(SVG, "text");
        label.setAttribute("class", "line");
        label.setAttribute("x", (x + 4).toFixed(2));
        label.setAttribute("y", CHART - 6);
        label.textContent = positionText(i * step, step, to);
        parts.push(tick, label);
    }
    axisGroup.replaceChildren(...parts);
    for (const label of axisGroup.querySelectorAll("text")) {
        if (Number(label.getAttribute("x")) + label.getComputedTextLength() > pageWidth - PAD) {
            label.remove();
        }
    }
}
