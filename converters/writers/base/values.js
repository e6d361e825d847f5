// Values for people, written as units.py and svg_text.py write them. Part of every graph: html_*.js and svg_*.js follow.

const TIMES = [["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
const BYTES = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];

// ``nanoseconds`` are those of one unit, 0 when the values are no times.
function amount(value, unit, nanoseconds) {
    if (nanoseconds) {
        return duration(Math.round(value * nanoseconds));
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
