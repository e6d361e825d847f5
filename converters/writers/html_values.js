// Values for people, written as units.py and svg_text.py write them.
// The html_*.js are one script, in the order values, tree, draw, table, page, input; html.py puts them into one function.

const FACTORS = { nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9 };
const TIMES = [["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
const BYTES = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];

function human(value, unit) {
    if (value < 0) {
        return "\u2212" + human(-value, unit);
    }
    if (FACTORS[unit]) {
        return duration(Math.round(value * FACTORS[unit]));
    }
    if (unit === "bytes") {
        const scale = BYTES.find((candidate) => value >= candidate[1]);
        return scale ? grouped((value / scale[1]).toFixed(1)) + " " + scale[0] : value.toFixed(0) + " B";
    }
    return grouped(value.toFixed(0)) + (unit === "count" ? "" : " " + unit);
}

function duration(ns) {
    if (ns < 1000) {
        return ns + " ns";
    }
    for (const [unit, size] of TIMES) {
        const value = ns / size;
        if (unit === "s" && value >= 59.95) {
            break;
        }
        if (value < 999.5) {
            return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0) + " " + unit;
        }
    }
    return longDuration(Math.round(ns / 1e9));
}

function longDuration(seconds) {
    const two = (number) => String(number).padStart(2, "0");
    if (seconds < 3600) {
        return Math.floor(seconds / 60) + " min " + two(seconds % 60) + " s";
    }
    const minutes = Math.round(seconds / 60);
    if (minutes < 1440) {
        return Math.floor(minutes / 60) + " h " + two(minutes % 60) + " min";
    }
    const hours = Math.round(seconds / 3600);
    return Math.floor(hours / 24) + " d " + two(hours % 24) + " h";
}

function grouped(digits) {
    const point = digits.indexOf(".");
    const whole = point < 0 ? digits : digits.slice(0, point);
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + digits.slice(whole.length);
}

function plural(number, noun) {
    const ending = number === 1 ? "" : noun.endsWith("s") ? "es" : "s";
    return grouped(String(number)) + " " + noun + ending;
}

function share(part, whole) {
    if (!(whole > 0)) {
        return "-";
    }
    const text = (100 * part / whole).toFixed(1);
    if (text === "0.0" && part > 0) {
        return "<0.1 %";
    }
    return (text === "100.0" && part < whole ? ">99.9" : text) + " %";
}

// How much more or less it became; "new" where there was nothing.
function change(after, before, unit) {
    if (after === before) {
        return "0";
    }
    const sign = after > before ? "+" : "";
    const relative = before > 0 ? sign + (100 * (after - before) / before).toFixed(1) + " %" : after > 0 ? "new" : "-";
    return sign + human(after - before, unit) + " (" + relative.replace("-", "\u2212") + ")";
}
