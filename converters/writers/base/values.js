// Values for people, in the same words as base/units.py and svg/text.py. Part of every graph.

const TIMES = [["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
const BYTES = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];

// ``nanoseconds`` are those of one unit, 0 if the values are not times.
function amount(value, unit, nanoseconds) {
    if (nanoseconds) {
        return duration(Math.round(value * nanoseconds));
    }
    if (unit === "bytes") {
        const scale = BYTES.find((candidate) => value >= candidate[1]);
        return scale ? grouped((value / scale[1]).toFixed(1)) + " " + scale[0] : value.toFixed(0) + " B";
    }
    if (unit === "ppb") {
        return share(Math.round(value), 1e9);
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

const PATH = /^(?:[A-Za-z]+:)?\/\S*\/\S*$/;

// ``most`` characters and "..": a path loses its beginning, everything else its end, as in svg/text.py.
function shortened(chars, most, name) {
    return PATH.test(name) ? ".." + chars.slice(-most).join("") : chars.slice(0, most).join("") + "..";
}

// What a value of unit "count" counts, in the plural, as in flame/tree.py.
function things(name) {
    const last = name.slice(name.lastIndexOf("_") + 1);
    return last === "" || last === "count" ? "times" : last;
}

// ``3 lines not understood``, ``1 line not understood``, as in base/units.py.
function counted(number, kinds) {
    return grouped(String(number)) + " " + (number === 1 ? kinds.replace(/([a-rt-z0-9])s\b/i, "$1") : kinds);
}

function grouped(digits) {
    const point = digits.indexOf(".");
    const whole = point < 0 ? digits : digits.slice(0, point);
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + digits.slice(whole.length);
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
