//! Safe interface: chooses a tier once, then runs batches.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::batch::{Arithmetic, KeyConstants, Lane, NoProbe, Workspace};
use crate::cpu::{Ceiling, UnknownTier};
use crate::key::PrivateKey;
use crate::ml_dsa_tier;
#[cfg(target_arch = "x86_64")]
use crate::{
    cpu::{HaveAvx2Fma, HaveAvx512, HaveIfma},
    ml_kem,
    x86_64::{avx512::Avx512, fma47::Fma47, ifma::Ifma},
};
use quadrille_rsa_numbers::{
    KeySize, PrivateOperation, PrivateOperationError, RsaKey,
    words::{self, Secret},
};

/// Externally computed result of the private operation, for [`Lanes::confirm`].
#[derive(Clone, Copy)]
pub struct Computed<'a> {
    /// Key with which it was computed.
    pub key: &'a PrivateKey,
    /// Input, big-endian, as long as the modulus, and below it.
    pub input: &'a [u8],
    /// Result, big-endian, as long as the modulus.
    pub result: &'a [u8],
}

impl Computed<'_> {
    /// Parses input and result into words, if both are below the modulus.
    fn parse(&self) -> Option<(Secret, Secret)> {
        let modulus = self.key.modulus();
        modulus.parse(self.input).ok().zip(modulus.parse(self.result).ok())
    }
}

impl fmt::Debug for Computed<'_> {
    /// Shows the size, but not key, input or result.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computed").field("size", &self.key.size()).finish_non_exhaustive()
    }
}

/// Chosen tier, with the memory of its batches. Share it between threads.
#[derive(Debug)]
pub struct Lanes {
    backend: Backend,
    /// Requires other instructions than the `ifma` tier's RSA, which are however present on all CPUs of that tier.
    #[cfg(target_arch = "x86_64")]
    ml_kem: Option<ml_kem::Pool<Avx512>>,
    ml_dsa: ml_dsa_tier::Tier,
}

#[derive(Debug)]
pub(crate) enum Backend {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Pool<Fma47>),
    #[cfg(target_arch = "x86_64")]
    Ifma(Pool<Ifma>),
}

impl Lanes {
    /// Returns the best tier of this CPU that `QUADRILLE_CPU` allows.
    pub fn detect() -> Result<Self, UnknownTier> {
        Ceiling::from_environment().map(Self::up_to)
    }

    /// Returns the best tier of this CPU that `ceiling` allows.
    pub fn up_to(ceiling: Ceiling) -> Self {
        let backend = Backend::up_to(ceiling);
        #[cfg(target_arch = "x86_64")]
        let ml_kem = match backend {
            Backend::Ifma(_) => HaveAvx512::detect().map(|proof| ml_kem::Pool::new(Avx512::new(proof))),
            _ => None,
        };
        Self {
            backend,
            #[cfg(target_arch = "x86_64")]
            ml_kem,
            ml_dsa: ml_dsa_tier::Tier::up_to(ceiling),
        }
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    #[cfg(target_arch = "x86_64")]
    pub(crate) fn ml_kem(&self) -> Option<&ml_kem::Pool<Avx512>> {
        self.ml_kem.as_ref()
    }

    pub(crate) fn ml_dsa(&self) -> &ml_dsa_tier::Tier {
        &self.ml_dsa
    }

    /// Name of the tier: `portable`, `avx2` or `ifma`.
    pub fn name(&self) -> &'static str {
        match &self.backend {
            Backend::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma(_) => "ifma",
        }
    }

    /// Number of operations that run at once: 1, 4 or 8. Up to half as many take about half the time, since both
    /// halves of an operation (modulo p and modulo q) then run at once too; between the two, a batch costs the same
    /// at any fill.
    pub fn width(&self) -> usize {
        match &self.backend {
            Backend::Portable => 1,
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2(_) => Fma47::LANES,
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma(_) => Ifma::LANES,
        }
    }

    /// Precomputes the values that depend on the key alone, which the key's first operation does otherwise (some
    /// hundred microseconds).
    pub fn prepare(&self, key: &PrivateKey) {
        match &self.backend {
            Backend::Portable => {}
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2(_) => drop(Fma47::constants_of(key)),
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma(_) => drop(Ifma::constants_of(key)),
        }
    }

    /// Returns which of the results are right: result^e = input mod n, both below n and as long as the modulus.
    ///
    /// It is for results computed elsewhere with keys of this process, for instance by a GPU. It costs about a
    /// thirtieth of computing them here.
    pub fn confirm(&self, results: &[Computed<'_>]) -> Vec<bool> {
        match &self.backend {
            Backend::Portable => results.iter().map(confirm_scalar).collect(),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2(pool) => pool.confirm(results),
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma(pool) => pool.confirm(results),
        }
    }

    /// Runs every operation of the batch and sets its outcome. The best batch has [`width`](Self::width) operations
    /// with keys of one size; other numbers and mixed sizes work too.
    ///
    /// Every result is checked with the public key before it is written. Operations do not affect each other.
    pub fn private_operations(&self, batch: &mut [PrivateOperation<'_, PrivateKey>]) {
        match &self.backend {
            Backend::Portable => batch.iter_mut().for_each(run_scalar),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2(pool) => pool.run(batch),
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma(pool) => pool.run(batch),
        }
    }
}

impl Backend {
    fn up_to(ceiling: Ceiling) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if ceiling >= Ceiling::Ifma
                && let Some(proof) = HaveIfma::detect()
            {
                return Self::Ifma(Pool::new(Ifma::new(proof)));
            }
            if ceiling >= Ceiling::Avx2
                && let Some(proof) = HaveAvx2Fma::detect()
            {
                return Self::Avx2(Pool::new(Fma47::new(proof)));
            }
        }
        let _ = ceiling;
        Self::Portable
    }
}

fn run_scalar(op: &mut PrivateOperation<'_, PrivateKey>) {
    let (checked, key, input) = (op.check(), op.key(), op.input());
    op.finish(|output| {
        checked?;
        key.scalar.private_operation(input, output)
    });
}

fn confirm_scalar(computed: &Computed<'_>) -> bool {
    computed.parse().is_some() && computed.key.scalar.confirms(computed.input, computed.result)
}

/// Instruction set with constants that a key can hold.
pub(crate) trait Tier: Arithmetic {
    /// Returns the key's constants, computed on first use.
    fn constants_of(key: &PrivateKey) -> &KeyConstants<Self>;
}

#[cfg(target_arch = "x86_64")]
impl Tier for Ifma {
    fn constants_of(key: &PrivateKey) -> &KeyConstants<Self> {
        key.ifma.get_or_init(|| KeyConstants::new(&key.numbers))
    }
}

#[cfg(target_arch = "x86_64")]
impl Tier for Fma47 {
    fn constants_of(key: &PrivateKey) -> &KeyConstants<Self> {
        key.fma47.get_or_init(|| KeyConstants::new(&key.numbers))
    }
}

/// Tier with the idle memory of earlier batches, by key size.
pub(crate) struct Pool<A: Arithmetic> {
    arithmetic: A,
    idle: [Mutex<Vec<Workspace<A>>>; KeySize::ALL.len()],
}

impl<A: Tier> Pool<A> {
    fn new(arithmetic: A) -> Self {
        Self { arithmetic, idle: Default::default() }
    }

    pub(crate) fn arithmetic(&self) -> A {
        self.arithmetic
    }

    fn run(&self, batch: &mut [PrivateOperation<'_, PrivateKey>]) {
        for size in KeySize::ALL {
            let (mut ready, mut inputs) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
            for op in batch.iter_mut().filter(|op| op.size() == size) {
                match op.parse() {
                    Ok(input) => {
                        ready.push(op);
                        inputs.push(input);
                    }
                    Err(error) => op.finish(|_| Err(error.into())),
                }
            }
            if !ready.is_empty() {
                self.run_size(size, &mut ready, &inputs);
            }
        }
    }

    fn run_size(&self, size: KeySize, ops: &mut [&mut PrivateOperation<'_, PrivateKey>], inputs: &[Secret]) {
        let mut workspace = self.take(size);
        for (ops, inputs) in ops.chunks_mut(A::LANES).zip(inputs.chunks(A::LANES)) {
            let lanes: Vec<_> =
                ops.iter().zip(inputs).map(|(op, input)| self.lane(op.key(), input)).collect();
            let results = workspace.run(self.arithmetic, &lanes, &mut NoProbe);
            for (op, result) in ops.iter_mut().zip(results) {
                op.finish(|output| {
                    words::to_be_bytes(&result.ok_or(PrivateOperationError::Fault)?, output);
                    Ok(())
                });
            }
        }
        self.give_back(size, workspace);
    }

    fn confirm(&self, results: &[Computed<'_>]) -> Vec<bool> {
        let mut confirmed = vec![false; results.len()];
        for size in KeySize::ALL {
            let of_size = results.iter().enumerate().filter(|(_, computed)| computed.key.size() == size);
            let parsed: Vec<_> =
                of_size.filter_map(|(i, computed)| Some((i, computed.key, computed.parse()?))).collect();
            if parsed.is_empty() {
                continue;
            }
            let mut workspace = self.take(size);
            for chunk in parsed.chunks(A::LANES) {
                let lanes: Vec<_> = chunk.iter().map(|(_, key, (input, _))| self.lane(key, input)).collect();
                let results: Vec<&Secret> = chunk.iter().map(|(_, _, (_, result))| result).collect();
                let sound = workspace.confirm(self.arithmetic, &lanes, &results);
                chunk.iter().zip(sound).for_each(|((i, ..), sound)| confirmed[*i] = sound);
            }
            self.give_back(size, workspace);
        }
        confirmed
    }

    fn take(&self, size: KeySize) -> Workspace<A> {
        let idle = self.idle[size as usize].lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| Workspace::new(size))
    }

    fn give_back(&self, size: KeySize, workspace: Workspace<A>) {
        self.idle[size as usize].lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
    }

    fn lane<'a>(&self, key: &'a PrivateKey, input: &'a [u64]) -> Lane<'a, A> {
        Lane { numbers: &key.numbers, constants: A::constants_of(key), input }
    }
}

impl<A: Arithmetic> fmt::Debug for Pool<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}
