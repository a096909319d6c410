import assert from "node:assert/strict";
import test from "node:test";
import { parse } from "../exposition.js";

test("names, labels and values are read", () => {
    const snapshot = parse(`# HELP a_total Something
# TYPE a_total counter
a_total 12
a_total{x="1",y="two words"} 3.5

b_bucket{le="+Inf"} 7 1700000000000
c{d="NaN"} NaN
e +Inf
`);
    assert.deepEqual(snapshot.get("a_total").map(({ labels, value }) => [{ ...labels }, value]), [
        [{}, 12],
        [{ x: "1", y: "two words" }, 3.5],
    ]);
    assert.equal(snapshot.get("b_bucket")[0].labels.le, "+Inf");
    assert.equal(snapshot.get("b_bucket")[0].value, 7);
    assert.equal(snapshot.has("c"), false, "not a number");
    assert.equal(snapshot.get("e")[0].value, Infinity);
});

test("escaped labels are unescaped", () => {
    const [sample] = parse(String.raw`m{sni="a\"b\\n,c=\"d}",other="\n"} 1`).get("m");
    assert.equal(sample.labels.sni, 'a"b\\n,c="d}');
    assert.equal(sample.labels.other, "\n");
});

test("invalid lines are ignored", () => {
    const snapshot = parse("<html>\nm{a=1} 2\nm{a=\"1\" 2\n{} 4\nm\n\u0000\nok 1");
    assert.deepEqual([...snapshot.keys()], ["ok"]);
});

test("labels with names of object properties are harmless", () => {
    const [sample] = parse('m{__proto__="x",constructor="y"} 1').get("m");
    assert.equal(sample.labels.__proto__, "x");
    assert.equal(Object.getPrototypeOf({}), Object.prototype);
});
