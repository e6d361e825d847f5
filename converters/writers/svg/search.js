// Search, zoom, and their state in the fragment of the address.

// ---- Search

function search() {
    let expression = null;
    result.classList.remove("bad");
    if (pattern) {
        try {
            expression = new RegExp(pattern, matchCase ? "u" : "iu");
        } catch (error) {
            try {
                expression = new RegExp(pattern, matchCase ? "" : "i");
            } catch (again) {
                result.classList.add("bad");
            }
        }
    }
    const verdicts = new Map();
    for (let i = 0; i < count; i++) {
        let found = 0;
        if (expression) {
            found = verdicts.get(names[i]);
            if (found === undefined) {
                found = expression.test(names[i]) ? 1 : 0;
                verdicts.set(names[i], found);
            }
        }
        mark(i, hit, "hit", found);
    }
    framesGroup.classList.toggle("searching", expression !== null);
    for (const label of labelsGroup.children) {
        const i = Number(label.getAttribute("data-i"));
        label.setAttribute("class", hit[i] ? "hit" : faded[i] ? "up" : "");
    }
    report(expression !== null);
}

// What the matches between two places take, a match inside a match counted once.
function matchedBetween(from, to) {
    let sum = 0;
    let i = 0;
    while (i < count) {
        if (hit[i]) {
            sum += Math.max(0, Math.min(start[i] + total[i], to) - Math.max(start[i], from));
            i = end[i];
        } else {
            i++;
        }
    }
    return sum;
}

function report(searching) {
    let text = "";
    if (searching) {
        const all = matchedBetween(0, total[0]);
        text = "matched " + share(all, ROOTS * total[0]) + " (" + human(all) + (ROOTS > 1 ? " of " + ROOTS + " tracks)" : ")");
        if (zoomed) {
            const here = matchedBetween(start[zoomed], start[zoomed] + total[zoomed]);
            text += ", " + share(here, ROOTS * total[zoomed]) + " here";
        }
    } else if (pattern) {
        text = "not a regular expression";
    }
    result.textContent = text;
    result.title = text;
    resetButton.disabled = !zoomed && !pattern;
}

// ---- Zoom and state; the state is in the fragment of the address

function readState() {
    const state = new URLSearchParams(location.hash.slice(1));
    const wanted = Number(state.get("zoom"));
    zoomed = Number.isInteger(wanted) && wanted > 0 && wanted < count ? wanted : 0;
    pattern = state.get("search") || "";
    matchCase = state.get("case") === "1";
    input.value = pattern;
    caseButton.setAttribute("aria-pressed", String(matchCase));
}

function saveState(step) {
    const state = new URLSearchParams();
    if (zoomed) {
        state.set("zoom", zoomed);
    }
    if (pattern) {
        state.set("search", pattern);
    }
    if (matchCase) {
        state.set("case", "1");
    }
    const fragment = "#" + state.toString();
    if (fragment === (location.hash || "#")) {
        return;
    }
    try {
        history[step](null, "", fragment);
    } catch (error) {
        // A sandboxed page may not have a history: the graph works, only its state is not kept.
    }
}

function restore() {
    readState();
    layout();
    search();
}

function zoom(i) {
    if (depth[i] === 0) {
        i = 0; // all roots are equally long
    }
    if (i !== zoomed) {
        zoomed = i;
        layout();
        search();
        saveState("pushState");
    }
    hideTip();
}

function setSearch(text, exact) {
    pattern = text;
    matchCase = exact;
    caseButton.setAttribute("aria-pressed", String(exact));
    search();
    saveState("replaceState");
}

function reset() {
    input.value = "";
    setSearch("", matchCase);
    zoom(0);
}
