//! What is done to some requests on purpose, to see how callers bear it.

use crate::share::is_one_of;
use quadrille_config::model::{Fault, Respond};

/// Waits, if this request is one of those that wait; the status that it is answered with, if it is one of these.
pub(super) async fn inject(fault: &Fault) -> Option<u16> {
    if let Some((delay, share)) = fault.delay
        && is_one_of(share)
    {
        tokio::time::sleep(delay).await;
    }
    fault.abort.filter(|(_, share)| is_one_of(*share)).map(|(status, _)| status)
}

/// What is answered with this status, as by Envoy.
pub(super) fn aborted(status: u16) -> Respond {
    Respond { status, content_type: "text/plain".to_owned(), body: "fault filter abort".into() }
}
