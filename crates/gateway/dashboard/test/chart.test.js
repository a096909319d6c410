import assert from "node:assert/strict";
import test from "node:test";
import { logarithmic } from "../chart.js";

test("a logarithmic scale goes from the power of ten below to the one above", () => {
    const { ticks, share } = logarithmic([3e-5, 2e-3]);
    assert.deepEqual(ticks.map(tick => tick.toExponential()), ["1e-5", "1e-4", "1e-3", "1e-2"]);
    assert.equal(share(1e-5), 0);
    assert.ok(Math.abs(share(1e-2) - 1) < 1e-9);
    assert.equal(share(0), 0, "zero has no logarithm, and is drawn at the bottom");
    assert.equal(logarithmic([]).ticks.length, 3);
    assert.equal(logarithmic([1e-3]).ticks.length, 2, "a single value has a scale, too");
});
