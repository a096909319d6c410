//! A client's connection over which HTTP/1.1 is spoken.

use super::{
    HttpConnection,
    client_body::ClientBody,
    ending::Ending,
    header_limit::MOST_HEADER,
    informational::Informational,
    outcome::Outcome,
    response_body::ResponseBody,
    service,
    shared_stream::SharedStream,
    tunnel::{Tunnel, WithPrefix},
};
use crate::{connection::Alarm, tls::ClientStream};
use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::{Duration, Instant},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// After its chain is removed, an idle connection may still send a request for this long: one that was already on its way
/// when the client had not yet been told is answered.
const LAST_REQUESTS: Duration = Duration::from_secs(1);

/// How much is read ahead of a request's body.
const READ_AHEAD: usize = MOST_HEADER + 16 * 1024;

/// A client whose request was refused while it was still sending is listened to for this long, and for so many bytes:
/// otherwise the kernel would reset the connection, and the client might never see the answer.
const LINGER: Duration = Duration::from_secs(2);
const MOST_LINGERED: u64 = 1 << 20;

/// A tunnel to run once the connection has answered.
type TunnelSlot = Arc<Mutex<Option<Box<Tunnel>>>>;

/// Serves requests until the connection ends.
pub(super) async fn serve(stream: ClientStream, http: Arc<HttpConnection>) {
    let shared = SharedStream::new(stream);
    let informational = Informational::default();
    let tunnel = TunnelSlot::default();
    let answer = service(&http, &informational, &tunnel);
    let mut connection = http1::Builder::new()
        .max_header_size(MOST_HEADER)
        .max_buf_size(READ_AHEAD)
        .serve_connection(TokioIo::new(shared.clone()), service_fn(answer));
    // One that comes when its chain is gone already has its one request answered.
    let late = http.chain.is_removed();
    let (mut ending, mut last_requests) = (Ending::new(&http), None);
    let mut alarm = Alarm::default();
    let outcome = poll_fn(|context| {
        let mut asked_to_end = false;
        loop {
            if let Poll::Ready(outcome) = connection.poll_without_shutdown(context) {
                return Poll::Ready(outcome.map_err(drop));
            }
            if late || asked_to_end || ending.poll(context).is_pending() {
                break;
            }
            let due = *last_requests.get_or_insert_with(|| Instant::now() + LAST_REQUESTS);
            if alarm.poll_due(context, due).is_pending() {
                break;
            }
            asked_to_end = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        for response in informational.take() {
            shared.write_informational(context, &response);
        }
        match shared.poll_send(context) {
            Poll::Ready(Err(_)) => Poll::Ready(Err(())),
            _ => Poll::Pending,
        }
    })
    .await;
    let parts = connection.into_parts();
    drop(shared);
    let Some(mut stream) = parts.io.into_inner().into_inner() else { return };
    let begun = tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(tunnel) = begun {
        // The answer that opens it.
        if stream.flush().await.is_err() {
            return;
        }
        return tunnel.run(WithPrefix::new(parts.read_buf, stream)).await;
    }
    let closing = async {
        if let Err(error) = stream.shutdown().await {
            tracing::debug!(%error, "close_notify was not sent");
        } else if outcome.is_err() {
            let _ = tokio::io::copy(&mut stream.take(MOST_LINGERED), &mut tokio::io::sink()).await;
        }
    };
    let _ = tokio::time::timeout(LINGER, closing).await;
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

fn service(
    http: &Arc<HttpConnection>,
    informational: &Informational,
    tunnel: &TunnelSlot,
) -> impl Fn(Request<Incoming>) -> Answering {
    let (http, informational, tunnel) = (Arc::clone(http), informational.clone(), Arc::clone(tunnel));
    move |request| {
        let (http, informational, tunnel) = (Arc::clone(&http), informational.clone(), Arc::clone(&tunnel));
        Box::pin(async move {
            let request = request.map(|body| ClientBody::http1(body, &http.connection));
            Ok(match service::serve(&http, request, &informational).await {
                Outcome::Response(response) => response,
                Outcome::Tunnel(response, begun) => {
                    *tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
                    response.map(|()| ResponseBody::none())
                }
            })
        })
    }
}
