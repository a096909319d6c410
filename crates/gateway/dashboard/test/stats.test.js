import assert from "node:assert/strict";
import test from "node:test";
import { parse } from "../exposition.js";
import { batches, cpuOf, cpuSaved, distribution, failures, increase, quantile, rates, requests, resumedShare, sampledNames, sinceStart, stages, upstreamTimes } from "../stats.js";

const interval = (before, now, seconds = 2) => ({ before: parse(before), now: parse(now), seconds });

test("rates are increases per second, and a new series started at zero", () => {
    const seen = interval(
        'quadrille_handshakes_total{session="full",version="TLSv1.3"} 100',
        `quadrille_handshakes_total{session="full",version="TLSv1.3"} 140
quadrille_handshakes_total{session="full",version="TLSv1.2"} 10
quadrille_handshakes_total{session="resumed",version="TLSv1.3"} 150
quadrille_handshake_failures_total{reason="tls"} 4
quadrille_key_operations_total{result="ok"} 50
quadrille_key_operations_total{result="recomputed"} 50`,
    );
    assert.deepEqual(rates(seen), { full: 25, resumed: 75, failed: 2, operations: 25, shed: 0, refused: 0 });
    assert.equal(resumedShare(seen), 0.75);
    assert.equal(resumedShare(interval("", "")), null, "no share without handshakes");
});

test("no rate is negative", () => {
    assert.equal(increase(interval("a_total 10", "a_total 3"), "a_total"), 0);
    assert.equal(increase(interval("a_total 10", ""), "a_total"), 0);
});

const buckets = (name, counts) =>
    Object.entries(counts).map(([bound, count]) => `${name}_bucket{le="${bound}"} ${count}`).join("\n") + `\n${name}_count ${counts["+Inf"]}\n`;

test("quantiles are within their bucket", () => {
    const counts = { 0.1: 10, 0.2: 90, 0.5: 100, "+Inf": 100 };
    const seen = distribution(interval("", buckets("t", counts)), "t");
    assert.equal(quantile(seen, 0.1), 0.1);
    assert.ok(Math.abs(quantile(seen, 0.5) - 0.15) < 1e-9);
    assert.ok(Math.abs(quantile(seen, 0.95) - 0.35) < 1e-9);
});

test("a quantile beyond the last bound is that bound, and null without data", () => {
    assert.equal(quantile(distribution(interval("", buckets("t", { 1: 0, "+Inf": 5 })), "t"), 0.5), 1);
    assert.equal(quantile(distribution(interval("", ""), "t"), 0.5), null);
});

test("a quantile covers only its interval", () => {
    const before = buckets("t", { 1: 1000, 2: 1000, "+Inf": 1000 });
    const now = buckets("t", { 1: 1000, 2: 1010, "+Inf": 1010 });
    assert.equal(quantile(distribution(interval(before, now), "t"), 0.5), 1.5);
});

test("batches are counted by size", () => {
    const now = buckets("quadrille_key_batch_size", { 1: 4, 2: 6, 8: 10, "+Inf": 10 }) +
        "quadrille_key_batch_size_sum 40\nquadrille_key_batch_width{key_type=\"rsa2048\"} 8";
    const seen = batches(interval("", now));
    assert.equal(seen.mean, 4);
    assert.equal(seen.width, 8);
    assert.deepEqual(seen.counts, [{ bound: 1, count: 4 }, { bound: 2, count: 2 }, { bound: 8, count: 4 }, { bound: Infinity, count: 0 }]);
});

const measured = (sni, samples, key, hello) => `
quadrille_handshake_samples_total{session="full",version="TLSv1.3",sni="${sni}"} ${samples}
quadrille_handshake_cpu_nanoseconds_total{stage="PrivateKey",session="full",version="TLSv1.3",sni="${sni}"} ${key}
quadrille_handshake_cpu_nanoseconds_total{stage="ClientHello",session="full",version="TLSv1.3",sni="${sni}"} ${hello}`;

test("stages are microseconds per handshake, by name or for all", () => {
    const seen = interval("", measured("a", 2, 600_000, 40_000) + measured("b", 2, 200_000, 40_000));
    const [all] = stages(seen);
    assert.deepEqual([all.session, all.version, all.samples, all.total], ["full", "TLSv1.3", 4, 220]);
    assert.deepEqual([...all.stages], [["PrivateKey", 200], ["ClientHello", 20]]);
    assert.equal(stages(seen, "b")[0].total, 120);
    assert.deepEqual(stages(seen, "c"), []);
    assert.deepEqual(cpuOf(seen, "full"), { total: 220, key: 200 });
    assert.equal(cpuOf(seen, "resumed"), null);
    assert.deepEqual(sampledNames(seen.now), ["a", "b"]);
});

test("the saved share is relative to the cost of single operations", () => {
    const seen = interval(
        'quadrille_key_cpu_nanoseconds_total{backend="ifma"} 1e9',
        `quadrille_key_cpu_nanoseconds_total{backend="ifma"} 2e9
quadrille_key_cpu_nanoseconds_total{backend="scalar"} 1e9
quadrille_key_cpu_saved_nanoseconds_total{backend="ifma"} 6e9`,
    );
    assert.deepEqual(cpuSaved(seen), { spent: 2, saved: 6, share: 0.75 });
    assert.equal(cpuSaved(interval("", "")).share, null, "no operation");
});

test("requests by status, and upstream latency", () => {
    const seen = interval("", `quadrille_requests_total{status="2xx"} 16
quadrille_requests_total{status="5xx"} 4
${buckets("quadrille_upstream_seconds", { 0.1: 10, 0.2: 20, "+Inf": 20 })}`);
    const { ok, serverErrors, clientErrors, answered } = requests(seen);
    assert.deepEqual([ok, serverErrors, clientErrors, answered], [8, 2, 0, 10]);
    assert.equal(upstreamTimes(seen).upstream50, 0.1);
    assert.equal(upstreamTimes(interval("", "")).upstream99, null);
});

test("failures by reason, the most frequent first", () => {
    const seen = interval('f{reason="tls"} 1'.replace("f", "quadrille_handshake_failures_total"),
        ["tls 3", "closed 5", "key 0"].map(pair => pair.split(" ")).map(([reason, count]) => `quadrille_handshake_failures_total{reason="${reason}"} ${count}`).join("\n"));
    assert.deepEqual(failures(seen), [["closed", 5], ["tls", 2]]);
});

test("since the start, every counter has increased from zero", () => {
    const seen = sinceStart(parse("process_start_time_seconds 100\na_total 7"), 160);
    assert.deepEqual([seen.seconds, increase(seen, "a_total")], [60, 7]);
});
