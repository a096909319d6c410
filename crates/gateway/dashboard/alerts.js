// Alerts from `/status` and the metrics, the most severe first. Pure functions.

import { failures, gauge, increase, increaseBy, requests } from "./stats.js";
import { age, number, percent } from "./format.js";

const DAY = 86400;

/**
 * Returns the alerts: `bad` if clients are rejected or results are unreliable, `warn` if that is to be expected.
 * @param status the content of `/status`
 * @param minute the last minute, if it is known
 * @param hour the last hour, if it is known
 * @returns {{level: "bad" | "warn", text: string, detail: string}[]}
 */
export function alerts(status, snapshot, minute, hour, now) {
    const found = [
        ...overload(snapshot, minute),
        ...servers(status),
        ...certificates(status, now),
        ...staples(status),
        ...reload(status, now),
        ...configuration(status),
        ...computing(snapshot, hour),
        ...keyServers(snapshot),
        ...others(snapshot, minute),
    ];
    return found.sort((one, other) => (one.level === other.level ? 0 : one.level === "bad" ? -1 : 1));
}

const bad = (text, detail = "") => ({ level: "bad", text, detail });
const warn = (text, detail = "") => ({ level: "warn", text, detail });

function overload(snapshot, minute) {
    const grown = name => (minute === null ? 0 : increase(minute, name));
    const refused = grown("quadrille_handshakes_refused_total");
    const found = [];
    if (refused > 0) {
        found.push(bad(`Overload: ${number(refused)} handshakes rejected in the last minute`, "Demand exceeds capacity: add CPUs or gateways."));
    } else if (gauge(snapshot, "quadrille_overloaded") > 0) {
        found.push(warn("Overload: handshakes are queued", "Handshakes are rejected if it persists."));
    }
    if (grown("quadrille_key_shed_total") > 0) {
        found.push(bad(`The queue of private-key operations is full: ${number(grown("quadrille_key_shed_total"))} rejected in the last minute`));
    }
    if (grown("quadrille_accept_pauses_total") > 0) {
        found.push(bad("File descriptors are nearly exhausted", "Connections are temporarily not accepted: raise LimitNOFILE, or lower limits.connections."));
    }
    const stage = gauge(snapshot, "quadrille_memory_stage");
    if (stage >= 2) {
        found.push(bad("Memory is nearly full: requests are refused", "Raise limits.memory or the container's limit, or add gateways."));
    } else if (stage === 1) {
        found.push(warn("Memory is scarce: large requests are refused, and idle connections closed"));
    }
    return found;
}

function servers({ upstreams = [] }) {
    return upstreams.flatMap(({ name, servers }) => {
        const down = servers.filter(({ healthy, ejected }) => healthy === false || ejected).map(({ address }) => address);
        if (down.length === 0) return [];
        const named = some(down);
        return down.length === servers.length
            ? [bad(`Upstream ${name}: no healthy endpoint`, named)]
            : [warn(`Upstream ${name}: ${down.length} of ${servers.length} endpoints ${down.length === 1 ? "is" : "are"} unhealthy`, named)];
    });
}

function certificates({ certificates = [], awaited_certificates: awaited = [] }, now) {
    const found = certificates.flatMap(({ names, listener, not_before, not_after, ordered, late }) => {
        const [which, where, left] = [names[0] ?? "(no name)", `on ${listener}`, not_after - now];
        if (left < 0) return [bad(`The certificate of ${which} has expired`, `${where}, ${age(-left)} ago`)];
        if (now < not_before) return [bad(`The certificate of ${which} is not valid yet`, `${where}; check the clock`)];
        if (late) {
            const text = `The renewal of ${which} is overdue`;
            return [(left < DAY ? bad : warn)(text, `${where}, ${age(left)} left; see the log`)];
        }
        // Certificates that are renewed automatically may have a lifetime of six days.
        if (ordered || left > 21 * DAY) return [];
        return [(left < 7 * DAY ? bad : warn)(`The certificate of ${which} expires in ${age(left)}`, where)];
    });
    if (awaited.length > 0) {
        found.push(warn(`${awaited.length === 1 ? "A certificate is" : `${awaited.length} certificates are`} ordered but not yet issued`, some(awaited)));
    }
    return found;
}

function staples({ ocsp_staples: staples = [] }) {
    return staples.flatMap(({ names, state, must_staple }) => {
        const which = names?.[0] ?? "(no name)";
        if (state === "revoked") return [bad(`The certificate of ${which} is revoked`, "according to the OCSP responder of its CA")];
        if (state === "valid") return [];
        return must_staple
            ? [bad(`Clients reject the certificate of ${which}`, "It requires a stapled OCSP response, which is missing.")]
            : [warn(`There is no OCSP response to staple for ${which}`)];
    });
}

function reload({ last_reload: last }, now) {
    if (!last || last.ok) return [];
    return [bad(`The last reload failed ${age(now - last.time)} ago; the previous configuration stays in service`, last.problems.join("\n"))];
}

function configuration({ warnings = [] }) {
    if (warnings.length === 0) return [];
    return [warn(`The configuration has ${warnings.length === 1 ? "a warning" : `${number(warnings.length)} warnings`}`, warnings.join("\n"))];
}

function computing(snapshot, hour) {
    const found = [];
    for (const { labels, value } of snapshot.get("quadrille_gpu_in_use") ?? []) {
        if (value === 0) found.push(bad(`Backend lost: ${labels.device}`, "Only the CPU is used until this process is restarted."));
    }
    if (hour !== null) {
        const wrong = increaseBy(hour, "quadrille_key_operations_total", "backend", ({ result }) => result === "recomputed");
        for (const [backend, count] of wrong) {
            if (count > 0) found.push(bad(`Backend ${backend}: ${number(count)} results were wrong and were recomputed`, "This machine may be faulty: take it out of service."));
        }
    }
    return found;
}

function keyServers(snapshot) {
    const known = snapshot.get("quadrille_keyless_server_up") ?? [];
    const down = known.filter(({ value }) => value === 0).map(({ labels }) => labels.server);
    if (down.length === 0) return [];
    return down.length === known.length
        ? [bad("No key server is connected", some(down))]
        : [warn(`${down.length} of ${known.length} key servers ${down.length === 1 ? "is" : "are"} not connected`, some(down))];
}

function others(snapshot, minute) {
    const found = [];
    if (gauge(snapshot, "quadrille_session_store_suspended") > 0) found.push(warn("Redis does not respond", "Sessions are stored in this gateway only."));
    if (gauge(snapshot, "quadrille_acme_fleet_reachable") === 0) found.push(warn("The Redis with the fleet's certificates is not reachable"));
    if (gauge(snapshot, "quadrille_xds_connected") === 0) found.push(warn("No control plane is connected", "The last configuration received stays in service."));
    if (minute === null) return found;
    const { serverErrors, answered } = requests(minute);
    if (serverErrors / answered > 0.05) found.push(bad(`${percent(serverErrors / answered)} of the responses are 5xx`, "in the last minute"));
    const failed = failures(minute).find(([reason]) => reason === "key" || reason === "key_server");
    if (failed) found.push(bad(`${number(failed[1])} handshakes failed in the last minute because their private-key operation failed`));
    return found;
}

function some(all) {
    const shown = all.slice(0, 3).join(", ");
    return all.length > 3 ? `${shown} and ${all.length - 3} more` : shown;
}
