//! Random keys.

use crate::Error;
use zeroize::Zeroizing;

/// Returns a key of `bytes` random bytes from the system.
pub fn random_key(bytes: usize) -> Result<Zeroizing<Vec<u8>>, Error> {
    let mut key = Zeroizing::new(vec![0; bytes]);
    getrandom::fill(&mut key).map_err(Error::Random)?;
    Ok(key)
}

/// Returns a random array, for a key or an id.
pub(crate) fn array<const N: usize>() -> Result<Zeroizing<[u8; N]>, Error> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(&mut *bytes).map_err(Error::Random)?;
    Ok(bytes)
}
