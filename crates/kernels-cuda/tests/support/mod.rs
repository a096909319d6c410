//! Shared test support: keys, inputs, an oracle, and the fake driver.

#![allow(dead_code, reason = "each test program uses its own part")]

pub(crate) mod fake;
mod random;

use num_bigint::BigUint;
use quadrille_kernels_cuda::{
    Components, DeviceKey, Gpu, KeySize, PrivateKey, PrivateOperation, PrivateOperationError, Unavailable,
};

pub(crate) use random::Random;

/// Key, by its numbers.
#[derive(Clone)]
pub(crate) struct TestKey {
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
        let Self { n, e, p, q, dp, dq, qinv } = self;
        Components { n, e, p, q, dp, dq, qinv }
    }

    pub(crate) fn private(&self) -> PrivateKey {
        PrivateKey::new(&self.components()).expect("a test key is sound")
    }

    pub(crate) fn upload(&self, gpu: &Gpu) -> DeviceKey {
        gpu.upload(&self.private()).expect("there is room")
    }

    /// Computes input^d mod n with an independent arithmetic.
    pub(crate) fn oracle(&self, input: &[u8]) -> Vec<u8> {
        let number = |bytes: &[u8]| BigUint::from_bytes_be(bytes);
        let (p, q, input) = (number(&self.p), number(&self.q), number(input));
        let m1 = input.modpow(&number(&self.dp), &p);
        let m2 = input.modpow(&number(&self.dq), &q);
        let h = ((&m1 + &p + &p - &m2) * number(&self.qinv)) % &p;
        padded(&(m2 + h * q).to_bytes_be(), self.n.len())
    }
}

/// Returns the keys of `quadrille-kernels`' tests: sizes, orders of p and q, and public exponents mixed.
pub(crate) fn all_keys() -> impl Iterator<Item = TestKey> {
    let blocks = include_str!("../../../kernels/tests/support/keys.txt").split("\n\n");
    blocks.filter(|block| block.contains("n = ")).map(key)
}

/// Returns the keys of one size with a public exponent that the GPU supports.
pub(crate) fn keys_of(size: KeySize) -> Vec<TestKey> {
    all_keys().filter(|key| key.n.len() == size.bytes() && key.e.len() <= 4).collect()
}

fn key(block: &str) -> TestKey {
    let [n, e, p, q, dp, dq, qinv] = ["n", "e", "p", "q", "dp", "dq", "qinv"].map(|name| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        let number = BigUint::parse_bytes(line.expect("every number is present").as_bytes(), 16);
        number.expect("hexadecimal").to_bytes_be()
    });
    TestKey { n, e, p, q, dp, dq, qinv }
}

/// Right-aligns a number in `len` bytes.
pub(crate) fn padded(number: &[u8], len: usize) -> Vec<u8> {
    let significant = number.iter().position(|&byte| byte != 0).map_or(&[][..], |i| &number[i..]);
    let mut out = vec![0; len - significant.len()];
    out.extend(significant);
    out
}

/// Results of a batch, operation by operation.
pub(crate) type Results = Vec<Result<Vec<u8>, PrivateOperationError>>;

/// Runs one batch.
pub(crate) fn run(gpu: &Gpu, batch: &[(&DeviceKey, &[u8])]) -> (Result<(), Unavailable>, Results) {
    let mut outputs: Vec<Vec<u8>> = batch.iter().map(|(key, _)| vec![0xa5; key.size().bytes()]).collect();
    let mut ops: Vec<_> = batch
        .iter()
        .zip(&mut outputs)
        .map(|((key, input), output)| PrivateOperation::new(*key, input, output))
        .collect();
    let done = gpu.run(&mut ops);
    let outcomes: Vec<_> = ops.iter().map(PrivateOperation::outcome).collect();
    for (outcome, output) in outcomes.iter().zip(&outputs) {
        let unused = matches!(outcome, Ok(()) | Err(PrivateOperationError::NotRun));
        assert!(unused || output.iter().all(|&byte| byte == 0), "a failed operation has no output");
    }
    (done, outcomes.into_iter().zip(outputs).map(|(outcome, output)| outcome.map(|()| output)).collect())
}
