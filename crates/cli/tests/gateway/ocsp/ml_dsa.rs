//! OCSP responses with signatures of ML-DSA (RFC 9881): responses of OpenSSL, signed again by BoringSSL.

use super::{
    FETCHES, gateway,
    responder::{Does, Responder},
    serves_good, serves_nothing,
};
use crate::support::ml_dsa::der;
use boring::{
    pkey::{PKey, Private},
    sign::Signer,
    x509::X509,
};
use quadrille_engine::MlDsa;
use std::fs;

/// Number of ML-DSA-44 in the arc of NIST's signature algorithms; 65 and 87 follow.
const ML_DSA_44: u8 = 17;

#[test]
fn signatures_of_each_parameter_set_are_verified() {
    let responder = Responder::start();
    let ca = &responder.certificates;
    let pair = responder.issue("localhost", "");
    let about = fs::read(responder.answer_about(&pair)).expect("a response");
    let file = ca.path("signed-again.resp");
    for (set, algorithm) in MlDsa::ALL.into_iter().zip(ML_DSA_44..) {
        let (certificate, key) = ca.ml_dsa_responder(set);
        let signed = signed_again(&about, &certificate, &key, algorithm);
        fs::write(&file, &signed).expect("writing");
        responder.does(Does::Repeats(file.clone()));
        let good = gateway(&pair);
        good.wait_for_metric(FETCHES, &["good"], |count| count == 1.0);
        serves_good(&good, ca);

        let (_, other) = ca.ml_dsa_responder(set);
        for bad in [
            signed_again(&about, &certificate, &other, algorithm),
            // The algorithm is of another parameter set.
            signed_again(&about, &certificate, &key, ML_DSA_44 + (algorithm - ML_DSA_44 + 1) % 3),
        ] {
            fs::write(&file, bad).expect("writing");
            let mut gateway = gateway(&pair);
            gateway.wait_for_metric(FETCHES, &["unusable"], |count| count >= 1.0);
            serves_nothing(&gateway, ca);
            gateway.wait_for_log("it is signed neither by the issuer nor by an authorized responder");
        }
    }
}

/// Replaces the signature of a response, its algorithm, and the certificates.
fn signed_again(response: &[u8], certificate: &X509, key: &PKey<Private>, algorithm: u8) -> Vec<u8> {
    // OCSPResponse { responseStatus, [0] { ResponseBytes { responseType, response } } }
    let [status, bytes] = elements(contents(response));
    let [kind, octets] = elements(contents(contents(bytes)));
    // BasicOCSPResponse { tbsResponseData, signatureAlgorithm, signature, ... }
    let (data, _) = first(contents(contents(octets)));
    let algorithm = der(0x30, &[6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 3, algorithm]);
    let mut signer = Signer::new_without_digest(key).expect("a signer");
    let signature = signer.sign_oneshot_to_vec(data).expect("a signature");
    let signature = der(3, &[&[0][..], &signature].concat());
    let certificates = der(0xa0, &der(0x30, &certificate.to_der().expect("a certificate")));
    let basic = der(0x30, &[data, &algorithm, &signature, &certificates].concat());
    let bytes = der(0xa0, &der(0x30, &[kind, &der(4, &basic)].concat()));
    der(0x30, &[status, &bytes].concat())
}

/// Returns the first element of an encoding in DER, and the rest.
fn first(encoding: &[u8]) -> (&[u8], &[u8]) {
    encoding.split_at(header(encoding) + length(encoding))
}

fn elements(encoding: &[u8]) -> [&[u8]; 2] {
    let (one, rest) = first(encoding);
    [one, first(rest).0]
}

fn contents(element: &[u8]) -> &[u8] {
    &element[header(element)..][..length(element)]
}

/// Length of the first element's tag and length, which has up to two bytes after the first.
fn header(encoding: &[u8]) -> usize {
    2 + usize::from(encoding[1].saturating_sub(0x80))
}

fn length(encoding: &[u8]) -> usize {
    match encoding[1] {
        0x81 => encoding[2].into(),
        0x82 => u16::from_be_bytes([encoding[2], encoding[3]]).into(),
        short => short.into(),
    }
}
