import assert from "node:assert/strict";
import test from "node:test";
import { parse } from "../exposition.js";
import { increase } from "../stats.js";
import { HOUR, MINUTES, Timeline } from "../timeline.js";

const scrape = (started, count) => parse(`process_start_time_seconds ${started}\na_total ${count}`);
const rate = interval => ({ rate: increase(interval, "a_total") / interval.seconds });

test("points are rates between two scrapes", () => {
    const timeline = new Timeline(MINUTES);
    timeline.add(scrape(1, 100), 0, rate);
    assert.equal(timeline.last(10), null, "no rate from one scrape");
    timeline.add(scrape(1, 120), 2, rate);
    assert.deepEqual(timeline.points, [{ time: 0, values: null }, { time: 2, values: { rate: 10 } }]);
    assert.equal(timeline.last(10).seconds, 2);
});

test("a restart is a gap, neither a drop nor a spike", () => {
    const timeline = new Timeline(MINUTES);
    timeline.add(scrape(1, 1000), 0, rate);
    timeline.add(scrape(1, 1010), 2, rate);
    timeline.interrupt(4);
    // Higher than before the restart: only the start time reveals it.
    timeline.add(scrape(5, 5000), 6, rate);
    timeline.add(scrape(5, 5010), 8, rate);
    assert.deepEqual(timeline.points.map(({ values }) => values?.rate ?? null), [null, 5, null, null, 5]);
    assert.equal(timeline.last(100).seconds, 2, "nothing of the previous process");
});

test("a restart without a start time is detected by the counters", () => {
    const timeline = new Timeline(MINUTES);
    timeline.add(parse("a_total 1000"), 0, rate);
    timeline.add(parse("a_total 3"), 2, rate);
    assert.equal(timeline.points.at(-1).values, null);
});

test("the increase during a gap of the same process is averaged", () => {
    const timeline = new Timeline(MINUTES);
    timeline.add(scrape(1, 0), 0, rate);
    timeline.interrupt(2);
    timeline.interrupt(4);
    timeline.add(scrape(1, 60), 6, rate);
    assert.deepEqual(timeline.points.at(-1).values, { rate: 10 });
});

test("old snapshots are dropped, except for the newest", () => {
    const timeline = new Timeline(MINUTES);
    for (let time = 0; time <= 1000; time += 2) timeline.add(scrape(1, time), time, rate);
    assert.ok(timeline.points.length <= MINUTES.window / 2 + 2);
    assert.ok(timeline.last(Infinity).seconds <= MINUTES.window + 2);
    timeline.interrupt(5000);
    timeline.add(scrape(1, 9000), 5002, rate);
    assert.equal(timeline.points.at(-1).values.rate, 8000 / 4002);
});

test("the hour keeps one snapshot in ten seconds, and the newest", () => {
    const timeline = new Timeline(HOUR);
    for (let time = 0; time <= 8000; time += 2) timeline.add(scrape(1, 3 * time), time, rate);
    assert.ok(timeline.points.length <= HOUR.window / HOUR.spacing + 2, `${timeline.points.length}`);
    assert.ok(timeline.points.slice(1).every(({ values }) => values.rate === 3));
    timeline.add(scrape(1, 30000), 8001, rate);
    assert.equal(increase(timeline.last(Infinity), "a_total"), 30000 - 3 * (8001 - timeline.last(Infinity).seconds));
});
