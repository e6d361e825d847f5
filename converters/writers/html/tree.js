// Unpacks the block of data (see data.py) into a tree, and sums over it.

// Node i has the descendants i + 1 … end[i] - 1; node 0 is all, the others are calls of func[i].
let about = null;
let count = 0;
let levels = 0;
let func, depth, parent, end; // Int32Arrays by node
let own, total, start; // Float64Arrays by node: of the chosen value, in its unit
let columns = []; // per value, the own amounts, stack by stack
let nodeClass; // Uint8Array: the class of each node but the first, if about.byNode is set
let lastNode; // Int32Array: the node that a stack ends in
let byDepth, levelAt; // nodes sorted by depth; where each depth begins in them

async function unpack(element) {
    const text = atob(element.textContent.replace(/\s+/g, ""));
    element.remove();
    const packed = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) {
        packed[i] = text.charCodeAt(i);
    }
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
}

function readData(buffer) {
    const view = new DataView(buffer);
    const length = view.getUint32(0, true);
    about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const stacks = about.stacks;
    let at = 4 + length;
    columns = about.values.map(function () {
        const column = new Float64Array(buffer, at, stacks);
        at += 8 * stacks;
        return column;
    });
    const shared = new Uint32Array(buffer, at, stacks);
    const added = new Uint32Array(buffer, at + 4 * stacks, stacks);
    const functions = new Uint32Array(buffer, at + 8 * stacks, about.nodes);
    nodeClass = new Uint8Array(buffer, at + 8 * stacks + 4 * about.nodes);
    buildTree(shared, added, functions);
    indexDepths();
}

function buildTree(shared, added, functions) {
    count = functions.length + 1;
    func = new Int32Array(count).fill(-1);
    depth = new Int32Array(count);
    parent = new Int32Array(count).fill(-1);
    end = new Int32Array(count).fill(count);
    lastNode = new Int32Array(shared.length);
    const path = [0];
    let node = 1;
    for (let stack = 0; stack < shared.length; stack++) {
        while (path.length > shared[stack] + 1) {
            end[path.pop()] = node;
        }
        for (let left = added[stack]; left > 0; left--) {
            func[node] = functions[node - 1];
            depth[node] = path.length;
            parent[node] = path[path.length - 1];
            path.push(node++);
        }
        lastNode[stack] = path[path.length - 1];
    }
}

function indexDepths() {
    levels = 1;
    for (let i = 0; i < count; i++) {
        levels = Math.max(levels, depth[i] + 1);
    }
    levelAt = new Int32Array(levels + 1);
    for (let i = 0; i < count; i++) {
        levelAt[depth[i] + 1]++;
    }
    for (let level = 0; level < levels; level++) {
        levelAt[level + 1] += levelAt[level];
    }
    const next = levelAt.slice();
    byDepth = new Int32Array(count);
    for (let i = 0; i < count; i++) {
        byDepth[next[depth[i]]++] = i;
    }
}

// Sums up a column: [own, total] by node.
function addUp(column) {
    const self = new Float64Array(count);
    for (let stack = 0; stack < column.length; stack++) {
        self[lastNode[stack]] += column[stack];
    }
    const sum = self.slice();
    for (let i = count - 1; i > 0; i--) {
        sum[parent[i]] += sum[i];
    }
    return [self, sum];
}

// The sums of the values, cached on first use; a differential profile needs both of its two.
const sums = [];

function sumsOf(value) {
    sums[value] = sums[value] || addUp(columns[value]);
    return sums[value];
}

function chooseValue(value) {
    [own, total] = sumsOf(value);
    start = start || new Float64Array(count);
    const next = new Float64Array(count); // where the next child begins
    for (let i = 1; i < count; i++) {
        const above = parent[i];
        start[i] = next[above];
        next[above] += total[i];
        next[i] = start[i];
    }
}

function nameOf(i) {
    return i > 0 ? about.names[func[i]] : "all";
}

// Kind and module, for display.
function originOf(f) {
    const kind = about.kinds[f];
    const module = about.modules[f];
    return [kind >= 0 ? about.labels[kind] : "", module >= 0 ? about.paths[module] : ""].filter(Boolean).join(" · ");
}

// The node of this depth under this position, -1 if there is none.
function nodeAt(level, position) {
    if (level < 0 || level >= levels) {
        return -1;
    }
    let low = levelAt[level];
    let high = levelAt[level + 1];
    while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (start[byDepth[middle]] <= position) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const i = byDepth[low];
    return start[i] <= position && position < start[i] + total[i] ? i : -1;
}

// What the functions for which wanted[f] is set take under a node, a match inside a match counted once.
function matchedUnder(root, wanted) {
    for (let i = root; i > 0; i = parent[i]) {
        if (wanted[func[i]]) {
            return total[root];
        }
    }
    let sum = 0;
    let i = root + 1;
    while (i < end[root]) {
        if (wanted[func[i]]) {
            sum += total[i];
            i = end[i];
        } else {
            i++;
        }
    }
    return sum;
}

// Per function under a node, of one value: own amounts, and totals with a recursion counted once.
function perFunction(root, value) {
    const [nodeSelf, nodeTotal] = sumsOf(value);
    const self = new Float64Array(about.names.length);
    const sum = new Float64Array(about.names.length);
    const open = new Int32Array(about.names.length); // how often it is on the path
    const path = [];
    for (let i = Math.max(root, 1); i < end[root]; i++) {
        while (path.length && end[path[path.length - 1]] <= i) {
            open[func[path.pop()]]--;
        }
        const f = func[i];
        self[f] += nodeSelf[i];
        if (open[f]++ === 0) {
            sum[f] += nodeTotal[i];
        }
        path.push(i);
    }
    return [self, sum];
}
