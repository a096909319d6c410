//! The kinds of misbehaving clients.
//!
//! [`transport`], [`http1`], [`http2`] and [`http3`] have the kinds of each protocol. They are written as bytes and
//! frames: a library would not send what misbehaving clients send. [`client`] is what a kind runs on, and [`attack`]
//! runs all clients of one kind.

mod attack;
mod client;
mod http1;
mod http2;
mod http3;
mod kind;
mod transport;

pub use self::kind::Misbehaviour;
pub(super) use self::{attack::Attack, client::Counts};

/// Returns all kinds, in the order of the table.
pub fn all() -> impl Iterator<Item = Misbehaviour> {
    [transport::KINDS, http1::KINDS, http2::KINDS, http3::KINDS].into_iter().flatten().copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn kinds_have_names_of_their_own() {
        let names: BTreeSet<_> = all().map(|kind| kind.name).collect();
        assert_eq!(names.len(), all().count());
        for kind in all() {
            assert_eq!(kind.over_http3, kind.name.starts_with("HTTP/3, "), "{}", kind.name);
        }
    }
}
