//! Address families of a name: those that are queried, and those that an upstream uses.

use quadrille_config::model::LookupFamily;
use std::{net::IpAddr, ops::BitOr};

/// Families that a lookup queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Families {
    pub(crate) v4: bool,
    pub(crate) v6: bool,
}

impl Families {
    pub(crate) const V4: Self = Self { v4: true, v6: false };

    /// Returns the families that upstreams with this setting need.
    pub(super) fn of(setting: LookupFamily) -> Self {
        match setting {
            LookupFamily::V4Only => Self::V4,
            LookupFamily::V6Only => Self { v4: false, v6: true },
            LookupFamily::All | LookupFamily::Auto | LookupFamily::V4Preferred => Self { v4: true, v6: true },
        }
    }

    /// Returns whether addresses of this one's family are among them.
    pub(super) fn include(self, address: &IpAddr) -> bool {
        if address.is_ipv4() { self.v4 } else { self.v6 }
    }
}

impl BitOr for Families {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self { v4: self.v4 || other.v4, v6: self.v6 || other.v6 }
    }
}

/// Returns the addresses that an upstream with this setting uses.
pub(super) fn used(setting: LookupFamily, addresses: &[IpAddr]) -> Vec<IpAddr> {
    let (v4, v6): (Vec<_>, Vec<_>) = addresses.iter().partition(|address| address.is_ipv4());
    match setting {
        LookupFamily::All => addresses.to_vec(),
        LookupFamily::V4Only => v4,
        LookupFamily::V6Only => v6,
        LookupFamily::V4Preferred if v4.is_empty() => v6,
        LookupFamily::V4Preferred => v4,
        LookupFamily::Auto if v6.is_empty() => v4,
        LookupFamily::Auto => v6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_uses_the_families_of_its_setting() {
        let (v4, v6) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]));
        let (both, only_v4, only_v6) = (&[v4, v6][..], &[v4][..], &[v6][..]);
        for (setting, of_both, of_v4, of_v6) in [
            (LookupFamily::All, both, only_v4, only_v6),
            (LookupFamily::Auto, only_v6, only_v4, only_v6),
            (LookupFamily::V4Preferred, only_v4, only_v4, only_v6),
            (LookupFamily::V4Only, only_v4, only_v4, &[]),
            (LookupFamily::V6Only, only_v6, &[], only_v6),
        ] {
            let seen = [both, only_v4, only_v6].map(|addresses| used(setting, addresses));
            assert_eq!(seen, [of_both, of_v4, of_v6], "{setting:?}");
        }
    }
}
