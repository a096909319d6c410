//! Numbers of an RSA key.

use boring::{bn::BigNumRef, pkey::Private, rsa::Rsa};
use quadrille_kernels::{Components, PrivateKey};
use zeroize::Zeroizing;

/// Returns the key in the form used by lanes; `None` for a key without its primes, or an inconsistent one.
pub(super) fn take_apart(rsa: &Rsa<Private>) -> Option<PrivateKey> {
    let Parts { n, e, p, q, dp, dq, qinv } = &parts(rsa)?;
    PrivateKey::new(&Components { n, e, p, q, dp, dq, qinv }).ok()
}

/// Numbers of an RSA key (RFC 8017, section 3.2, second form), big-endian.
pub(crate) struct Parts {
    pub(crate) n: Zeroizing<Vec<u8>>,
    pub(crate) e: Zeroizing<Vec<u8>>,
    pub(crate) p: Zeroizing<Vec<u8>>,
    pub(crate) q: Zeroizing<Vec<u8>>,
    pub(crate) dp: Zeroizing<Vec<u8>>,
    pub(crate) dq: Zeroizing<Vec<u8>>,
    pub(crate) qinv: Zeroizing<Vec<u8>>,
}

/// Returns `None` for a key without its primes.
pub(crate) fn parts(rsa: &Rsa<Private>) -> Option<Parts> {
    let bytes = |number: &BigNumRef| Zeroizing::new(number.to_vec());
    Some(Parts {
        n: bytes(rsa.n()),
        e: bytes(rsa.e()),
        p: bytes(rsa.p()?),
        q: bytes(rsa.q()?),
        dp: bytes(rsa.dmp1()?),
        dq: bytes(rsa.dmq1()?),
        qinv: bytes(rsa.iqmp()?),
    })
}
