import assert from "node:assert/strict";
import test from "node:test";
import { alerts } from "../alerts.js";
import { parse } from "../exposition.js";

const NOW = 1_800_000_000;
const DAY = 86400;
const interval = (before, now) => ({ before: parse(before), now: parse(now), seconds: 60 });

/** Returns level and text of each alert. */
function found({ status = {}, metrics = "", minute = null, hour = null }) {
    return alerts(status, parse(metrics), minute, hour, NOW).map(({ level, text }) => `${level}: ${text}`);
}

const certificate = (days, more = {}) => ({
    names: ["a.example"], listener: "[::]:443", not_before: NOW - 60 * DAY, not_after: NOW + days * DAY, ordered: false, late: false, ...more,
});

test("a healthy gateway has no alerts", () => {
    const status = {
        certificates: [certificate(60), certificate(3, { ordered: true })],
        upstreams: [{ name: "u", servers: [{ address: "s", healthy: true }, { address: "t", healthy: null }] }],
        last_reload: { time: NOW, ok: true, problems: [] },
        warnings: [],
        ocsp_staples: [{ names: ["a"], state: "valid" }],
    };
    const well = "quadrille_gpu_in_use{device=\"g\"} 1\nquadrille_overloaded 0\nquadrille_keyless_server_up{server=\"k\"} 1";
    const minute = interval("", 'quadrille_requests_total{status="2xx"} 100\nquadrille_requests_total{status="5xx"} 1');
    assert.deepEqual(found({ status, metrics: well, minute, hour: minute }), []);
    assert.deepEqual(found({}), [], "no data");
});

test("certificates: expired, soon, late, missing", () => {
    const certificates = [certificate(20), certificate(-1), certificate(2), certificate(1.5, { ordered: true, late: true }), certificate(0.5, { ordered: true, late: true })];
    assert.deepEqual(found({ status: { certificates, awaited_certificates: ["b.example"] } }), [
        "bad: The certificate of a.example has expired",
        "bad: The certificate of a.example expires in 2 d",
        "bad: The renewal of a.example is overdue",
        "warn: The certificate of a.example expires in 20 d",
        "warn: The renewal of a.example is overdue",
        "warn: A certificate is ordered but not yet issued",
    ]);
    assert.deepEqual(found({ status: { certificates: [certificate(9, { not_before: NOW + 1 })] } }), ["bad: The certificate of a.example is not valid yet"]);
});

test("ejected endpoints count as unhealthy, drained ones do not", () => {
    const servers = [
        { address: "a", healthy: null, ejected: true, draining: false },
        { address: "b", healthy: null, ejected: false, draining: true },
    ];
    assert.deepEqual(found({ status: { upstreams: [{ name: "u", servers }] } }), ["warn: Upstream u: 1 of 2 endpoints is unhealthy"]);
});

test("unhealthy endpoints, some or all", () => {
    const upstream = (name, ...healthy) => ({ name, servers: healthy.map((is, index) => ({ address: `s${index}`, healthy: is })) });
    assert.deepEqual(found({ status: { upstreams: [upstream("one", true, false), upstream("two", false, false), upstream("three")] } }), [
        "bad: Upstream two: no healthy endpoint",
        "warn: Upstream one: 1 of 2 endpoints is unhealthy",
    ]);
});

test("a failed reload is reported with its problems", () => {
    const last_reload = { time: NOW - 65, ok: false, problems: ["q.yaml:3: no such key"] };
    const [alert] = alerts({ last_reload }, parse(""), null, null, NOW);
    assert.equal(alert.text, "The last reload failed 1 min 5 s ago; the previous configuration stays in service");
    assert.equal(alert.detail, "q.yaml:3: no such key");
});

test("warnings of the configuration are shown", () => {
    const [alert] = alerts({ warnings: ["q.yaml:3: routes: ignored"] }, parse(""), null, null, NOW);
    assert.deepEqual(alert, { level: "warn", text: "The configuration has a warning", detail: "q.yaml:3: routes: ignored" });
    assert.deepEqual(found({ status: { warnings: ["a", "b"] } }), ["warn: The configuration has 2 warnings"]);
});

test("overload, lost backends, wrong results, key servers, and other services", () => {
    const counted = `quadrille_handshakes_refused_total{reason="overload"} 7
quadrille_key_shed_total{key_type="rsa2048"} 2
quadrille_key_operations_total{backend="ifma",result="recomputed"} 1
quadrille_requests_total{status="5xx"} 10
quadrille_requests_total{status="2xx"} 90
quadrille_handshake_failures_total{reason="key_server"} 3`;
    const metrics = `quadrille_overloaded 1
quadrille_gpu_in_use{device="H100"} 0
quadrille_keyless_server_up{server="a"} 1
quadrille_keyless_server_up{server="b"} 0
quadrille_session_store_suspended 1`;
    const seen = interval("", counted);
    assert.deepEqual(found({ metrics, minute: seen, hour: seen }), [
        "bad: Overload: 7 handshakes rejected in the last minute",
        "bad: The queue of private-key operations is full: 2 rejected in the last minute",
        "bad: Backend lost: H100",
        "bad: Backend ifma: 1 results were wrong and were recomputed",
        "bad: 10 % of the responses are 5xx",
        "bad: 3 handshakes failed in the last minute because their private-key operation failed",
        "warn: 1 of 2 key servers is not connected",
        "warn: Redis does not respond",
    ]);
    assert.deepEqual(found({ metrics: "quadrille_overloaded 1" }), ["warn: Overload: handshakes are queued"]);
});
