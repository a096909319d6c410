//! The HTTP connection manager's settings for `x-request-id`.

use crate::{reader::Message, values::boolean};
use quadrille_config::model::{RequestIdOrigin, RequestIds};

/// Reads whether ids are generated (by default); only an edge gateway replaces ids from clients.
pub(crate) fn request_ids(message: &Message<'_>) -> Option<RequestIds> {
    let generates = message.read("generate_request_id", boolean).unwrap_or(true);
    let is_edge = message.flag("use_remote_address");
    let preserves = message.flag("preserve_external_request_id");
    let in_response = message.flag("always_set_request_id_in_response");
    let origin = match (generates, is_edge && !preserves) {
        (true, true) => RequestIdOrigin::Gateway,
        (true, false) => RequestIdOrigin::Client,
        (false, _) => RequestIdOrigin::ClientAlone,
    };
    (generates || in_response).then_some(RequestIds { origin, in_response })
}
