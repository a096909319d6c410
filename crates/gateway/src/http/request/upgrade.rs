//! Protocols that a request may switch to, as its route and its listener allow (RFC 9110 section 7.8, RFC 8441).

use super::{Request, hop_by_hop};
use http::Version;
use quadrille_config::model::{Action, Forward, Route, Upgrades};

/// Selects the protocol that the request switches to on its route.
///
/// # Errors
/// Returns the status of the response if the request depends on a protocol that is not allowed.
pub(crate) fn apply(request: &mut Request, route: &Route, listener: &Upgrades) -> Result<(), u16> {
    const NOT_IMPLEMENTED: u16 = 501;
    let Action::Forward(to) = &route.action else {
        // A response to an extended CONNECT would open the tunnel.
        return if request.upgrade.is_some() { Err(NOT_IMPLEMENTED) } else { Ok(()) };
    };
    let allows = |protocol: &str| is_allowed(to, listener, protocol);
    if request.websocket {
        return if allows(Upgrades::WEBSOCKET) { Ok(()) } else { Err(403) };
    }
    if request.is_multiplexed() {
        let refused = request.upgrade.as_ref().is_some_and(|protocol| !protocol.to_str().is_ok_and(allows));
        return if refused { Err(NOT_IMPLEMENTED) } else { Ok(()) };
    }
    if request.version == Version::HTTP_11 && !(to.upgrades.is_default() && listener.is_default()) {
        // A WebSocket begins with GET, and was recognized already.
        let allows = |protocol: &str| !protocol.eq_ignore_ascii_case(Upgrades::WEBSOCKET) && allows(protocol);
        request.upgrade = hop_by_hop::offered_upgrade(&request.headers, allows);
    }
    // Early data may be replayed (RFC 8470 section 5.2).
    if request.early && request.upgrade.is_some() { Err(425) } else { Ok(()) }
}

fn is_allowed(to: &Forward, listener: &Upgrades, protocol: &str) -> bool {
    let decided = to.upgrades.decide(protocol).or_else(|| listener.decide(protocol));
    decided.unwrap_or(protocol.eq_ignore_ascii_case(Upgrades::WEBSOCKET))
}
