// What the processes of a row did in each slice of the scan: a strip of boxes in the colours of kinds.

function changesOf(slices) {
    const kinds = slices.kinds.filter(Boolean);
    return kinds.filter((kind, i) => i && kind !== kinds[i - 1]).length;
}

function seconds(ns) {
    return (ns / 1e9).toFixed(1);
}

// From second 0.0 to 1.0: cpu 98.1 %, sleep 1.9 %
function sliceTitle(slices, i) {
    const whole = slices.parts[i].reduce((sum, part) => sum + part[1], 0);
    const begin = (slices.first + i) * slices.length;
    const parts = slices.parts[i].map(([kind, time]) => kind + " " + share(time, whole)).join(", ");
    return "From second " + seconds(begin) + " to " + seconds(begin + slices.length) + ": " + (parts || "nothing lived");
}

// In words: cpu until second 2.0, sleep until second 4.0, lock to the end.
function stripText(slices) {
    const told = [];
    slices.kinds.forEach(function (kind, i) {
        if (i + 1 === slices.kinds.length || slices.kinds[i + 1] !== kind) {
            told.push((kind || "nothing") + " until second " + seconds((slices.first + i + 1) * slices.length));
        }
    });
    const begin = slices.first ? "from second " + seconds(slices.first * slices.length) + ": " : "";
    return begin + told.join(", ");
}

function stripOf(slices, trace) {
    const strip = made("span", "strip");
    strip.setAttribute("role", "img");
    strip.setAttribute("aria-label", "Over time, " + stripText(slices));
    const number = trace ? Math.ceil(trace / slices.length) : slices.first + slices.kinds.length;
    for (let i = 0; i < number; i++) {
        const kind = slices.kinds[i - slices.first];
        const box = made("i", kind ? "k-" + kind : "absent");
        if (kind) {
            box.style.backgroundColor = fillOf("k-" + kind);
            box.title = sliceTitle(slices, i - slices.first);
        }
        strip.append(box);
    }
    return strip;
}

function overTime(slices) {
    const parts = made("ol", "slices", ...slices.parts.map((_, i) => made("li", "", sliceTitle(slices, i))));
    const each = made("details", "", made("summary", "", "each slice"), parts);
    return [slices.told || stripText(slices), each];
}
