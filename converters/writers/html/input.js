// Pointer and keys, print and dark mode; and the start of the graph.

// ---- Pointer

function frameAt(event) {
    const box = canvas.getBoundingClientRect();
    return nodeUnder(event.clientX - box.left, event.clientY - box.top + graph.scrollTop);
}

canvas.addEventListener("pointermove", function (event) {
    const i = frameAt(event);
    canvas.style.cursor = i >= 0 ? "pointer" : "default";
    if (i >= 0) {
        showTip(i, event.clientX, event.clientY);
    } else {
        hideTip();
    }
});
canvas.addEventListener("pointerleave", hideTip);
canvas.addEventListener("blur", hideTip);
canvas.addEventListener("click", function (event) {
    const i = frameAt(event);
    if (i >= 0) {
        zoom(i);
    }
});
graph.addEventListener("scroll", function () {
    hideTip();
    draw();
});

// ---- Keys

function neighbour(i, step) {
    const level = depth[i];
    const after = step > 0 ? start[i] + total[i] : start[i];
    for (let at = levelAt[level]; step > 0 && at < levelAt[level + 1]; at++) {
        const other = byDepth[at];
        if (other > i && start[other] >= after && extent(other)[1] >= MIN_WIDTH) {
            return other;
        }
    }
    for (let at = levelAt[level + 1] - 1; step < 0 && at >= levelAt[level]; at--) {
        const other = byDepth[at];
        if (other < i && extent(other)[1] >= MIN_WIDTH) {
            return other;
        }
    }
    return -1;
}

function widestChild(i) {
    let best = -1;
    for (let child = i + 1; child < end[i]; child = end[child]) {
        if (extent(child)[1] >= MIN_WIDTH && (best < 0 || total[child] > total[best])) {
            best = child;
        }
    }
    return best;
}

function next(key) {
    const from = extent(focused)[1] >= MIN_WIDTH ? focused : zoomed;
    if (key === "ArrowLeft" || key === "ArrowRight") {
        return neighbour(from, key === "ArrowLeft" ? -1 : 1);
    }
    return key === (inverted ? "ArrowDown" : "ArrowUp") ? widestChild(from) : parent[from];
}

canvas.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) {
        return;
    }
    if (event.key === "Enter" || event.key === " ") {
        zoom(focused);
        event.preventDefault();
    } else if (event.key.startsWith("Arrow")) {
        const to = next(event.key);
        if (to >= 0) {
            focused = to;
            reveal(to);
            draw();
            const box = canvas.getBoundingClientRect();
            showTip(to, box.left + extent(to)[0], box.top + top_(to) - graph.scrollTop + 8);
        }
        event.preventDefault();
    }
});

document.addEventListener("keydown", function (event) {
    const find = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "f";
    if (event.key === "Escape") {
        reset();
        input.blur();
    } else if (event.target !== input && (find || (event.key === "/" && !event.ctrlKey && !event.metaKey))) {
        input.focus();
        input.select();
        event.preventDefault();
    }
});

// ---- The bar

byId("views").addEventListener("click", function (event) {
    if (event.target.dataset.view) {
        setView(event.target.dataset.view);
    }
});
input.addEventListener("input", () => setSearch(input.value, matchCase));
caseButton.addEventListener("click", () => setSearch(pattern, !matchCase));
resetButton.addEventListener("click", reset);
choice.addEventListener("change", function () {
    chosen = Number(choice.value);
    chooseValue(chosen);
    zoomed = total[zoomed] > 0 ? zoomed : 0;
    show();
    saveState("pushState");
});

// ---- Window, colours, paper

function repaint() {
    readColors();
    paintLegend();
    refresh();
}

function print(on) {
    printing = on;
    document.documentElement.classList.toggle("printing", on);
    repaint();
}

// After readData, and when all around the graph has its size.
function openGraph() {
    values();
    if (about.differential) {
        about.values.forEach((_, value) => sumsOf(value));
    }
    readColors();
    legend();
    restore();
    // In a graph that is taller than the window, the roots should be visible first.
    if (!inverted && !zoomed) {
        graph.scrollTop = graph.scrollHeight;
    }
    new ResizeObserver(refresh).observe(document.documentElement);
    window.addEventListener("hashchange", restore);
    window.addEventListener("popstate", restore);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    window.matchMedia("print").addEventListener("change", (event) => print(event.matches));
}

function giveUp(reason) {
    nothing.hidden = false;
    nothing.textContent = "This page cannot be shown: " + reason;
}

function canUnpack() {
    if (typeof DecompressionStream === "undefined") {
        giveUp("it needs Chrome 80, Firefox 113, Safari 16.4 or a newer browser.");
        return false;
    }
    return true;
}

function damaged(error) {
    giveUp("its data is damaged (" + error.message + ").");
}
