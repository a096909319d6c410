//! One step of the Montgomery ladder (RFC 7748, section 5), in parts for merging.

use crate::asm::Assembly;
use crate::x25519_stream::{DIGITS, Place, Stream, TOP_BIT, broadcast};

/// Number of vectors of a ladder's state: twenty elements.
pub(crate) const STATE: usize = 20 * DIGITS;

/// State of a ladder, with the names of RFC 7748.
pub(crate) struct Step {
    x1: Place,
    x2: Place,
    z2: Place,
    x3: Place,
    z3: Place,
    a: Place,
    b: Place,
    c: Place,
    d: Place,
    chosen_a: Place,
    chosen_b: Place,
    aa: Place,
    bb: Place,
    da: Place,
    cb: Place,
    e: Place,
    /// AA + a24 E
    g: Place,
    /// DA + CB and DA - CB, and the latter's square
    s: Place,
    t: Place,
    tt: Place,
    /// Mask of lanes that double the sum of the previous step.
    mask: &'static str,
    /// Register with the remaining bits of the differences.
    pub(crate) word: &'static str,
}

impl Step {
    /// Returns the step for the state that begins `vectors` from `rdi`.
    pub(crate) fn new(vectors: usize, mask: &'static str, word: &'static str) -> Self {
        let slots: [Place; 20] = std::array::from_fn(|i| ("rdi", vectors + i * DIGITS));
        let [x1, x2, z2, x3, z3, a, b, c, d, chosen_a, chosen_b, aa, bb, da, cb, e, g, s, t, tt] = slots;
        Self {
            x1,
            x2,
            z2,
            x3,
            z3,
            a,
            b,
            c,
            d,
            chosen_a,
            chosen_b,
            aa,
            bb,
            da,
            cb,
            e,
            g,
            s,
            t,
            tt,
            mask,
            word,
        }
    }

    /// Takes the mask from the word's top bit.
    pub(crate) fn next_bit(&self, asm: &mut Assembly) {
        let Self { mask, word, .. } = self;
        asm.line(format!("vptestmq {mask}, {word}, {}", broadcast(TOP_BIT, 0)));
        asm.line(format!("vpaddq {word}, {word}, {word}"));
    }

    /// Computes up to the products of sums and differences; the state's x2 .. z3 are only read.
    pub(crate) fn first_half(&self, stream: &mut Stream) {
        self.sums(stream);
        self.differences(stream);
        self.choose_a(stream);
        self.choose_b(stream);
        self.da(stream);
        self.aa(stream);
        self.cb(stream);
        self.bb(stream);
    }

    /// Computes the rest, in an order that separates results from their uses.
    pub(crate) fn second_half(&self, stream: &mut Stream) {
        self.t_and_s(stream);
        self.e(stream);
        self.x2(stream);
        self.tt(stream);
        self.g(stream);
        self.x3(stream);
        self.z3(stream);
        self.z2(stream);
    }

    pub(crate) fn sums(&self, stream: &mut Stream) {
        stream.add(self.a, self.x2, self.z2);
        stream.add(self.c, self.x3, self.z3);
    }

    pub(crate) fn differences(&self, stream: &mut Stream) {
        stream.subtract(self.b, self.x2, self.z2);
        stream.subtract(self.d, self.x3, self.z3);
    }

    pub(crate) fn choose_a(&self, stream: &mut Stream) {
        stream.choose(self.mask, self.chosen_a, self.a, self.c);
    }

    pub(crate) fn choose_b(&self, stream: &mut Stream) {
        stream.choose(self.mask, self.chosen_b, self.b, self.d);
    }

    pub(crate) fn da(&self, stream: &mut Stream) {
        stream.multiply(self.da, self.d, self.a);
    }

    pub(crate) fn cb(&self, stream: &mut Stream) {
        stream.multiply(self.cb, self.c, self.b);
    }

    pub(crate) fn aa(&self, stream: &mut Stream) {
        stream.square(self.aa, self.chosen_a);
    }

    pub(crate) fn bb(&self, stream: &mut Stream) {
        stream.square(self.bb, self.chosen_b);
    }

    pub(crate) fn t_and_s(&self, stream: &mut Stream) {
        stream.subtract(self.t, self.da, self.cb);
        stream.add(self.s, self.da, self.cb);
    }

    pub(crate) fn e(&self, stream: &mut Stream) {
        stream.subtract(self.e, self.aa, self.bb);
    }

    pub(crate) fn tt(&self, stream: &mut Stream) {
        stream.square(self.tt, self.t);
    }

    pub(crate) fn g(&self, stream: &mut Stream) {
        stream.add_small_multiple(self.g, self.aa, self.e);
    }

    pub(crate) fn x2(&self, stream: &mut Stream) {
        stream.multiply(self.x2, self.aa, self.bb);
    }

    pub(crate) fn z2(&self, stream: &mut Stream) {
        stream.multiply(self.z2, self.e, self.g);
    }

    pub(crate) fn x3(&self, stream: &mut Stream) {
        stream.square(self.x3, self.s);
    }

    pub(crate) fn z3(&self, stream: &mut Stream) {
        stream.multiply(self.z3, self.x1, self.tt);
    }
}
