// Jobs: a table for each, with a row for each rank, whose cells are coloured by its share of the rank's time.

function jobTables(report) {
    const section = document.getElementById("jobs");
    if (!report.jobs.jobs.length && !report.jobs.gpus.length) {
        section.remove();
        return;
    }
    const host = section.querySelector(".host");
    report.jobs.jobs.forEach((job) => jobTable(host, job));
    host.append(...report.jobs.gpus.map((line) => made("p", "", line)));
}

function jobTable(host, job) {
    const table = made("table", "cells ranks");
    const line = made("p", "");
    line.setAttribute("role", "status");
    const head = made("tr", "", made("td", ""), ...job.kinds.map(function ([, label, does]) {
        const cell = made("th", "", made("span", "", label));
        cell.scope = "col";
        cell.title = does;
        return cell;
    }));
    const rows = job.ranks.map((rank) => rankRow(job, rank, rank.shares));
    const usual = { name: "median of " + job.ranks.length.toLocaleString("en"), workers: 0, outlier: false };
    const body = made("tbody", "", ...rows, rankRow(job, usual, job.medians));
    table.append(made("caption", "", "Ranks, and the share of its time that each spends in %"), made("thead", "", head), body);
    host.append(made("p", "", job.title), table, line);
    const say = function (cell) {
        line.textContent = cell.title;
    };
    roam(body, say);
    body.addEventListener("click", (event) => event.target.closest("td") && say(event.target.closest("td")));
}

function rankRow(job, rank, shares) {
    const workers = rank.workers ? ", " + rank.workers + (rank.workers > 1 ? " workers" : " worker") : "";
    const title = made("th", "", rank.name + workers + (rank.outlier ? " *" : ""));
    title.scope = "row";
    title.title = rank.name + workers + (rank.outlier ? ": stands out" : "");
    return made("tr", rank.outlier ? "far" : "", title, ...shares.map((part, i) => rankCell(job, rank, part, i)));
}

function rankCell(job, rank, part, i) {
    const text = made("span", "", part ? heatText(part, 1) : "");
    const cell = made("td", "", text);
    cell.tabIndex = -1;
    cell.title = rank.name + " is for " + percent(part) + " of its time " + job.kinds[i][2]
        + " (median: " + percent(job.medians[i]) + ")";
    if (part) {
        text.dataset.heat = part.toFixed(3);
        paintHeat(text);
    }
    return cell;
}
