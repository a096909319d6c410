//! Key exchange on the server.

use super::case::{Case, Purpose};
use boring::{
    bn::BigNumContext,
    derive::Deriver,
    ec::{EcGroup, EcKey, PointConversionForm},
    error::ErrorStack,
    nid::Nid,
    pkey::{PKey, Private},
};
use boring_sys as ffi;
use quadrille_engine::{
    Backend, BatchFlusher, ClientShare, Engine, Group, Policy, Scalar, Settings, Unobserved, fastest,
};
use std::{
    future::Future,
    hint::black_box,
    mem::MaybeUninit,
    num::NonZeroUsize,
    ptr,
    task::{Context, Waker},
};

pub(super) fn cases() -> Result<Vec<Case>, ErrorStack> {
    let mut cases = vec![ecdh_p256()?, ecdh_p256_secret()?, x25519(), x25519_mlkem768()];
    cases.extend(in_the_engine());
    Ok(cases)
}

/// Cases computed by the engine: for one client alone, and in lanes, if available, with two passes filled.
pub(super) fn in_the_engine() -> Vec<Case> {
    let engine = |backend: Box<dyn Backend>| {
        let (policy, one) = (Policy::default(), NonZeroUsize::MIN);
        let settings = Settings { policy, threads: one, yields: 0, capacity: one, key_exchange: true };
        Engine::start(settings, backend, Unobserved).ok()
    };
    let scalar = engine(Box::new(Scalar)).map(|engine| (engine, "engine", 1));
    let lanes = fastest().ok().and_then(|backend| {
        let (name, width) = (backend.name(), backend.x25519()?.width());
        Some((engine(backend)?, name, 2 * width))
    });
    let groups =
        [("ECDH P-256", Group::P256), ("X25519", Group::X25519), ("X25519MLKEM768", Group::X25519MlKem768)];
    let engines: Vec<_> = scalar.into_iter().chain(lanes).collect();
    let by_all = |group| engines.iter().filter_map(move |engine| answers(group, engine));
    groups.iter().flat_map(by_all).collect()
}

/// Computes the engine's responses to this many clients in one turn of an event loop, if it supports the group.
fn answers(
    &(name, group): &(&str, Group),
    (engine, by, clients): &(Engine, &'static str, usize),
) -> Option<Case> {
    let (x25519, _) = x25519_pair();
    let share = match group {
        _ if !engine.exchanges(group) => return None,
        Group::P256 => p256_share().ok()?,
        Group::X25519 => x25519.to_vec(),
        Group::X25519MlKem768 => [&mlkem768_public_key()[..], &x25519].concat(),
    };
    let (engine, operations) = (engine.clone(), *clients);
    let mut flusher = Box::pin(BatchFlusher::new(engine.clone()));
    let run = move || {
        let mut context = Context::from_waker(Waker::noop());
        let _ = flusher.as_mut().poll(&mut context);
        let shares = (0..operations).filter_map(|_| ClientShare::new(group, &share));
        let mut exchanges: Vec<_> = shares.map(|share| Box::pin(engine.exchange(share))).collect();
        let _ = flusher.as_mut().poll(&mut context);
        for exchange in &mut exchanges {
            let _ = black_box(exchange.as_mut().poll(&mut context));
        }
    };
    Some(Case { by, operations, ..Case::new(Purpose::Exchange, name, run) })
}

/// Returns a key share as the ClientHello carries it.
fn p256_share() -> Result<Vec<u8>, ErrorStack> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    let key = EcKey::generate(&group)?;
    let mut context = BigNumContext::new()?;
    key.public_key().to_bytes(&group, PointConversionForm::UNCOMPRESSED, &mut context)
}

/// Generates a key pair and computes the shared secret with the client's (RFC 8446 section 7.4.2).
fn ecdh_p256() -> Result<Case, ErrorStack> {
    let client = p256_pair()?;
    Ok(Case::new(Purpose::Exchange, "ECDH P-256", move || {
        let _ = black_box(p256_pair().and_then(|own| p256_secret(&own, &client)));
    }))
}

/// Computes the secret with an existing key pair: no handshake does that, but `openssl speed` measures it.
fn ecdh_p256_secret() -> Result<Case, ErrorStack> {
    let (own, client) = (p256_pair()?, p256_pair()?);
    Ok(Case::new(Purpose::Exchange, "ECDH P-256 secret", move || {
        let _ = black_box(p256_secret(&own, &client));
    }))
}

fn p256_pair() -> Result<PKey<Private>, ErrorStack> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    PKey::from_ec_key(EcKey::generate(&group)?)
}

fn p256_secret(own: &PKey<Private>, client: &PKey<Private>) -> Result<Vec<u8>, ErrorStack> {
    let mut deriver = Deriver::new(own)?;
    deriver.set_peer(client)?;
    deriver.derive_to_vec()
}

fn x25519() -> Case {
    let (client, _) = x25519_pair();
    Case::new(Purpose::Exchange, "X25519", move || {
        let _ = black_box(x25519_answer(&client));
    })
}

/// Encapsulates to the client's ML-KEM key, in addition to X25519.
fn x25519_mlkem768() -> Case {
    let (client, _) = x25519_pair();
    let encoded = mlkem768_public_key();
    Case::new(Purpose::Exchange, "X25519MLKEM768", move || {
        let _ = black_box((mlkem768_encapsulate(&encoded), x25519_answer(&client)));
    })
}

/// Length in bytes of an ML-KEM-768 public key (FIPS 203 table 3), of a ciphertext, and of a shared secret.
const MLKEM768_PUBLIC_KEY: usize = 1184;
const MLKEM768_CIPHERTEXT: usize = 1088;
const MLKEM768_SHARED_SECRET: usize = 32;

/// Returns the encapsulation key as the ClientHello carries it.
fn mlkem768_public_key() -> Box<[u8]> {
    let mut encoded = vec![0; MLKEM768_PUBLIC_KEY].into_boxed_slice();
    let mut private = MaybeUninit::uninit();
    // SAFETY: the outputs have the sizes that the function writes; the seed is optional.
    unsafe { ffi::MLKEM768_generate_key(encoded.as_mut_ptr(), ptr::null_mut(), private.as_mut_ptr()) };
    encoded
}

/// Parses the key and encapsulates a secret, as the server does for each ClientHello.
fn mlkem768_encapsulate(encoded: &[u8]) -> ([u8; MLKEM768_CIPHERTEXT], [u8; MLKEM768_SHARED_SECRET]) {
    let (mut ciphertext, mut shared) = ([0; MLKEM768_CIPHERTEXT], [0; MLKEM768_SHARED_SECRET]);
    let mut public = MaybeUninit::zeroed();
    let mut input = ffi::CBS { data: encoded.as_ptr(), len: encoded.len() };
    // SAFETY: `input` covers readable bytes; the outputs have the sizes that the functions write, and the key was made
    // by BoringSSL, so that it parses.
    unsafe {
        assert_eq!(ffi::MLKEM768_parse_public_key(public.as_mut_ptr(), &mut input), 1, "BoringSSL's own key");
        ffi::MLKEM768_encap(ciphertext.as_mut_ptr(), shared.as_mut_ptr(), public.as_ptr());
    }
    (ciphertext, shared)
}

/// Generates a key pair and computes the shared secret (RFC 7748 section 6.1).
fn x25519_answer(client: &[u8; 32]) -> ([u8; 32], [u8; 32]) {
    let (public, private) = x25519_pair();
    let mut shared = [0; 32];
    // SAFETY: three buffers of 32 bytes each.
    unsafe { ffi::X25519(shared.as_mut_ptr(), private.as_ptr(), client.as_ptr()) };
    (public, shared)
}

fn x25519_pair() -> ([u8; 32], [u8; 32]) {
    let (mut public, mut private) = ([0; 32], [0; 32]);
    // SAFETY: two buffers of 32 bytes each.
    unsafe { ffi::X25519_keypair(public.as_mut_ptr(), private.as_mut_ptr()) };
    (public, private)
}
