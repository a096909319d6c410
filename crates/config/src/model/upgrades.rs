//! Protocols that a request may switch to (RFC 9110 section 7.8, RFC 8441).

/// Protocols that requests may switch to, as a listener or a route decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Upgrades {
    /// Protocols that are forwarded, such as `spdy/3.1`, in lower case.
    pub on: Vec<String>,
    /// Protocols that are not forwarded, in lower case.
    pub off: Vec<String>,
    /// Whether all protocols that are not listed are off. Otherwise, the enclosing setting applies to them.
    pub only: bool,
}

impl Upgrades {
    /// The protocol that is forwarded by default (RFC 6455).
    pub const WEBSOCKET: &str = "websocket";

    /// Returns the setting that forwards these protocols, in any case, and no others.
    pub fn only(protocols: impl IntoIterator<Item = String>) -> Self {
        let on = protocols.into_iter().map(|protocol| protocol.to_ascii_lowercase()).collect();
        Self { on, off: Vec::new(), only: true }
    }

    /// Returns whether neither a protocol nor all others are decided about.
    pub fn is_default(&self) -> bool {
        self.on.is_empty() && self.off.is_empty() && !self.only
    }

    /// Returns whether a protocol is forwarded; `None` if the enclosing setting decides.
    pub fn decide(&self, protocol: &str) -> Option<bool> {
        let has = |list: &[String]| list.iter().any(|one| one.eq_ignore_ascii_case(protocol));
        match () {
            () if has(&self.on) => Some(true),
            () if has(&self.off) || self.only => Some(false),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_protocols_is_complete() {
        let only = Upgrades::only(["SPDY/3.1".to_owned()]);
        assert_eq!(
            ["spdy/3.1", "Spdy/3.1", "websocket"].map(|name| only.decide(name)),
            [Some(true), Some(true), Some(false)]
        );
        assert!(Upgrades::default().is_default() && !only.is_default());
        assert_eq!(Upgrades::default().decide(Upgrades::WEBSOCKET), None);
    }
}
