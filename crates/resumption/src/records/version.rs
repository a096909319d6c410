//! Versions of records, ordered by age.

use std::{fmt, str::FromStr};

/// The fencing token of the lease under which a record was written, and the number of earlier writes under this
/// lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u64);

/// Maximum number of writes under one lease.
const WRITES: u64 = 1 << 16;
/// The largest token: a time in milliseconds, some thousand years from now.
const LARGEST: u64 = 1 << 47;

impl Version {
    /// Returns the first version of a lease with this token; `None` if the token is out of range.
    pub(super) fn first(token: u64) -> Option<Self> {
        (token < LARGEST).then(|| Self(token * WRITES))
    }

    /// Returns the next version under the same lease; `None` if the maximum number of writes is reached.
    pub(super) fn next(self) -> Option<Self> {
        let next = self.0 + 1;
        (!next.is_multiple_of(WRITES)).then_some(Self(next))
    }

    pub(super) fn token(self) -> u64 {
        self.0 / WRITES
    }
}

/// Formats with a fixed number of digits, so that Redis can compare versions as text: its numbers are too small.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}", self.0)
    }
}

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let number = text.parse().map_err(|_| ())?;
        if number / WRITES < LARGEST { Ok(Self(number)) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_lease_is_newer_than_any_write_of_an_earlier_one() {
        let mut version = Version::first(7).unwrap();
        let mut writes = 0;
        while let Some(next) = version.next() {
            assert!(next > version && next.token() == 7);
            (version, writes) = (next, writes + 1);
        }
        assert_eq!(writes, WRITES - 1);
        assert!(version < Version::first(8).unwrap());
        assert_eq!(version.to_string().parse(), Ok(version));
        assert!(version.to_string() < Version::first(8).unwrap().to_string());
    }

    #[test]
    fn values_outside_the_range_are_rejected() {
        assert!(Version::first(LARGEST).is_none());
        for text in ["", "-1", "x", &u64::MAX.to_string(), "99999999999999999999999"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }
}
