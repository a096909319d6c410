// Tables of backends with their health, of certificates with their expiry, and of failed handshakes by reason.

import { element, table } from "./elements.js";
import { failures, gauge } from "./stats.js";
import { day, number } from "./format.js";

const DAY = 86400;

/** Returns tables of the engine, the key servers and the endpoints of upstreams. */
export function backendElements(status, snapshot) {
    const shown = [element("h3", "", "Private-key operations"), engine(status, snapshot)];
    const keyServers = snapshot.get("quadrille_keyless_server_up") ?? [];
    if (keyServers.length > 0) {
        const rows = keyServers.map(({ labels, value }) => [labels.server, health(value === 1, "connected", "not connected")]);
        shown.push(element("h3", "", "Key servers"), table(["Server", "State"], rows));
    }
    const upstreams = status.upstreams ?? [];
    if (upstreams.length > 0) {
        const rows = upstreams.flatMap(upstream => upstream.servers.map(server => [upstream.name, server.address, ofServer(server)]));
        shown.push(element("h3", "", "Upstreams"), table(["Upstream", "Endpoint", "State"], rows));
    } else if (status.role === "gateway") {
        shown.push(element("p", "quiet", "No upstreams: the gateway responds itself."));
    }
    return shown;
}

function engine(status, snapshot) {
    const names = new Set([status.engine.backend]);
    const counted = snapshot.get("quadrille_key_operations_total") ?? [];
    for (const { labels } of counted) names.add(labels.backend);
    const rows = [...names].map(name => {
        const where = labels => labels.backend === name;
        const done = gauge(snapshot, "quadrille_key_operations_total", labels => where(labels) && labels.result === "ok") ?? 0;
        const failed = gauge(snapshot, "quadrille_key_operations_total", labels => where(labels) && labels.result === "failed") ?? 0;
        const widths = (snapshot.get("quadrille_key_batch_width") ?? []).filter(({ labels }) => where(labels));
        const width = Math.max(1, ...widths.map(({ value }) => value));
        return [
            name,
            { className: "figure", text: String(width) },
            { className: "figure", text: number(done) },
            health(failed === 0, "healthy", `${number(failed)} failed`),
        ];
    });
    const right = text => ({ className: "figure", text });
    return table(["Backend", right("Batch width"), right("Computed"), "State"], rows);
}

function ofServer({ healthy, ejected, draining }) {
    if (draining) return element("span", "state", "draining");
    if (ejected) return element("span", "state bad", "ejected");
    if (healthy === null && ejected === false) return health(true, "not ejected", "");
    return healthy === null ? element("span", "state", "not checked") : health(healthy, "healthy", "unhealthy");
}

function health(well, yes, no) {
    return element("span", well ? "state good" : "state bad", well ? yes : no);
}

/** Descriptions of the reasons for failed handshakes in `/metrics`. */
const REASONS = {
    tls: "no common version, cipher or group, or an alert from the client, often because it does not trust the certificate",
    closed: "the client disconnected",
    timeout: "the client was too slow",
    not_tls: "not TLS",
    plain_http: "HTTP without TLS",
    proxy_header: "missing or untrusted PROXY header",
    too_many_handshakes: "too many concurrent handshakes (limits)",
    too_many_connections: "too many connections of a client (limits)",
    evicted: "silent, while a newcomer needed the place (limits)",
    unknown_name: "no certificate for the requested name",
    no_common_protocol: "no common ALPN protocol",
    no_chain: "no filter chain matches",
    shed: "the queue of private-key operations was full",
    refused: "rejected during overload",
    key: "the private-key operation failed",
    key_server: "no key server has computed the operation",
};

/** Returns the reasons for failed handshakes in the last minute and the last hour, either of which may be null. */
export function failureElements(minute, hour) {
    const all = hour === null ? [] : failures(hour);
    if (all.length === 0) return [element("p", "empty inline", "No handshake has failed in the last hour.")];
    const recent = new Map(minute === null ? [] : failures(minute));
    const right = text => ({ className: "figure", text });
    const rows = all.map(([reason, count]) => [
        element("span", "", element("b", "", reason), " ", element("span", "quiet", REASONS[reason] ?? "")),
        right(number(recent.get(reason) ?? 0)),
        right(number(count)),
    ]);
    return [table(["Reason", right("Last minute"), right("Last hour")], rows)];
}

/** Returns the table of certificates by expiry, the earliest first. `now` is Unix time. */
export function certificateElements(status, now) {
    const certificates = [...(status.certificates ?? [])].sort((one, other) => one.not_after - other.not_after);
    if (certificates.length === 0) return [element("p", "quiet", "No certificates.")];
    const rows = certificates.map(certificate => [
        names(certificate.names),
        expiry(certificate, now),
        { className: "whole", text: day(certificate.not_after) },
        `${certificate.key_type.replaceAll("-", "\u2011")}${certificate.key === "local" ? "" : ", on key servers"}`,
        certificate.listener,
    ]);
    return [table(["Names", "State", "Expires", "Key", "Listener"], rows)];
}

function names(all) {
    const [first = "(no name)", ...others] = all;
    const shown = element("span", "", first);
    if (others.length > 0) {
        shown.append(element("span", "quiet", ` and ${others.length} more`));
        shown.title = all.join(", ");
    }
    return shown;
}

/**
 * Returns the state of a certificate. Manual renewals are usually done a month before expiry; a week before is critical.
 * For automatic ones, with lifetimes of six days or more, the gateway reports whether the renewal is overdue.
 */
function expiry({ not_before, not_after, late }, now) {
    const days = Math.floor((not_after - now) / DAY);
    if (now < not_before) return element("span", "state bad", "not valid yet");
    if (now > not_after) return element("span", "state bad", "expired");
    const text = days < 1 ? "less than a day left" : days === 1 ? "1 day left" : `${number(days)} days left`;
    if (late) return element("span", "state bad", `${text}, renewal overdue`);
    return element("span", `state ${days < 7 ? "bad" : days < 21 ? "warn" : "good"}`, text);
}
