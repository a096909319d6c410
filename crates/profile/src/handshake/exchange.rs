//! The server's key exchange, computed by the engine as in the gateway.

use super::error::Error;
use boring::ssl::{ClientHello, ExtensionType, SelectCertError, SslContextBuilder};
use quadrille_engine::{Engine, Policy, Scalar, Settings, Unobserved};
use quadrille_handshake_timing::key_exchange;
use quadrille_key_share::{hand_over, predict};
use std::{
    future::Future,
    num::NonZeroUsize,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Configures the engine to compute the response to each client's X25519 share. There is one client at a time, so no
/// operation runs in lanes.
pub(super) fn install(context: &mut SslContextBuilder) -> Result<(), Error> {
    let (policy, one) = (Policy::default(), NonZeroUsize::MIN);
    let settings = Settings { policy, threads: one, yields: 0, capacity: one, key_exchange: true };
    let engine = Engine::start(settings, Scalar, Unobserved)?;
    context.set_select_certificate_callback(move |mut hello| answer(&engine, &mut hello));
    Ok(())
}

fn answer(engine: &Engine, hello: &mut ClientHello<'_>) -> Result<(), SelectCertError> {
    const X25519: u16 = 0x001d;
    let Some(share) = predict(|code| hello.get_extension(ExtensionType::from(code)), &[X25519], |_| true)
    else {
        return Ok(());
    };
    // Without an event loop the result is available at once.
    let answer = key_exchange(|| pin!(engine.exchange(share)).poll(&mut Context::from_waker(Waker::noop())));
    match answer {
        Poll::Ready(Ok(answer)) => hand_over(hello.ssl_mut(), &answer).map_err(|_| SelectCertError::ERROR),
        _ => Err(SelectCertError::ERROR),
    }
}
