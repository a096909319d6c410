//! Clients and backends with lanes based on BoringSSL, and recorded reports.

use boring::{
    bn::{BigNum, BigNumContext},
    derive::Deriver,
    ec::{EcGroup, EcKey, EcPoint, PointConversionForm},
    nid::Nid,
    pkey::{PKey, Private},
};
use boring_sys as ffi;
use quadrille_engine::{
    Backend, BatchFlusher, ClientShare, EncapsulateOperation, Engine, ExchangeError, ExchangeOperation,
    ExchangeReport, Group, Job, KeyType, MlKem768, Observer, P256, P256SecretOperation, Scalar,
    SecretOperation, ServerShare, X25519,
};
use std::{
    future::Future,
    mem::MaybeUninit,
    pin::pin,
    ptr,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

/// Client that has sent a share.
pub(super) struct Client {
    pub(super) group: Group,
    x25519: [u8; 32],
    p256: Option<P256Secret>,
    ml_kem: Option<Box<ffi::MLKEM768_private_key>>,
    pub(super) share: Vec<u8>,
}

impl Client {
    pub(super) fn new(group: Group) -> Self {
        let (mut public, mut x25519) = ([0; 32], [0; 32]);
        // SAFETY: two buffers of 32 bytes each.
        unsafe { ffi::X25519_keypair(public.as_mut_ptr(), x25519.as_mut_ptr()) };
        let mut encoded = vec![0; 1184];
        let mut private = Box::new(MaybeUninit::uninit());
        // SAFETY: the outputs have the sizes that the function writes; the seed is optional.
        let private = unsafe {
            ffi::MLKEM768_generate_key(encoded.as_mut_ptr(), ptr::null_mut(), private.as_mut_ptr());
            private.assume_init()
        };
        let (p256, ml_kem, share) = match group {
            Group::X25519 => (None, None, public.to_vec()),
            Group::P256 => {
                let secret = P256Secret::new();
                let share = secret.share();
                (Some(secret), None, share)
            }
            Group::X25519MlKem768 => (None, Some(private), [&encoded[..], &public].concat()),
        };
        Self { group, x25519, p256, ml_kem, share }
    }

    pub(super) fn client_share(&self) -> ClientShare {
        ClientShare::new(self.group, &self.share).expect("a share of the right length")
    }

    /// Computes the secret as a client does.
    pub(super) fn secret(&self, answer: &ServerShare) -> Vec<u8> {
        if let Some(p256) = &self.p256 {
            return p256.with(&answer.public);
        }
        let mut secret = Vec::new();
        let (ciphertext, x25519) = answer.public.split_at(answer.public.len() - 32);
        if let Some(private) = &self.ml_kem {
            let mut shared = [0; 32];
            // SAFETY: the outputs have the sizes that the function writes.
            let ok = unsafe {
                ffi::MLKEM768_decap(
                    shared.as_mut_ptr(),
                    ciphertext.as_ptr(),
                    ciphertext.len(),
                    &raw const **private,
                )
            };
            assert_eq!(ok, 1, "a ciphertext of the right length");
            secret.extend(shared);
        }
        let mut shared = [0; 32];
        // SAFETY: three buffers of 32 bytes each.
        assert_eq!(unsafe { ffi::X25519(shared.as_mut_ptr(), self.x25519.as_ptr(), x25519.as_ptr()) }, 1);
        secret.extend(shared);
        secret
    }
}

/// Client key on P-256.
struct P256Secret(EcKey<Private>);

impl P256Secret {
    fn group() -> EcGroup {
        EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).expect("P-256")
    }

    fn new() -> Self {
        Self(EcKey::generate(&Self::group()).expect("a key"))
    }

    fn with_scalar(scalar: &[u8; 32]) -> Option<Self> {
        let (number, group) = (BigNum::from_slice(scalar).ok()?, Self::group());
        let mut point = EcPoint::new(&group).ok()?;
        point.mul_generator(&group, &number, BigNumContext::new().ok()?.as_mut()).ok()?;
        EcKey::from_private_components(&group, &number, &point).ok().map(Self)
    }

    fn share(&self) -> Vec<u8> {
        let (form, mut context) = (PointConversionForm::UNCOMPRESSED, BigNumContext::new().expect("memory"));
        self.0.public_key().to_bytes(&Self::group(), form, &mut context).expect("a point")
    }

    /// Computes the secret with a point, which must be on the curve.
    fn with(&self, point: &[u8]) -> Vec<u8> {
        let mut context = BigNumContext::new().expect("memory");
        let point = EcPoint::from_bytes(&Self::group(), point, &mut context).expect("a point");
        let peer = EcKey::from_public_key(&Self::group(), &point).expect("a key");
        let (own, peer) = (PKey::from_ec_key(self.0.clone()), PKey::from_ec_key(peer));
        let (own, peer) = (own.expect("a key"), peer.expect("a key"));
        let mut deriver = Deriver::new(&own).expect("a deriver");
        deriver.set_peer(&peer).expect("a peer");
        deriver.derive_to_vec().expect("a secret")
    }
}

/// Eight lanes based on BoringSSL, from two operations on.
pub(super) struct Eight;

/// Eight lanes, from three operations on.
impl P256 for Eight {
    fn name(&self) -> &'static str {
        "eight"
    }

    fn width(&self) -> usize {
        8
    }

    fn crossover(&self) -> usize {
        3
    }

    fn secrets(&self, operations: &mut [P256SecretOperation<'_>]) {
        let last = operations.len() % 8;
        assert!(last == 0 || last >= 3, "the last pass does not pay");
        for P256SecretOperation { private, peer, secret, complete } in operations {
            let mut context = BigNumContext::new().expect("memory");
            if EcPoint::from_bytes(&P256Secret::group(), *peer, &mut context).is_ok() {
                let own = P256Secret::with_scalar(private).expect("a scalar");
                secret.copy_from_slice(&own.with(*peer));
                *complete = true;
            }
        }
    }

    fn public_keys(&self, private: &[[u8; 32]], public: &mut [[u8; 65]]) {
        assert_eq!((private.len() % 8, public.len()), (0, private.len()), "not whole passes");
        for (private, public) in private.iter().zip(public) {
            let key = P256Secret::with_scalar(private);
            *public = key.map_or([0; 65], |key| key.share().try_into().expect("65 bytes"));
        }
    }
}

/// Backend with lanes for P-256 alone.
pub(super) struct WithP256<T>(pub(super) T);

impl<T: P256> Backend for WithP256<T> {
    fn name(&self) -> &'static str {
        "with-p256"
    }

    fn width(&self, _: KeyType) -> usize {
        1
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        Scalar.compute(batch);
    }

    fn verifies(&self) -> bool {
        true
    }

    fn p256(&self) -> Option<&dyn P256> {
        Some(&self.0)
    }
}

/// Lanes with scalars without public keys.
impl P256 for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn width(&self) -> usize {
        8
    }

    fn crossover(&self) -> usize {
        1
    }

    fn secrets(&self, _: &mut [P256SecretOperation<'_>]) {
        panic!("there are no key pairs");
    }

    fn public_keys(&self, _: &[[u8; 32]], public: &mut [[u8; 65]]) {
        public.fill([0; 65]);
    }
}

impl X25519 for Eight {
    fn name(&self) -> &'static str {
        "eight"
    }

    fn width(&self) -> usize {
        8
    }

    fn crossover(&self) -> usize {
        2
    }

    fn secrets(&self, operations: &mut [SecretOperation<'_>]) {
        assert!(operations.len() % 8 != 1, "the last pass does not pay");
        for SecretOperation { private, peer, secret } in operations {
            // SAFETY: three buffers of 32 bytes each.
            unsafe { ffi::X25519(secret.as_mut_ptr(), private.as_ptr(), peer.as_ptr()) };
        }
    }

    fn public_keys(&self, private: &[[u8; 32]], public: &mut [[u8; 32]]) {
        assert_eq!((private.len() % 8, public.len()), (0, private.len()), "not whole passes");
        for (private, public) in private.iter().zip(public) {
            // SAFETY: two buffers of 32 bytes each.
            unsafe { ffi::X25519_public_from_private(public.as_mut_ptr(), private.as_ptr()) };
        }
    }
}

/// Eight lanes based on BoringSSL, from four operations on.
impl MlKem768 for Eight {
    fn name(&self) -> &'static str {
        "eight"
    }

    fn width(&self) -> usize {
        8
    }

    fn crossover(&self) -> usize {
        4
    }

    fn encapsulate(&self, operations: &mut [EncapsulateOperation<'_>]) {
        let last = operations.len() % 8;
        assert!(last == 0 || last >= 4, "the last pass does not pay");
        for operation in operations {
            let mut key = MaybeUninit::uninit();
            let mut input = ffi::CBS { data: operation.key.as_ptr(), len: operation.key.len() };
            let (ciphertext, secret) = (operation.ciphertext.as_mut_ptr(), operation.secret.as_mut_ptr());
            // SAFETY: `input` covers the key, and the outputs have the sizes that the functions write.
            unsafe {
                if ffi::MLKEM768_parse_public_key(key.as_mut_ptr(), &raw mut input) == 1 {
                    ffi::MLKEM768_encap(ciphertext, secret, key.as_ptr());
                    operation.complete = true;
                }
            }
        }
    }
}

/// Lanes that panic.
pub(super) struct Broken;

impl X25519 for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn width(&self) -> usize {
        8
    }

    fn crossover(&self) -> usize {
        1
    }

    fn secrets(&self, _: &mut [SecretOperation<'_>]) {
        panic!("on purpose");
    }

    fn public_keys(&self, _: &[[u8; 32]], _: &mut [[u8; 32]]) {}
}

pub(super) struct With<T>(pub(super) T);

impl<T: X25519> Backend for With<T> {
    fn name(&self) -> &'static str {
        "with"
    }

    fn width(&self, _: KeyType) -> usize {
        1
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        Scalar.compute(batch);
    }

    fn verifies(&self) -> bool {
        true
    }

    fn x25519(&self) -> Option<&dyn X25519> {
        Some(&self.0)
    }
}

/// Backend with lanes for ML-KEM alone.
pub(super) struct WithMlKem<T>(pub(super) T);

impl<T: MlKem768> Backend for WithMlKem<T> {
    fn name(&self) -> &'static str {
        "with-ml-kem"
    }

    fn width(&self, _: KeyType) -> usize {
        1
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        Scalar.compute(batch);
    }

    fn verifies(&self) -> bool {
        true
    }

    fn ml_kem(&self) -> Option<&dyn MlKem768> {
        Some(&self.0)
    }
}

#[derive(Clone, Default)]
pub(super) struct Reports(Arc<Mutex<Vec<ExchangeReport>>>);

impl Observer for Reports {
    fn exchanged(&self, report: &ExchangeReport) {
        self.0.lock().expect("reports").push(*report);
    }
}

impl Reports {
    /// Returns backend, operations and failures of each report of this operation.
    pub(super) fn of(&self, operation: ExchangeOperation) -> Vec<(&'static str, usize, usize)> {
        let reports = self.0.lock().expect("reports");
        let of = reports.iter().filter(|report| report.operation == operation);
        of.map(|report| (report.backend, report.operations, report.failed)).collect()
    }
}

/// Submits all of these shares in one turn of an event loop.
pub(super) fn in_one_turn(
    engine: &Engine,
    shares: Vec<ClientShare>,
) -> Vec<Result<ServerShare, ExchangeError>> {
    let mut context = Context::from_waker(Waker::noop());
    let mut flusher = pin!(BatchFlusher::new(engine.clone()));
    assert!(flusher.as_mut().poll(&mut context).is_pending());
    let mut exchanges: Vec<_> = shares.into_iter().map(|share| Box::pin(engine.exchange(share))).collect();
    if exchanges.len() < 32 {
        assert!(exchanges[0].as_mut().poll(&mut context).is_pending(), "response before the end of the turn");
    }
    assert!(flusher.as_mut().poll(&mut context).is_pending());
    let answers = exchanges.iter_mut().map(|exchange| match exchange.as_mut().poll(&mut context) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("no response at the end of the turn"),
    });
    answers.collect()
}
