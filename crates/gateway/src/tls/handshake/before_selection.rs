//! Asynchronous work before certificate selection, at the point where BoringSSL has read the ClientHello and can
//! wait.

use super::{
    early_data,
    key_exchange::{self, KeyExchange},
    selection::Selection,
};
use crate::tls::{contained, handshake_state::ResumptionState, without_panic};
use boring::ssl::{
    AsyncSelectCertError, BoxSelectCertFinish, BoxSelectCertFuture, ClientHello, SelectCertError,
    SslContextBuilder,
};
use quadrille_resumption::Claim;

/// Makes a context's connections continue with the certificate that `select` returns, after [`wait`].
pub(crate) fn install(
    builder: &mut SslContextBuilder,
    early_data: bool,
    exchange: Option<KeyExchange>,
    select: impl Fn(&mut ClientHello<'_>) -> Result<Selection, SelectCertError> + Send + Sync + 'static,
) {
    builder.set_async_select_certificate_callback(move |hello| {
        let selection =
            contained(Err(AsyncSelectCertError), || select(hello).map_err(|_| AsyncSelectCertError))?;
        Ok(wait(hello, selection, early_data, exchange.as_ref()))
    });
}

/// Continues with this certificate after the store was queried about early data, if early data is allowed, and the
/// engine has computed its key share.
pub(crate) fn wait(
    hello: &ClientHello<'_>,
    selection: Selection,
    early_data: bool,
    exchange: Option<&KeyExchange>,
) -> BoxSelectCertFuture {
    let exchange = exchange.and_then(|exchange| contained(None, || exchange.begin(hello)));
    let claim = match early_data {
        true => contained(Claim::Now(false), || ResumptionState::claim(hello)),
        false => Claim::Now(true),
    };
    Box::pin(async move {
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
                selection.apply(&mut hello).map_err(|_| AsyncSelectCertError)?;
                // This comes last: with another context the connection takes over its flag.
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
    })
}
