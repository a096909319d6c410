// Polls the gateway every two seconds and shows the result. Polling continues after errors.

import { alerts } from "./alerts.js";
import { byId, element, setText } from "./elements.js";
import { parse } from "./exposition.js";
import { gauge, sampledNames } from "./stats.js";
import { age } from "./format.js";
import { reduced, snapshots } from "./history.js";
import { showAlerts } from "./notices.js";
import { charts, measured, point, tiles } from "./panels.js";
import { stageElements } from "./stages.js";
import { backendElements, certificateElements, failureElements } from "./tables.js";
import { HOUR, MINUTES, Timeline } from "./timeline.js";

const PERIOD = 2000;
const PATIENCE = 5000;

const minutes = new Timeline(MINUTES);
const hour = new Timeline(HOUR);
const drawCharts = charts();
/** Metric families in the gateway's history; null until it is loaded. */
let families = null;
let shown = minutes;
let lost = null;

async function turn() {
    try {
        if (families === null) recall(JSON.parse(await ask("history")));
        const [metrics, status] = await Promise.all([ask("metrics"), ask("status")]);
        show(parse(metrics), JSON.parse(status));
        lost = null;
    } catch (error) {
        lose(error);
    }
    setTimeout(turn, PERIOD);
}

async function ask(page) {
    const response = await fetch(page, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    if (!response.ok) throw new Error(`${page}: status ${response.status}`);
    return response.text();
}

/** Loads the gateway's history. */
function recall(history) {
    const now = seconds();
    for (const { age, snapshot } of snapshots(history)) {
        if (age <= MINUTES.window) minutes.add(snapshot, now - age, point);
        hour.add(snapshot, now - age, point);
    }
    families = new Set(history.families);
}

function show(snapshot, status) {
    const now = Date.now() / 1000;
    minutes.add(snapshot, seconds(), point);
    hour.add(reduced(snapshot, families), seconds(), point);
    document.body.dataset.role = status.role;
    setText(byId("about"), `${status.role === "keyserver" ? "Key server" : "Gateway"} ${status.version}, up ${age(status.uptime_seconds)}`);
    state(status.ready ? "live" : "draining", status.ready ? "live" : "draining: finishing open requests, accepting no connections");
    const shaken = (gauge(snapshot, "quadrille_handshakes_total") ?? 0) + (gauge(snapshot, "quadrille_handshake_failures_total") ?? 0);
    byId("quiet").hidden = status.role !== "gateway" || shaken > 0;
    showAlerts(alerts(status, snapshot, minutes.last(60), hour.last(Infinity), now));
    tiles(minutes, hour, now);
    drawCharts(shown, snapshot);
    drawStages(snapshot);
    byId("failures").replaceChildren(...failureElements(minutes.last(60), hour.last(Infinity)));
    byId("backends").replaceChildren(...backendElements(status, snapshot));
    byId("certificates").replaceChildren(...certificateElements(status, now));
}

function lose(error) {
    lost ??= Date.now();
    console.debug(error);
    minutes.interrupt(seconds());
    hour.interrupt(seconds());
    state("lost", `gateway not reachable for ${age((Date.now() - lost) / 1000)}; retrying`);
    if (minutes.latest !== null) drawCharts(shown, minutes.latest);
}

function state(kind, text) {
    document.body.dataset.state = kind;
    setText(byId("state"), text);
}

/** Draws the stages for the selected name. The list of names is updated only when it changes. */
function drawStages(snapshot) {
    const choice = byId("name");
    const names = sampledNames(snapshot);
    const chosen = names.includes(choice.value) ? choice.value : null;
    if (choice.dataset.names !== names.join("\n")) {
        choice.dataset.names = names.join("\n");
        choice.replaceChildren(option("", "all names"), ...names.map(name => option(name, name)));
        choice.value = chosen ?? "";
    }
    choice.parentElement.hidden = names.length < 2;
    byId("stages").replaceChildren(...stageElements(measured(minutes, Date.now() / 1000), chosen));
}

function option(value, text) {
    const made = element("option", "", text);
    made.value = value;
    return made;
}

/** Shows the last minutes, or the last hour. */
function choose(timeline) {
    shown = timeline;
    byId("minutes").setAttribute("aria-pressed", String(timeline === minutes));
    byId("hour").setAttribute("aria-pressed", String(timeline === hour));
    if (minutes.latest) drawCharts(shown, minutes.latest);
}

function seconds() {
    return performance.now() / 1000;
}

byId("minutes").addEventListener("click", () => choose(minutes));
byId("hour").addEventListener("click", () => choose(hour));
byId("name").addEventListener("change", () => minutes.latest && drawStages(minutes.latest));
turn();
