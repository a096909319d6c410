//! Who may ask for what.

use super::{HttpConnection, request::Request};
use crate::access;
use quadrille_config::model::{AccessCondition, AccessRules};

/// Whether all rules let a request in.
///
/// # Errors
/// Says which policy does not, for the log.
pub(super) fn admits_request<'a>(
    rules: &'a [AccessRules],
    http: &HttpConnection,
    request: &Request,
) -> Result<(), &'a str> {
    if rules.is_empty() {
        return Ok(());
    }
    let view = request.view(http.connection.tls);
    let holds = |condition: &AccessCondition| match condition {
        AccessCondition::Header(header) => view.matches_header(header),
        AccessCondition::Path(path) => path.matches(view.path),
        _ => false,
    };
    access::admits(rules, &http.connection, request.sender.client.ip(), &holds)
}
