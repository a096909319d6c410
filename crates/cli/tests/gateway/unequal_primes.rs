//! RSA keys whose primes have different sizes: no lanes compute them, and each operation takes several times as long.

use crate::support::{
    Certificates, Gateway, Pair,
    configuration::{Configuration, document, listener},
    tls_client,
};
use boring::{
    bn::{BigNum, BigNumContext},
    rsa::Rsa,
    ssl::Ssl,
};
use std::{net::TcpStream, path::Path, thread};

/// Makes a key of 4096 bits.
fn unequal(certificates: &Certificates) -> Pair {
    let pair = Pair { chain: certificates.path("unequal.pem"), key: certificates.path("unequal.key") };
    write_key(&pair.key);
    certificates.sign(&pair.key, &pair.chain, &["localhost"], 30);
    pair
}

fn write_key(path: &Path) {
    let mut context = BigNumContext::new().expect("memory");
    let number = || BigNum::new().expect("memory");
    let (one, e) = (BigNum::from_u32(1).expect("memory"), BigNum::from_u32(65_537).expect("memory"));
    let (mut p, mut q) = (number(), number());
    p.generate_prime(2448, false, None, None).expect("a prime");
    q.generate_prime(1648, false, None, None).expect("a prime");
    let (mut n, mut p1, mut q1, mut phi) = (number(), number(), number(), number());
    n.checked_mul(&p, &q, &mut context).expect("a product");
    p1.checked_sub(&p, &one).expect("a difference");
    q1.checked_sub(&q, &one).expect("a difference");
    phi.checked_mul(&p1, &q1, &mut context).expect("a product");
    let (mut d, mut dp, mut dq, mut qinv) = (number(), number(), number(), number());
    d.mod_inverse(&e, &phi, &mut context).expect("an inverse");
    dp.nnmod(&d, &p1, &mut context).expect("a remainder");
    dq.nnmod(&d, &q1, &mut context).expect("a remainder");
    qinv.mod_inverse(&q, &p, &mut context).expect("an inverse");
    let key = Rsa::from_private_components(n, e, d, p, q, dp, dq, qinv).expect("a key");
    std::fs::write(path, key.private_key_to_pem().expect("PEM")).expect("a file");
}

#[test]
fn dozens_of_clients_wait_for_each_other_and_none_is_refused() {
    const CLIENTS: usize = 32;
    let certificates = Certificates::new();
    let pair = unequal(&certificates);
    // Known clients go before unknown ones, which wait long for them on a busy machine.
    let patient = "respond: ok, timeouts: {handshake: 600s, handshake_deadline: 600s}";
    let text = document(&[listener(&pair, patient)], "");
    let configuration = Configuration::new(&format!("engine: {{threads: 1}}\n{text}"));
    let mut gateway = Gateway::with_config(&configuration.path(), 1);
    gateway.wait_for_log("have different sizes");
    let (address, context) = (gateway.address(0), tls_client(|_| ()));
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                for _ in 0..8 {
                    let tcp = TcpStream::connect(address).expect("a connection");
                    let served = Ssl::new(&context).expect("a session").connect(tcp);
                    assert!(served.is_ok(), "{served:?}");
                }
            });
        }
    });
    assert_eq!(gateway.metric("quadrille_handshakes_refused_total", &[]), 0.0);
}
