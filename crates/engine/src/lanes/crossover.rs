//! Crossover: the smallest number of operations for which a pass of lanes is cheaper than scalar operations. It
//! depends on the CPU, and is measured when a process starts.

use super::{lone::LoneRsa, parts::take_apart};
use crate::{
    MlKem768, Prices, SecretOperation, X25519,
    key_agreement::{self, Encapsulated},
    lone_p256::LoneP256,
};
use boring::{
    bn::{BigNum, BigNumContext},
    ec::{EcGroup, EcKey, EcPoint},
    nid::Nid,
    pkey::Private,
    rsa::{Padding, Rsa},
};
use quadrille_handshake_timing::thread_time;
use quadrille_kernels::{
    Agreement, Ceiling, Encapsulation, Lanes, ML_KEM_PUBLIC_KEY_BYTES, P256_BYTES, P256_POINT_BYTES,
    P256Agreement, P256Key, P256Signature, PrivateKey, PrivateOperation,
};
use std::time::Duration;

/// Published keys that protect nothing, for measuring: RFC 8017 `RSAPrivateKey` in DER.
const KNOWN_KEYS: [&[u8]; 2] = [include_bytes!("known-2048.der"), include_bytes!("known-3072.der")];

/// CPU time for measuring one size, without the first rounds, which run with cold caches and tables.
const BUDGET: Duration = Duration::from_millis(12);
/// CPU time for measuring a cheap operation.
const CHEAP_BUDGET: Duration = Duration::from_millis(1);

/// Smallest batches that pay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossovers {
    rsa2048: RsaSize,
    /// RSA-3072, and the ratios of RSA-4096: an RSA-4096 operation takes too long to measure at every start, and its
    /// ratio to the scalar operation is that of RSA-3072 within a few per cent (docs/kernels/measurements.md).
    rsa3072: RsaSize,
    pub(super) x25519: usize,
    pub(super) ml_kem: usize,
    pub(super) p256: usize,
    pub(super) p256_exchange: usize,
}

impl Crossovers {
    pub(super) fn measure(lanes: &Lanes) -> Self {
        let [rsa2048, rsa3072] = KNOWN_KEYS.map(|der| measure(lanes, der));
        let (x25519, ml_kem) = (measure_x25519(lanes), measure_ml_kem(lanes));
        let (p256, p256_exchange) = (measure_p256(lanes), measure_p256_exchange(lanes));
        Self { rsa2048, rsa3072, x25519, ml_kem, p256, p256_exchange }
    }

    /// Returns the crossover, at most the width.
    pub(super) fn for_bits(&self, bits: u32) -> usize {
        self.size(bits).crossover
    }

    /// The cost of a private operation is proportional to the cube of its size.
    pub(super) fn prices(&self, bits: u32) -> Prices {
        let Prices { lone, half, full } = self.size(bits).prices;
        let [lone, half, full] =
            if bits <= 3072 { [lone, half, full] } else { [lone, half, full].map(|price| price * 64 / 27) };
        Prices { lone, half, full }
    }

    /// Number of operations that AWS-LC computes sooner, one after the other, than a pass of lanes.
    pub(super) fn one_by_one(&self, bits: u32) -> usize {
        self.size(bits).one_by_one
    }

    fn size(&self, bits: u32) -> &RsaSize {
        if bits == 2048 { &self.rsa2048 } else { &self.rsa3072 }
    }
}

/// Measurements of one RSA size.
#[derive(Clone, Copy, Debug)]
struct RsaSize {
    crossover: usize,
    prices: Prices,
    /// Number of operations that AWS-LC computes sooner, one after the other, than a pass of lanes.
    one_by_one: usize,
}

/// CPU time of one size, which excludes other threads of a busy machine; the minimum of several measurements, because
/// those threads still disturb.
#[derive(Clone, Copy)]
struct Costs {
    scalar: Duration,
    /// One operation by AWS-LC.
    lone: Duration,
    /// One operation in lanes. The kernels compute up to half their width at the same price.
    half: Duration,
    full: Duration,
}

/// Measures one size. If BoringSSL or the lanes reject the key, which should not happen, only full passes are used.
fn measure(lanes: &Lanes, der: &[u8]) -> RsaSize {
    let unknown = Prices { lone: Duration::ZERO, half: Duration::ZERO, full: Duration::ZERO };
    let unmeasured = RsaSize { crossover: lanes.width(), prices: unknown, one_by_one: 0 };
    costs(lanes, der).map_or(unmeasured, |costs| {
        let Costs { scalar, lone, half, full } = costs;
        // A tier without IFMA must behave as on a CPU without IFMA, where AWS-LC is no faster than BoringSSL.
        let one_by_one =
            if lanes.name() == "ifma" && lone < scalar { one_by_one(costs, lanes.width()) } else { 0 };
        let (alone, crossover) = match one_by_one {
            0 => (scalar.min(half), crossover(costs, lanes.width())),
            _ => (lone, 1),
        };
        RsaSize { crossover, prices: Prices { lone: alone, half, full }, one_by_one }
    })
}

fn costs(lanes: &Lanes, der: &[u8]) -> Option<Costs> {
    let rsa = Rsa::private_key_from_der(der).ok()?;
    let key = take_apart(&rsa)?;
    lanes.prepare(&key);
    let input = vec![1; key.size().bytes()];
    let lone = LoneRsa::new(&rsa)?;
    // Libraries compute their constants in the first operation of a key.
    run_scalar(&rsa, &input)?;
    lone.compute(&input)?;
    let mut least =
        Costs { scalar: Duration::MAX, lone: Duration::MAX, half: Duration::MAX, full: Duration::MAX };
    let mut rounds = Rounds::within(BUDGET, 2);
    while rounds.go_on() {
        least.scalar = least.scalar.min(timed(|| run_scalar(&rsa, &input))?);
        least.lone = least.lone.min(timed(|| lone.compute(&input).map(drop))?);
        least.half = least.half.min(timed(|| run_lanes(lanes, &key, &input, 1))?);
        least.full = least.full.min(timed(|| run_lanes(lanes, &key, &input, lanes.width()))?);
    }
    Some(least)
}

/// Returns the smallest count from which on every pass is cheaper. A full pass always goes to lanes: they pay twofold
/// and more on every CPU measured, so a measurement to the contrary was disturbed.
fn crossover(Costs { scalar, half, full, .. }: Costs, width: usize) -> usize {
    let pays = |count: usize| {
        let lanes = if count <= width / 2 { half } else { full };
        lanes < scalar.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
    };
    (1..=width).rev().take_while(|&count| pays(count)).last().unwrap_or(width)
}

/// Returns the largest count of operations that cost less by AWS-LC than a pass of half the width.
fn one_by_one(Costs { lone, half, .. }: Costs, width: usize) -> usize {
    let pays = |count: &usize| lone.saturating_mul(u32::try_from(*count).unwrap_or(u32::MAX)) < half;
    (1..=width / 2).take_while(pays).last().unwrap_or(0)
}

/// A pass costs the same from two secrets on; a single secret is scalar code in the kernels too.
fn measure_x25519(lanes: &Lanes) -> usize {
    let (private, peer) = ([0x5a; 32], [9; 32]);
    let mut secrets = vec![[0; 32]; lanes.x25519_width()];
    let (mut scalar, mut pass) = (Duration::MAX, Duration::MAX);
    let mut rounds = Rounds::within(CHEAP_BUDGET, 5);
    while rounds.go_on() {
        let one = |secret| SecretOperation { private: &private, peer: &peer, secret };
        let mut alone = secrets.iter_mut().take(1).map(one).collect::<Vec<_>>();
        scalar = scalar.min(time_of(|| key_agreement::Scalar.secrets(&mut alone)));
        let all = secrets.iter_mut().map(|secret| Agreement::new(&private, &peer, secret));
        let mut all = all.collect::<Vec<_>>();
        pass = pass.min(time_of(|| lanes.agree(&mut all)));
    }
    crossover(Costs { scalar, lone: scalar, half: pass, full: pass }, lanes.x25519_width()).max(2)
}

/// A pass of four costs three quarters of one of eight, and fewer a little less than four. A lone operation has a kernel
/// of its own.
fn measure_ml_kem(lanes: &Lanes) -> usize {
    let width = lanes.ml_kem_width();
    let (key, randomness) = ([0; ML_KEM_PUBLIC_KEY_BYTES], [0x5a; 32]);
    let mut results = vec![Encapsulated::default(); width];
    let mut least =
        Costs { scalar: Duration::MAX, lone: Duration::MAX, half: Duration::MAX, full: Duration::MAX };
    let mut lone = Duration::MAX;
    let mut rounds = Rounds::within(CHEAP_BUDGET, 5);
    while width > 1 && rounds.go_on() {
        let mut alone = [results[0].operation(&key)];
        least.scalar = least.scalar.min(time_of(|| key_agreement::Scalar.encapsulate(&mut alone)));
        let mut all: Vec<_> = results
            .iter_mut()
            .map(|Encapsulated { ciphertext, secret }| {
                Encapsulation::new(&key, &randomness, ciphertext, secret)
            })
            .collect();
        lone = lone.min(time_of(|| lanes.encapsulate(&mut all[..1])));
        least.half = least.half.min(time_of(|| lanes.encapsulate(&mut all[..width / 2])));
        least.full = least.full.min(time_of(|| lanes.encapsulate(&mut all)));
    }
    match crossover(least, width) {
        2 if lone < least.scalar => 1,
        crossover => crossover,
    }
}

/// A pass costs the same at any fill. A single signature is not worth the wait for the end of the turn.
fn measure_p256(lanes: &Lanes) -> usize {
    let measured = || {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).ok()?;
        let (d, digest) = ([0x5a; P256_BYTES], [0xa5; 32]);
        let number = BigNum::from_slice(&d).ok()?;
        let mut point = EcPoint::new(&group).ok()?;
        point.mul_generator(&group, &number, BigNumContext::new().ok()?.as_mut()).ok()?;
        let ec = EcKey::from_private_components(&group, &number, &point).ok()?;
        let (lone, key) = (LoneP256::new(&ec)?, P256Key::new(&d)?);
        let mut signatures = vec![[0; 2 * P256_BYTES]; lanes.p256_width()];
        let (mut scalar, mut pass) = (Duration::MAX, Duration::MAX);
        let mut rounds = Rounds::within(CHEAP_BUDGET, 5);
        while rounds.go_on() {
            scalar = scalar.min(timed(|| lone.sign(&digest).map(drop))?);
            let all = signatures.iter_mut().map(|signature| P256Signature::new(&key, &digest, signature));
            let mut all = all.collect::<Vec<_>>();
            pass = pass.min(time_of(|| lanes.sign_p256(&mut all)));
        }
        Some(crossover(Costs { scalar, lone: scalar, half: pass, full: pass }, lanes.p256_width()).max(2))
    };
    measured().unwrap_or(lanes.p256_width())
}

/// Measures key pair and secret together, against BoringSSL, which saves the hand-over of the result. A pass costs
/// the same at any fill.
fn measure_p256_exchange(lanes: &Lanes) -> usize {
    /// Cost to a handshake of passing its key exchange in (docs/decisions/key-exchange.md).
    const HAND_OVER: Duration = Duration::from_micros(4);
    let width = lanes.p256_width();
    let (private, boringssl) = (vec![[0x5a; P256_BYTES]; width], Lanes::up_to(Ceiling::Portable));
    let (mut peers, mut secrets) = (vec![[0; P256_POINT_BYTES]; width], vec![[0; P256_BYTES]; width]);
    let (mut scalar, mut pass) = (Duration::MAX, Duration::MAX);
    let mut rounds = Rounds::within(CHEAP_BUDGET, 3);
    while width > 1 && rounds.go_on() {
        let mut exchange = |lanes: &Lanes, count: usize| {
            lanes.p256_public_keys(&private[..count], &mut peers[..count]);
            let each = private.iter().zip(&peers).zip(&mut secrets).take(count);
            let mut all: Vec<_> =
                each.map(|((private, peer), secret)| P256Agreement::new(private, peer, secret)).collect();
            lanes.agree_p256(&mut all);
        };
        pass = pass.min(time_of(|| exchange(lanes, width)));
        scalar = scalar.min(time_of(|| exchange(&boringssl, 1)));
    }
    let scalar = scalar.saturating_sub(HAND_OVER);
    crossover(Costs { scalar, lone: scalar, half: pass, full: pass }, width).max(2)
}

/// Duration of a measurement.
struct Rounds {
    began: Duration,
    budget: Duration,
    /// Minimum number of rounds.
    least: u32,
}

impl Rounds {
    fn within(budget: Duration, least: u32) -> Self {
        Self { began: thread_time(), budget, least }
    }

    fn go_on(&mut self) -> bool {
        let certain = self.least > 0;
        self.least = self.least.saturating_sub(1);
        certain || thread_time().saturating_sub(self.began) < self.budget
    }
}

fn time_of(what: impl FnOnce()) -> Duration {
    let began = thread_time();
    what();
    thread_time().saturating_sub(began)
}

fn timed(what: impl FnOnce() -> Option<()>) -> Option<Duration> {
    let began = thread_time();
    what()?;
    Some(thread_time().saturating_sub(began))
}

fn run_scalar(rsa: &Rsa<Private>, input: &[u8]) -> Option<()> {
    let mut output = vec![0; input.len()];
    rsa.private_encrypt(input, &mut output, Padding::NONE).ok().map(drop)
}

fn run_lanes(lanes: &Lanes, key: &PrivateKey, input: &[u8], count: usize) -> Option<()> {
    let mut outputs = vec![vec![0; input.len()]; count];
    let mut ops: Vec<_> =
        outputs.iter_mut().map(|output| PrivateOperation::new(key, input, output)).collect();
    lanes.private_operations(&mut ops);
    ops.iter().all(|op| op.outcome().is_ok()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::{Costs, Crossovers, Duration, crossover, one_by_one};
    use quadrille_kernels::{Ceiling, Lanes};
    use std::time::Instant;

    fn crossover_of(scalar: u64, half: u64, full: u64, width: usize) -> usize {
        let [scalar, half, full] = [scalar, half, full].map(Duration::from_micros);
        crossover(Costs { scalar, lone: scalar, half, full }, width)
    }

    #[test]
    fn the_smallest_batch_from_which_on_lanes_pay() {
        assert_eq!(crossover_of(700, 450, 900, 8), 1);
        assert_eq!(crossover_of(360, 450, 900, 8), 2);
        assert_eq!(crossover_of(700, 900, 900, 8), 2, "there is no cheaper half");
        assert_eq!(crossover_of(360, 700, 1380, 4), 4, "two pay and three do not");
        assert_eq!(crossover_of(360, 450, 1900, 8), 6, "a half that pays does not help larger batches");
        assert_eq!(crossover_of(100, 900, 900, 8), 8, "a full pass goes to lanes");
    }

    #[test]
    fn few_are_computed_one_by_one_where_that_takes_less_than_a_pass() {
        let of = |lone, half| {
            let [lone, half, full] = [lone, half, 2 * half].map(Duration::from_micros);
            one_by_one(Costs { scalar: full, lone, half, full }, 8)
        };
        assert_eq!(of(500, 450), 0);
        assert_eq!(of(400, 450), 1);
        assert_eq!(of(1500, 4000), 2);
        assert_eq!(of(1, 4000), 4, "more than half the width always go to lanes");
    }

    #[test]
    fn measuring_ends_soon_and_tells_lanes_from_scalar() {
        let lanes = Lanes::up_to(Ceiling::default());
        if lanes.width() == 1 {
            println!("not tested: this CPU has no lanes");
            return;
        }
        let began = Instant::now();
        let measured = Crossovers::measure(&lanes);
        println!("{} {measured:?} in {:?}", lanes.name(), began.elapsed());
        for bits in [2048, 3072, 4096] {
            assert!(
                measured.for_bits(bits) <= lanes.width()
                    && measured.prices(bits).half <= measured.prices(bits).full,
                "a full pass of {} pays: {measured:?}",
                lanes.name()
            );
        }
    }
}
