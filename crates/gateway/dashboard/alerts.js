// What somebody should know before all else: from `/status` and the metrics to sentences, the worst first. Pure.

import { failures, gauge, increase, increaseBy, requests } from "./stats.js";
import { age, number, percent } from "./format.js";

const DAY = 86400;

/**
 * What is wrong: `bad` if clients are refused or results cannot be relied on, `warn` if they will be.
 * @param status of `/status`
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
        found.push(bad(`Overload: ${number(refused)} handshakes refused in the last minute`, "More are asked for than can be done in time; this gateway needs more CPU, or company."));
    } else if (gauge(snapshot, "quadrille_overloaded") > 0) {
        found.push(warn("Overload: handshakes queue up", "Handshakes are refused if it stays."));
    }
    if (grown("quadrille_key_shed_total") > 0) {
        found.push(bad(`The queue of private-key operations is full: ${number(grown("quadrille_key_shed_total"))} refused in the last minute`));
    }
    if (grown("quadrille_accept_pauses_total") > 0) {
        found.push(bad("File descriptors run short", "Connections are not accepted at times: raise LimitNOFILE, or lower limits.connections."));
    }
    return found;
}

function servers({ upstreams = [] }) {
    return upstreams.flatMap(({ name, servers }) => {
        const down = servers.filter(({ healthy }) => healthy === false).map(({ address }) => address);
        if (down.length === 0) return [];
        const named = some(down);
        return down.length === servers.length
            ? [bad(`Upstream ${name}: no server is healthy`, named)]
            : [warn(`Upstream ${name}: ${down.length} of ${servers.length} servers ${down.length === 1 ? "is" : "are"} down`, named)];
    });
}

function certificates({ certificates = [], awaited_certificates: awaited = [] }, now) {
    const found = certificates.flatMap(({ names, listener, not_before, not_after, ordered, late }) => {
        const [which, where, left] = [names[0] ?? "(no name)", `on ${listener}`, not_after - now];
        if (left < 0) return [bad(`The certificate of ${which} has expired`, `${where}, ${age(-left)} ago`)];
        if (now < not_before) return [bad(`The certificate of ${which} is not valid yet`, `${where}; is the clock right?`)];
        if (late) {
            const text = `The renewal of ${which} is late`;
            return [(left < DAY ? bad : warn)(text, `${where}, ${age(left)} left; the log says why`)];
        }
        // Those that renew themselves may live for six days.
        if (ordered || left > 21 * DAY) return [];
        return [(left < 7 * DAY ? bad : warn)(`The certificate of ${which} expires in ${age(left)}`, where)];
    });
    if (awaited.length > 0) {
        found.push(warn(`${awaited.length === 1 ? "A certificate is" : `${awaited.length} certificates are`} ordered and not there yet`, some(awaited)));
    }
    return found;
}

function staples({ ocsp_staples: staples = [] }) {
    return staples.flatMap(({ names, state, must_staple }) => {
        const which = names?.[0] ?? "(no name)";
        if (state === "revoked") return [bad(`The certificate of ${which} is revoked`, "says its authority's OCSP responder")];
        if (state === "valid") return [];
        return must_staple
            ? [bad(`Clients refuse the certificate of ${which}`, "It must be stapled, and there is no OCSP response.")]
            : [warn(`There is no OCSP response to staple for ${which}`)];
    });
}

function reload({ last_reload: last }, now) {
    if (!last || last.ok) return [];
    return [bad(`The last reload was refused, ${age(now - last.time)} ago; what was served before goes on`, last.problems.join("\n"))];
}

function computing(snapshot, hour) {
    const found = [];
    for (const { labels, value } of snapshot.get("quadrille_gpu_in_use") ?? []) {
        if (value === 0) found.push(bad(`Backend lost: ${labels.device} computes no more`, "The CPU computes alone until this process is started again."));
    }
    if (hour !== null) {
        const wrong = increaseBy(hour, "quadrille_key_operations_total", "backend", ({ result }) => result === "recomputed");
        for (const [backend, count] of wrong) {
            if (count > 0) found.push(bad(`Backend ${backend}: ${number(count)} results were wrong, and computed again`, "This machine may be faulty: take it out of service."));
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
    if (gauge(snapshot, "quadrille_session_store_suspended") > 0) found.push(warn("Redis does not answer", "Sessions are kept by this gateway alone."));
    if (gauge(snapshot, "quadrille_acme_fleet_reachable") === 0) found.push(warn("The fleet that shares certificates cannot be asked"));
    if (gauge(snapshot, "quadrille_xds_connected") === 0) found.push(warn("No control plane is connected", "What was received goes on being served."));
    if (minute === null) return found;
    const { serverErrors, answered } = requests(minute);
    if (serverErrors / answered > 0.05) found.push(bad(`${percent(serverErrors / answered)} of the requests are answered with 5xx`, "of the last minute"));
    const failed = failures(minute).find(([reason]) => reason === "key" || reason === "key_server");
    if (failed) found.push(bad(`${number(failed[1])} handshakes failed in the last minute for want of a private-key operation`));
    return found;
}

function some(all) {
    const shown = all.slice(0, 3).join(", ");
    return all.length > 3 ? `${shown} and ${all.length - 3} more` : shown;
}
