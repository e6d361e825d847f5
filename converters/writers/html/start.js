// The start of a page that has one graph.

function begin(buffer) {
    readData(buffer);
    byId("title").textContent = about.title;
    notes();
    openGraph();
    document.documentElement.dataset.ready = "1";
}

if (canUnpack()) {
    unpack(byId("data")).then(begin).catch(damaged);
}
