//! Fault injection: deliberate delays and errors, to test how clients handle them.

use crate::fraction::is_one_of;
use quadrille_config::model::{Fault, Respond};

/// Delays the request if it is selected for a delay. Returns the abort status if it is selected for an abort.
pub(crate) async fn inject(fault: &Fault) -> Option<u16> {
    if let Some((delay, share)) = fault.delay
        && is_one_of(share)
    {
        tokio::time::sleep(delay).await;
    }
    fault.abort.filter(|(_, share)| is_one_of(*share)).map(|(status, _)| status)
}

/// The response to an aborted request, as sent by Envoy.
pub(crate) fn aborted(status: u16) -> Respond {
    Respond { status, content_type: "text/plain".to_owned(), body: "fault filter abort".into() }
}
