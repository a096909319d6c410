//! Cost of one field, by length and implementation: `cargo bench -p quadrille-field`. The cipher alone, then with
//! envelope, nonce and associated data.

use quadrille_field::{
    KeyRing,
    xaes::{Implementation, Xaes256Gcm},
};
use std::{hint::black_box, time::Instant};

fn main() {
    for implementation in [Implementation::detect(), Implementation::portable()] {
        println!("XAES-256-GCM by {implementation}");
        let key = Xaes256Gcm::with(&[7; 32], implementation);
        for length in [16, 64, 256, 1024, 2048, 16_384] {
            let mut text = vec![1; length];
            let seal = nanoseconds(length, || {
                black_box(key.seal(black_box(&[3; 24]), &[5; 18], &mut text));
            });
            println!("  {length:6} bytes {seal:8.0} ns");
        }
    }
    println!("field, by {}", Implementation::best());
    let field = KeyRing::generate().expect("keys").field("users", "email").expect("a field");
    for length in [16, 64, 256, 1024, 2048, 16_384] {
        let plain = vec![1; length];
        let mut envelope = field.encrypt(&plain, b"12345").expect("encrypts");
        let encrypt =
            nanoseconds(length, || field.encrypt_into(&plain, b"12345", &mut envelope).expect("encrypts"));
        let mut opened = plain;
        let decrypt =
            nanoseconds(length, || field.decrypt_into(&envelope, b"12345", &mut opened).expect("decrypts"));
        println!("  {length:6} bytes: encrypt {encrypt:8.0} ns, decrypt {decrypt:8.0} ns");
    }
}

/// Minimum of several rounds, which excludes disturbances.
fn nanoseconds(length: usize, mut work: impl FnMut()) -> f64 {
    let repetitions = 4_000_000 / (length as u32 + 200);
    let rounds = (0..15).map(|_| {
        let started = Instant::now();
        (0..repetitions).for_each(|_| work());
        started.elapsed().as_nanos() as f64 / f64::from(repetitions)
    });
    rounds.fold(f64::INFINITY, f64::min)
}
