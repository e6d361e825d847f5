// Values of any unit, and their comparison.
// writer.py puts base/values.js and the scripts of this folder into one function: values, tree, draw, table, page, input, start.

const FACTORS = { nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9 };

function human(value, unit) {
    return (value < 0 ? "\u2212" : "") + amount(Math.abs(value), unit, FACTORS[unit]);
}

function plural(number, noun) {
    const ending = number === 1 ? "" : noun.endsWith("s") ? "es" : "s";
    return grouped(String(number)) + " " + noun + ending;
}

// How much the value changed; "new" if there was none before.
function change(after, before, unit) {
    if (after === before) {
        return "0";
    }
    const sign = after > before ? "+" : "";
    const relative = before > 0 ? sign + (100 * (after - before) / before).toFixed(1) + " %" : after > 0 ? "new" : "-";
    return sign + human(after - before, unit) + " (" + relative.replace("-", "\u2212") + ")";
}
