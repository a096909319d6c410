//! Fault injection by bit flips: no wrong result is released, and other lanes are unaffected.

use super::lane_layout::{Half, LaneLayout, LanePosition};
use super::{Arithmetic, KeyConstants, Lane, NoProbe, Probe, Ring, Stage, Vector, Workspace, test_keys};
use crate::batch::exponents::Exponents;
use crate::key::PrivateKey;
use crate::lanes::Tier;
#[cfg(target_arch = "x86_64")]
use crate::{
    cpu::{HaveAvx2Fma, HaveIfma},
    x86_64::{fma47::Fma47, ifma::Ifma},
};
use quadrille_rsa_numbers::{
    Components, KeySize, Numbers,
    words::{self, Secret},
};

/// Number of bits that the test flips under RSA-2048, unless `TEST_FLIPS` is set. A fiftieth of it under the larger
/// keys.
const FLIPS: usize = 2_000;

#[cfg(target_arch = "x86_64")]
#[test]
fn ifma_never_releases_a_wrong_result() {
    match HaveIfma::detect() {
        Some(proof) => flip_everything(Ifma::new(proof)),
        None => println!("skipped: this CPU lacks AVX-512 IFMA"),
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn avx2_never_releases_a_wrong_result() {
    match HaveAvx2Fma::detect() {
        Some(proof) => flip_everything(Fma47::new(proof)),
        None => println!("skipped: this CPU lacks AVX2 or FMA"),
    }
}

fn flip_everything<A: Tier + BitFlip>(arithmetic: A) {
    let flips = flips();
    for (size, flips) in KeySize::ALL.into_iter().zip([flips, flips.div_ceil(50), flips.div_ceil(50)]) {
        Campaign::new(arithmetic, size).run(flips);
    }
}

fn flips() -> usize {
    std::env::var("TEST_FLIPS").map_or(FLIPS, |n| n.parse().expect("a number"))
}

/// Tier with digits that can be corrupted.
trait BitFlip: Arithmetic {
    fn flip(vector: &mut Self::Vector, lane: usize, bit: u32);
}

#[cfg(target_arch = "x86_64")]
impl BitFlip for Ifma {
    fn flip(vector: &mut Self::Vector, lane: usize, bit: u32) {
        vector.lanes_mut()[lane] ^= 1 << (bit % 52);
    }
}

#[cfg(target_arch = "x86_64")]
impl BitFlip for Fma47 {
    /// Any bit: sign, exponent and mantissa, so that infinities and NaNs occur too.
    fn flip(vector: &mut Self::Vector, lane: usize, bit: u32) {
        let digit = &mut vector.lanes_mut()[lane];
        *digit = f64::from_bits(digit.to_bits() ^ 1 << bit);
    }
}

/// Location of the flipped bit.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// Number of the key itself: p or q, as the recombination reads them.
    Prime { second: bool, bit: usize },
    /// Exponent dp or dq.
    Exponent { half: Half, bit: usize },
    /// Any vector of a ring (constants, operands, scratch, table) at some stage, in the half's lane.
    Ring { half: Half, stage: Stage, part: usize, index: usize, bit: u32 },
}

/// Keys, inputs and expected results.
struct Campaign<A: Arithmetic> {
    arithmetic: A,
    workspace: Workspace<A>,
    keys: Vec<PrivateKey>,
    inputs: Vec<Secret>,
    expected: Vec<Secret>,
    random: u64,
}

impl<A: Tier + BitFlip> Campaign<A> {
    fn new(arithmetic: A, size: KeySize) -> Self {
        let mut keys = test_keys(size);
        let copies: Vec<_> = (keys.len()..A::LANES).map(|i| keys[i % keys.len()].copy()).collect();
        keys.extend(copies);
        keys.truncate(A::LANES);
        let input = |key: &PrivateKey| {
            let mut input = words::secret(size.words());
            input.copy_from_slice(&key.numbers.n);
            words::subtract(&mut input, &key.numbers.p);
            input
        };
        let inputs: Vec<_> = keys.iter().map(input).collect();
        let mut campaign = Self {
            arithmetic,
            workspace: Workspace::new(size),
            keys,
            inputs,
            expected: Vec::new(),
            random: 1,
        };
        let results = campaign.batch(A::LANES, &mut NoProbe).into_iter();
        campaign.expected = results.map(|result| result.expect("no fault yet")).collect();
        campaign
    }

    /// Corrupts about half of the operations of every batch, one bit each. Full batches, which take two rings,
    /// alternate with half-full ones, which take one.
    fn run(&mut self, flips: usize) {
        let (mut done, mut caught) = (0, 0);
        for operations in [A::LANES, A::LANES / 2].into_iter().cycle() {
            if done >= flips {
                break;
            }
            let targets: Vec<Option<Target>> =
                (0..operations).map(|_| (self.below(2) == 0).then(|| self.target())).collect();
            self.flip_primes(&targets);
            let layout = LaneLayout::new::<A>(operations);
            let results = self.batch(operations, &mut FaultInjector { targets: &targets, layout });
            self.flip_primes(&targets);
            for (i, (target, result)) in targets.iter().zip(results).enumerate() {
                match (target, result) {
                    (_, Some(result)) => {
                        assert_eq!(result, self.expected[i], "{target:?} released a wrong result");
                    }
                    (Some(_), None) => caught += 1,
                    (None, None) => panic!("a fault in another operation affected this one"),
                }
                done += usize::from(target.is_some());
            }
        }
        // Bits in memory that is overwritten before it is read have no effect.
        assert!(caught > done / 4, "only {caught} of {done} flips had an effect");
        println!(
            "{}: {done} flips, {caught} wrong results destroyed, none released",
            self.keys[0].size().bits()
        );
    }

    fn batch(&mut self, operations: usize, probe: &mut impl Probe<A>) -> Vec<Option<Secret>> {
        let lane = |(key, input)| {
            let key: &PrivateKey = key;
            let input: &Secret = input;
            Lane { numbers: &key.numbers, constants: A::constants_of(key), input }
        };
        let lanes: Vec<_> = self.keys.iter().zip(&self.inputs).take(operations).map(lane).collect();
        let results = self.workspace.run(self.arithmetic, &lanes, probe);
        assert!(self.workspace.is_clear(), "a batch clears its memory");
        results
    }

    fn target(&mut self) -> Target {
        let half_bits = self.keys[0].size().bits() / 2;
        match self.below(8) {
            0 => Target::Prime { second: self.below(2) == 1, bit: self.below(half_bits) },
            1 | 2 => Target::Exponent { half: self.half(), bit: self.below(half_bits) },
            _ => {
                let stages = [Stage::Loaded, Stage::TableBuilt, Stage::HalfwayThrough, Stage::Exponentiated];
                Target::Ring {
                    half: self.half(),
                    stage: stages[self.below(4)],
                    part: self.below(9),
                    index: self.below(1 << 20),
                    bit: self.below(64) as u32,
                }
            }
        }
    }

    fn half(&mut self) -> Half {
        if self.below(2) == 0 { Half::P } else { Half::Q }
    }

    fn flip_primes(&mut self, targets: &[Option<Target>]) {
        for (key, target) in self.keys.iter_mut().zip(targets) {
            if let Some(Target::Prime { second, bit }) = *target {
                let prime = if second { &mut key.numbers.q } else { &mut key.numbers.p };
                prime[bit / 64] ^= 1 << (bit % 64);
            }
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) as usize % bound
    }
}

/// Flips the bits of its targets at their stage.
struct FaultInjector<'a> {
    targets: &'a [Option<Target>],
    layout: LaneLayout,
}

impl<A: BitFlip> Probe<A> for FaultInjector<'_> {
    fn on_stage(&mut self, now: Stage, first: usize, rings: &mut [Ring<A>], exponents: &mut [Exponents<A>]) {
        for (operation, target) in self.targets.iter().enumerate() {
            match *target {
                Some(Target::Exponent { half, bit }) if now == Stage::Loaded => {
                    let LanePosition { ring, lane } = self.layout.position(operation, half);
                    exponents[ring].flip(lane, bit);
                }
                Some(Target::Ring { half, stage, part, index, bit }) if now == stage => {
                    let LanePosition { ring, lane } = self.layout.position(operation, half);
                    let Some(ring) = ring.checked_sub(first).and_then(|ring| rings.get_mut(ring)) else {
                        continue;
                    };
                    let mut parts = ring.parts_mut();
                    let part = &mut parts[part];
                    let index = index % part.len();
                    A::flip(&mut part[index], lane, bit);
                }
                _ => {}
            }
        }
    }
}

impl PrivateKey {
    /// Creates a second key with the same numbers.
    fn copy(&self) -> Self {
        let bytes = |words: &[u64]| {
            let mut bytes = vec![0; 8 * words.len()];
            words::to_be_bytes(words, &mut bytes);
            bytes
        };
        let Numbers { n, e, p, q, dp, dq, qinv, .. } = &self.numbers;
        let [n, e, p, q, dp, dq, qinv] = [n, e, &**p, &**q, &**dp, &**dq, &**qinv].map(|words| bytes(words));
        let components = Components { n: &n, e: &e, p: &p, q: &q, dp: &dp, dq: &dq, qinv: &qinv };
        Self::new(&components).expect("the original was valid")
    }
}

/// Constants computed from a corrupted key are detected like any other fault.
#[cfg(target_arch = "x86_64")]
#[test]
fn constants_of_a_spoiled_key_release_nothing() {
    let Some(proof) = HaveIfma::detect() else {
        println!("skipped: this CPU lacks AVX-512 IFMA");
        return;
    };
    let mut campaign = Campaign::new(Ifma::new(proof), KeySize::Rsa2048);
    let flip = |key: &mut PrivateKey, bit: usize| {
        let number = [&mut key.numbers.p, &mut key.numbers.q, &mut key.numbers.qinv]
            .into_iter()
            .nth(bit % 3)
            .expect("three numbers");
        number[bit / 64] ^= 1 << (bit % 64);
    };
    for bit in (1..1023).step_by(1 + 1023 / flips().min(60)) {
        flip(&mut campaign.keys[0], bit);
        let key = &campaign.keys[0];
        let constants = KeyConstants::new(&key.numbers);
        let lanes = [Lane { numbers: &key.numbers, constants: &constants, input: &campaign.inputs[0] }];
        assert!(campaign.workspace.run(campaign.arithmetic, &lanes, &mut NoProbe)[0].is_none(), "bit {bit}");
        flip(&mut campaign.keys[0], bit);
    }
}
