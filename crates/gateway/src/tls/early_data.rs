//! Early data (0-RTT): what a client sends with a ticket's first use, before it has proved that it is there.
//!
//! Somebody who has copied a first flight can send it again. So it counts once: the store is asked, before BoringSSL
//! looks at the ticket, whether this is its first use, and everybody else completes the handshake first. What has come
//! early is marked as such until the handshake is complete ([`in_progress`]).

use super::{contained, handshake_state::ResumptionState, without_panic};
use boring::ssl::{
    AsyncSelectCertError, BoxSelectCertFinish, ClientHello, SelectCertError, SslContextBuilder, SslRef,
};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use quadrille_resumption::Claim;
use std::sync::Arc;

/// Lets a context's connections bring early data, and its tickets allow it.
pub(super) fn allow(builder: &mut SslContextBuilder) {
    // SAFETY: the context is live; this sets a flag on it.
    unsafe { ffi::SSL_CTX_set_early_data_enabled(builder.as_ptr(), 1) };
}

/// Chooses the certificate as `choose` does, after the store has been asked about early data.
pub(super) fn install(
    builder: &mut SslContextBuilder,
    choose: impl Fn(&mut ClientHello<'_>) -> Result<(), SelectCertError> + Send + Sync + 'static,
) {
    let choose = Arc::new(choose);
    builder.set_async_select_certificate_callback(move |hello| {
        let claim = contained(Claim::Now(false), || ResumptionState::claim(hello));
        let choose = Arc::clone(&choose);
        Ok(Box::pin(async move {
            let first = match claim {
                Claim::Now(first) => first,
                Claim::Pending(answer) => without_panic(false, answer).await,
            };
            let finish: BoxSelectCertFinish = Box::new(move |mut hello| {
                contained(Err(AsyncSelectCertError), || {
                    choose(&mut hello).map_err(|_| AsyncSelectCertError)?;
                    // Last: with another context the connection takes over its flag.
                    if !first {
                        refuse(hello.ssl_mut());
                    }
                    Ok(())
                })
            });
            Ok(finish)
        }))
    });
}

/// Whether early data was accepted, after the handshake; `None` if the client offered none.
pub(crate) fn accepted(ssl: &SslRef) -> Option<bool> {
    ResumptionState::attached(ssl)?.early.get().map(|()| in_progress(ssl))
}

/// Whether what is read now came early_data, and may be a copy.
pub(crate) fn in_progress(ssl: &SslRef) -> bool {
    // SAFETY: the connection is live.
    unsafe { ffi::SSL_in_early_data(ssl.as_ptr()) == 1 }
}

fn refuse(ssl: &mut SslRef) {
    // SAFETY: the connection is live; this sets a flag on it.
    unsafe { ffi::SSL_set_early_data_enabled(ssl.as_ptr(), 0) };
}
