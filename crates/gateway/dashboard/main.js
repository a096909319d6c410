// Asks the gateway every two seconds, and shows what it says. Whatever happens, it goes on asking.

import { byId, element, setText } from "./elements.js";
import { parse } from "./exposition.js";
import { gauge, sampledNames } from "./stats.js";
import { age } from "./format.js";
import { charts, point, tiles } from "./panels.js";
import { stageElements } from "./stages.js";
import { backendElements, certificateElements } from "./tables.js";
import { Timeline } from "./timeline.js";

const PERIOD = 2000;
const PATIENCE = 5000;

const timeline = new Timeline();
const drawCharts = charts();
let lost = null;

async function turn() {
    try {
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

function show(snapshot, status) {
    timeline.add(snapshot, seconds(), point);
    document.body.dataset.role = status.role;
    setText(byId("about"), `${status.role === "keyserver" ? "Key server" : "Gateway"} ${status.version}, up ${age(status.uptime_seconds)}`);
    state(status.ready ? "live" : "draining", status.ready ? "live" : "draining: finishes what is open, takes nothing new");
    const shaken = (gauge(snapshot, "quadrille_handshakes_total") ?? 0) + (gauge(snapshot, "quadrille_handshake_failures_total") ?? 0);
    byId("quiet").hidden = status.role !== "gateway" || shaken > 0;
    tiles(timeline);
    drawCharts(timeline.points, snapshot);
    drawStages(snapshot);
    byId("backends").replaceChildren(...backendElements(status, snapshot));
    byId("certificates").replaceChildren(...certificateElements(status, Date.now() / 1000));
}

function lose(error) {
    lost ??= Date.now();
    console.debug(error);
    timeline.interrupt(seconds());
    state("lost", `gateway not reachable for ${age((Date.now() - lost) / 1000)}; asking again`);
    if (timeline.latest !== null) drawCharts(timeline.points, timeline.latest);
}

function state(kind, text) {
    document.body.dataset.state = kind;
    setText(byId("state"), text);
}

/** The stages under the chosen name. The list of names is touched only when there is a new one. */
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
    byId("stages").replaceChildren(...stageElements(timeline.last(Infinity), chosen));
}

function option(value, text) {
    const made = element("option", "", text);
    made.value = value;
    return made;
}

function seconds() {
    return performance.now() / 1000;
}

byId("name").addEventListener("change", () => timeline.latest && drawStages(timeline.latest));
turn();
