// CPU time of handshakes by stage: a bar for each kind of handshake, and a table of the figures.

import { element, table } from "./elements.js";
import { stages } from "./stats.js";
import { microseconds, number } from "./format.js";

/** Messages in the order of the protocol (RFC 8446, RFC 5246), as the server processes them. */
export const STAGES = [
    ["ClientHello", "ClientHello"],
    ["KeyExchange", "key exchange"],
    ["ServerHello", "ServerHello"],
    ["EncryptedExtensions", "EncryptedExtensions"],
    ["Certificate", "Certificate"],
    ["ServerKeyExchange", "ServerKeyExchange"],
    ["CertificateVerify", "CertificateVerify"],
    ["PrivateKey", "private-key operation"],
    ["ServerHelloDone", "ServerHelloDone"],
    ["ClientKeyExchange", "ClientKeyExchange"],
    ["ChangeCipherSpec", "ChangeCipherSpec"],
    ["Finished", "Finished"],
    ["ClientFinished", "Finished (client's)"],
    ["NewSessionTicket", "NewSessionTicket"],
    ["Other", "other"],
];

/** Returns elements for the kinds of handshake measured in the interval, for one name or all. */
export function stageElements(interval, sni) {
    const kinds = interval === null ? [] : stages(interval, sni);
    if (kinds.length === 0) return [element("p", "empty inline", "No handshake has been measured yet.")];
    const longest = Math.max(...kinds.map(kind => kind.total));
    return [element("div", "", ...kinds.map(kind => bar(kind, longest))), figures(kinds)];
}

function bar(kind, longest) {
    const parts = present(kind).map(([stage, label]) => {
        const time = kind.stages.get(stage);
        const part = element("i", `stage-${stage}`);
        part.style.flexGrow = time;
        part.title = `${label}: ${microseconds(time)}`;
        return part;
    });
    const whole = element("div", "bar", ...parts);
    whole.style.width = `${(kind.total / longest) * 100}%`;
    const name = element("p", "bar-name", element("b", "", title(kind)), ` ${microseconds(kind.total)} of CPU `,
        element("span", "quiet", `mean of ${number(kind.samples)} measured`));
    return element("div", "kind", name, whole);
}

function figures(kinds) {
    const shown = STAGES.filter(([stage]) => kinds.some(kind => kind.stages.get(stage) > 0));
    const rows = shown.map(([stage, label]) => {
        const name = element("span", "", element("i", `swatch stage-${stage}`), label);
        return [name, ...kinds.map(kind => ({ className: "figure", text: microseconds(kind.stages.get(stage) ?? null) }))];
    });
    const heads = ["Stage", ...kinds.map(kind => ({ className: "figure", text: title(kind) }))];
    return table(heads, rows);
}

function present(kind) {
    return STAGES.filter(([stage]) => kind.stages.get(stage) > 0);
}

function title({ version, session }) {
    return `${version.replace("TLSv", "TLS ")} ${session}`;
}
