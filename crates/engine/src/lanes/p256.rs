//! ECDSA on P-256 in lanes.

use crate::{Job, Key, Operation, key::Material};
use quadrille_kernels::{Lanes, P256_BYTES, P256Key, P256Signature};
use zeroize::Zeroizing;

/// Signs all jobs at once. Jobs that the kernels did not confirm stay unfinished: the engine gives them to the scalar
/// backend.
pub(super) fn sign(lanes: &Lanes, jobs: &mut [Job<'_>]) {
    let mut signatures = vec![[0; 2 * P256_BYTES]; jobs.len()];
    let (mut batch, mut signed) = (Vec::with_capacity(jobs.len()), Vec::with_capacity(jobs.len()));
    for (job, signature) in jobs.iter_mut().zip(&mut signatures) {
        if let (Some(key), Operation::Sign { digest, .. }) = (prepared(job.key()), job.operation()) {
            batch.push(P256Signature::new(key, digest, signature));
            signed.push(job);
        }
    }
    lanes.sign_p256(&mut batch);
    let marks: Vec<bool> = batch.iter().map(P256Signature::is_signed).collect();
    drop(batch);
    for ((job, signature), _) in signed.into_iter().zip(&signatures).zip(marks).filter(|(_, signed)| *signed)
    {
        job.finish(Ok(Zeroizing::new(der(signature))));
    }
}

/// Returns the key in the form used by lanes, read once.
pub(super) fn prepared(key: &Key) -> Option<&P256Key> {
    let read = || match key.material() {
        Material::Ec(ec) => {
            let bytes = Zeroizing::new(ec.private_key().to_vec());
            let mut padded = Zeroizing::new([0; P256_BYTES]);
            padded.get_mut(P256_BYTES.checked_sub(bytes.len())?..)?.copy_from_slice(&bytes);
            P256Key::new(&padded)
        }
        _ => None,
    };
    key.prepared::<Option<P256Key>>(read).as_ref()
}

/// `ECDSA-Sig-Value` (RFC 3279, section 2.2.3): a sequence of two integers.
fn der(signature: &[u8; 2 * P256_BYTES]) -> Vec<u8> {
    const INTEGER: u8 = 2;
    const SEQUENCE: u8 = 0x30;
    let mut der = vec![SEQUENCE, 0];
    for number in signature.chunks(P256_BYTES) {
        let zeros = number.iter().take_while(|byte| **byte == 0).count().min(P256_BYTES - 1);
        let significant = &number[zeros..];
        // A number whose highest bit is set would be negative.
        let sign = usize::from(significant[0] >> 7);
        der.extend([INTEGER, (significant.len() + sign) as u8]);
        der.extend(std::iter::repeat_n(0, sign));
        der.extend(significant);
    }
    der[1] = (der.len() - 2) as u8;
    der
}

#[cfg(test)]
mod tests {
    use super::der;
    use boring::{bn::BigNum, ecdsa::EcdsaSig};

    #[test]
    fn integers_are_as_short_as_they_can_be() {
        let numbers = [[0; 32], [0xff; 32], [0x7f; 32]];
        let short = |bytes: &[u8]| {
            let mut number = [0; 32];
            number[32 - bytes.len()..].copy_from_slice(bytes);
            number
        };
        let numbers = numbers.into_iter().chain([&[1][..], &[0x80], &[1, 0], &[0x80, 0]].map(short));
        let numbers: Vec<[u8; 32]> = numbers.collect();
        for r in &numbers {
            for s in &numbers {
                let number = |bytes| BigNum::from_slice(bytes).unwrap();
                let expected = EcdsaSig::from_private_components(number(r), number(s)).unwrap();
                let mut both = [0; 64];
                both[..32].copy_from_slice(r);
                both[32..].copy_from_slice(s);
                assert_eq!(der(&both), expected.to_der().unwrap());
            }
        }
    }
}
