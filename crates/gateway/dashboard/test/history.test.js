import assert from "node:assert/strict";
import test from "node:test";
import { parse } from "../exposition.js";
import { reduced, snapshots } from "../history.js";

const history = {
    ages: [30, 20, 10],
    series: { 'a_total{x="1"}': [[0, 3], [2, 5]], b: [[1, 7], [2, null]] },
};

test("changes are converted to snapshots equal to scrapes", () => {
    const scrapes = ['a_total{x="1"} 3', 'a_total{x="1"} 3\nb 7', 'a_total{x="1"} 5'];
    assert.deepEqual(snapshots(history), scrapes.map((scrape, index) => ({ age: history.ages[index], snapshot: parse(scrape) })));
    assert.deepEqual(snapshots({ ages: [], series: {} }), []);
});

test("a reduced snapshot has the series of histograms too", () => {
    const names = reduced(parse("a_total 1\nt_bucket{le=\"1\"} 1\nt_sum 1\nother 1"), new Set(["a_total", "t"]));
    assert.deepEqual([...names.keys()], ["a_total", "t_bucket", "t_sum"]);
});
