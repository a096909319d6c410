//! Shared test support: keys, inputs, and the oracle.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::io::Write;

use quadrille_kernels::{
    Ceiling, Components, KeySize, Lanes, PrivateKey, PrivateOperation, PrivateOperationError,
};

/// Defines a test of each case on each tier, with names like `ifma::random`.
#[allow(unused_macros, reason = "each test program uses its own part")]
macro_rules! on_each_tier {
    ($($case:ident)+) => {
        support::on_tier! { portable Portable $($case)+ }
        support::on_tier! { avx2 Avx2 $($case)+ }
        support::on_tier! { ifma Ifma $($case)+ }
    };
}

#[allow(unused_macros, reason = "each test program uses its own part")]
macro_rules! on_tier {
    ($tier:ident $ceiling:ident $($case:ident)+) => {
        mod $tier {
            $(#[test]
            fn $case() {
                super::support::on(quadrille_kernels::Ceiling::$ceiling, super::$case);
            })+
        }
    };
}

#[allow(unused_imports, reason = "each test program uses its own part")]
pub(crate) use {on_each_tier, on_tier};

/// Runs the case on this tier if it is selected and the CPU supports it.
pub(crate) fn on(ceiling: Ceiling, case: fn(&Lanes)) {
    // Bypasses the capture of test output, since a skipped test passes.
    let say = |words: String| drop(writeln!(std::io::stderr(), "{words}"));
    let required = std::env::var("TEST_TIERS").ok();
    let named = required.as_ref().map(|tiers| tiers.split(',').any(|tier| tier == ceiling.to_string()));
    let lanes = Lanes::up_to(ceiling);
    if named == Some(false) {
        say(format!("SKIPPED: tier {ceiling} is not among TEST_TIERS"));
    } else if lanes.name() == ceiling.to_string() {
        say(format!("tier {ceiling}: {} lanes", lanes.width()));
        case(&lanes);
    } else {
        assert!(named.is_none(), "TEST_TIERS requires {ceiling}, which this CPU lacks");
        say(format!("SKIPPED: tier {ceiling}: this CPU lacks it"));
    }
}

/// Key with its numbers.
pub(crate) struct TestKey {
    pub(crate) key: PrivateKey,
    pub(crate) n: Vec<u8>,
    pub(crate) e: Vec<u8>,
    pub(crate) p: Vec<u8>,
    pub(crate) q: Vec<u8>,
    pub(crate) dp: Vec<u8>,
    pub(crate) dq: Vec<u8>,
    pub(crate) qinv: Vec<u8>,
}

impl TestKey {
    pub(crate) fn components(&self) -> Components<'_> {
        let Self { n, e, p, q, dp, dq, qinv, .. } = self;
        Components { n, e, p, q, dp, dq, qinv }
    }
}

/// Returns every test key: sizes, orders of p and q, and public exponents mixed.
pub(crate) fn keys() -> Vec<TestKey> {
    blocks().map(key).collect()
}

/// Returns the test keys of one size. Does not import the others: an emulated CPU takes a second a key.
pub(crate) fn keys_of(size: KeySize) -> Vec<TestKey> {
    blocks().filter(|block| field(block, "n").len() == size.bytes()).map(key).collect()
}

fn blocks() -> impl Iterator<Item = &'static str> {
    include_str!("keys.txt").split("\n\n").filter(|block| block.contains("n = "))
}

fn key(block: &str) -> TestKey {
    let [n, e, p, q, dp, dq, qinv] = ["n", "e", "p", "q", "dp", "dq", "qinv"].map(|name| field(block, name));
    let components = Components { n: &n, e: &e, p: &p, q: &q, dp: &dp, dq: &dq, qinv: &qinv };
    let key = PrivateKey::new(&components).expect("a test key is valid");
    TestKey { key, n, e, p, q, dp, dq, qinv }
}

fn field(block: &str, name: &str) -> Vec<u8> {
    let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    unhex(line.unwrap_or_else(|| panic!("a key lacks {name}")))
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "whole bytes");
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("hexadecimal"))
        .collect()
}

/// Right-aligns a number in `len` bytes.
pub(crate) fn padded(number: &[u8], len: usize) -> Vec<u8> {
    let significant = number.iter().position(|&byte| byte != 0).map_or(&[][..], |i| &number[i..]);
    let mut out = vec![0; len - significant.len()];
    out.extend(significant);
    out
}

/// Runs one batch and returns the results of the lanes.
pub(crate) fn run(
    lanes: &Lanes,
    batch: &[(&PrivateKey, &[u8])],
) -> Vec<Result<Vec<u8>, PrivateOperationError>> {
    let mut outputs: Vec<Vec<u8>> = batch.iter().map(|(key, _)| vec![0xa5; key.size().bytes()]).collect();
    let mut ops: Vec<_> = batch
        .iter()
        .zip(&mut outputs)
        .map(|((key, input), output)| PrivateOperation::new(*key, input, output))
        .collect();
    lanes.private_operations(&mut ops);
    let outcomes: Vec<_> = ops.iter().map(PrivateOperation::outcome).collect();
    for (outcome, output) in outcomes.iter().zip(&outputs) {
        assert!(outcome.is_ok() || output.iter().all(|&byte| byte == 0), "a failed lane has no output");
    }
    outcomes.into_iter().zip(outputs).map(|(outcome, output)| outcome.map(|()| output)).collect()
}

/// Computes the result by the portable tier.
pub(crate) fn oracle(key: &PrivateKey, input: &[u8]) -> Vec<u8> {
    run(&Lanes::up_to(Ceiling::Portable), &[(key, input)]).remove(0).expect("the oracle computes")
}

/// xorshift64*: reproducible, and good enough to choose inputs.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Returns a number below `n`, both big-endian.
    pub(crate) fn residue(&mut self, n: &[u8]) -> Vec<u8> {
        loop {
            let candidate: Vec<u8> = n.iter().map(|_| (self.next() >> 56) as u8).collect();
            if candidate.as_slice() < n {
                return candidate;
            }
        }
    }
}
