import assert from "node:assert/strict";
import test from "node:test";
import { niceTop, runs } from "../chart.js";
import { age, day, duration, microseconds, number, percent } from "../format.js";

test("numbers and times", () => {
    assert.deepEqual([0, 0.44, 12.34, 123.4, 12345, null, NaN].map(number), ["0", "0.4", "12.3", "123", "12,345", "–", "–"]);
    assert.deepEqual([null, 0, 0.004, 0.5, 1].map(percent), ["–", "0 %", "0.4 %", "50 %", "100 %"]);
    assert.deepEqual([null, 85e-6, 0.0012, 0.25, 3].map(duration), ["–", "85 µs", "1.2 ms", "250 ms", "3 s"]);
    assert.deepEqual([null, 0.34, 427.4].map(microseconds), ["–", "0.3 µs", "427 µs"]);
    assert.deepEqual([0, 59, 725, 3600, 90061].map(age), ["0 s", "59 s", "12 min 5 s", "1 h", "1 d 1 h"]);
    assert.deepEqual([0, 1798675200].map(day), ["1970-01-01", "2026-12-31"]);
});

test("scales end at round numbers, not below the value", () => {
    assert.deepEqual([0.3, 1, 1.2, 3, 4.1, 7, 9, 1234].map(niceTop), [0.4, 1, 2, 4, 5, 8, 10, 2000].map(top => top));
});

test("gaps divide a line", () => {
    const points = [1, null, 2, 3].map((value, time) => ({ time, values: value === null ? null : { value } }));
    const found = runs(points, values => values?.value ?? null);
    assert.deepEqual(found.map(run => run.map(({ value }) => value)), [[1], [2, 3]]);
});
