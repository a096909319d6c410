//! What a handshake waits for before its certificate is chosen: BoringSSL has read the ClientHello then, and can wait.

use super::{
    contained, early_data,
    handshake_state::ResumptionState,
    key_exchange::{self, KeyExchange},
    without_panic,
};
use boring::ssl::{
    AsyncSelectCertError, BoxSelectCertFinish, ClientHello, SelectCertError, SslContextBuilder,
};
use quadrille_resumption::Claim;
use std::sync::Arc;

/// Chooses the certificate as `choose` does, after the store has been asked about early data, if that is allowed, and the
/// engine has answered the client's key share.
pub(super) fn install(
    builder: &mut SslContextBuilder,
    early_data: bool,
    exchange: Option<KeyExchange>,
    choose: impl Fn(&mut ClientHello<'_>) -> Result<(), SelectCertError> + Send + Sync + 'static,
) {
    let choose = Arc::new(choose);
    builder.set_async_select_certificate_callback(move |hello| {
        let exchange = exchange.as_ref().and_then(|exchange| contained(None, || exchange.begin(hello)));
        let claim = match early_data {
            true => contained(Claim::Now(false), || ResumptionState::claim(hello)),
            false => Claim::Now(true),
        };
        let choose = Arc::clone(&choose);
        Ok(Box::pin(async move {
            let first = match claim {
                Claim::Now(first) => first,
                Claim::Pending(answer) => without_panic(false, answer).await,
            };
            let answer = match exchange {
                Some(exchange) => without_panic(None, async { exchange.await.ok() }).await,
                None => None,
            };
            let finish: BoxSelectCertFinish = Box::new(move |mut hello| {
                contained(Err(AsyncSelectCertError), || {
                    choose(&mut hello).map_err(|_| AsyncSelectCertError)?;
                    // Last: with another context the connection takes over its flag.
                    if !first {
                        early_data::refuse(hello.ssl_mut());
                    }
                    if let Some(answer) = &answer {
                        key_exchange::hand_over(hello.ssl_mut(), answer);
                    }
                    Ok(())
                })
            });
            Ok(finish)
        }))
    });
}
