//! HTTP/1.1 connections of clients.

use super::{drain_watch::Ending, shared_stream::SharedStream};
use crate::{
    connection::Alarm,
    http::{
        HttpConnection,
        body::client_body::ClientBody,
        response::{body::ResponseBody, informational::Informational, outcome::Outcome, tunnel::Tunnel},
        service,
    },
    memory::{Held, Holder, Purpose},
    tls::ClientStream,
};
use bytes::Bytes;
use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use quadrille_config::model::RequestLimits;
use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Time that an idle connection stays open after its chain is removed: a request that the client sent before it could
/// know is still served.
const LAST_REQUESTS: Duration = Duration::from_secs(1);

/// Number of bytes that are read ahead beyond a header.
const READ_AHEAD: usize = 16 * 1024;

/// Limits on reading from a client after its request was rejected: time and bytes. Without reading on, the kernel
/// would reset the connection and the client might never see the response.
const LINGER: Duration = Duration::from_secs(2);
const MOST_LINGERED: u64 = 1 << 20;

/// A tunnel to run once the connection has sent its response.
type TunnelSlot = Arc<Mutex<Option<Box<Tunnel>>>>;

/// Approximate size of a response's data that is buffered while the client reads nothing.
const UNSENT: usize = 64 * 1024;

/// Idle time after which a connection releases the memory that hyper holds for it.
const DORMANT_AFTER: Duration = Duration::from_millis(100);

/// Serves requests until the connection ends.
pub(crate) async fn serve(stream: ClientStream, http: Arc<HttpConnection>) {
    let holder = Arc::<Holder>::default();
    let mut unsent = Held::nothing(Purpose::Unsent);
    unsent.belongs_to(&holder);
    let mut conversation = Conversation {
        shared: SharedStream::new(stream),
        informational: Informational::default(),
        tunnel: TunnelSlot::default(),
        ending: Ending::new(&http),
        late: http.chain.is_removed(),
        last_requests: None,
        has_ended: false,
        alarm: Alarm::default(),
        http: &http,
        holder,
        unsent,
    };
    // The read and write buffers belong to the inner future, which does not exist while the connection is dormant.
    let (read, outcome) = loop {
        if !conversation.wait().await {
            break (Bytes::new(), Ok(()));
        }
        match Box::pin(conversation.speak()).await {
            Pause::Over(read, outcome) => break (read, outcome),
            Pause::Dormant(read) => conversation.shared.unread(read),
        }
    };
    let Conversation { shared, tunnel, .. } = conversation;
    let Some(stream) = shared.into_inner() else { return };
    let begun = tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
    // The client may still be sending.
    let interrupted = outcome.is_err() || http.connection.left_unread.load(Ordering::Relaxed);
    match begun {
        Some(tunnel) => Box::pin(pass(*tunnel, stream, read)).await,
        None => Box::pin(close(stream, interrupted)).await,
    }
}

/// Reason why a connection is no longer driven.
enum Pause {
    /// The connection is over; with data that was read and not used.
    Over(Bytes, Result<(), ()>),
    /// No data was received for a while.
    Dormant(Bytes),
}

/// One connection. Its hyper part is dropped while dormant and created again.
struct Conversation<'a> {
    shared: SharedStream,
    informational: Informational,
    tunnel: TunnelSlot,
    http: &'a Arc<HttpConnection>,
    /// The connection's exchanges, which follow each other.
    holder: Arc<Holder>,
    /// Output that the client has no room for.
    unsent: Held,
    ending: Ending<'a>,
    /// The chain was removed before the connection was accepted; its one request is served.
    late: bool,
    last_requests: Option<Instant>,
    /// Whether the client has closed its side of the connection while a request was in progress.
    has_ended: bool,
    alarm: Alarm,
}

impl Conversation<'_> {
    /// Serves requests until the connection is over or dormant.
    async fn speak(&mut self) -> Pause {
        let answer = service(self.http, &self.informational, &self.tunnel, &self.holder);
        let (bytes, fields) = self.http.header_limits();
        let mut builder = http1::Builder::new();
        // A client may close its side after the request (RFC 9112 section 9.6); `poll_gone` watches it.
        builder.half_close(true).max_header_size(bytes).max_buf_size(bytes + READ_AHEAD);
        // hyper's default is the same and preallocates the fields.
        if fields != RequestLimits::FIELDS {
            builder.max_headers(fields.get());
        }
        let mut connection = builder.serve_connection(TokioIo::new(self.shared.clone()), service_fn(answer));
        let (mut dormancy, mut registered) = (Alarm::default(), None);
        let mut asked_to_end = false;
        let outcome = poll_fn(|context| {
            if self.holder.poll_ended(&mut registered, context).is_ready() {
                return Poll::Ready(Some(Err(())));
            }
            loop {
                if let Poll::Ready(outcome) = connection.poll_without_shutdown(context) {
                    return Poll::Ready(Some(outcome.map_err(drop)));
                }
                if asked_to_end || self.poll_end(context).is_pending() {
                    break;
                }
                asked_to_end = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
            if self.poll_gone(context).is_ready() {
                return Poll::Ready(Some(Err(())));
            }
            for response in self.informational.take() {
                self.shared.write_informational(context, &response);
            }
            let sent = self.shared.poll_send(context);
            self.unsent.set(if sent.is_pending() { UNSENT } else { 0 });
            match sent {
                Poll::Ready(Err(_)) => Poll::Ready(Some(Err(()))),
                Poll::Ready(Ok(())) if !asked_to_end => self.poll_dormant(context, &mut dormancy),
                _ => Poll::Pending,
            }
        })
        .await;
        let read = connection.into_parts().read_buf;
        match outcome {
            Some(outcome) => Pause::Over(read, outcome),
            None => Pause::Dormant(read),
        }
    }

    /// Ready once the connection must not accept further requests.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.late {
            return Poll::Pending;
        }
        ready!(self.ending.poll(context));
        let due = *self.last_requests.get_or_insert_with(|| Instant::now() + LAST_REQUESTS);
        self.alarm.poll_due(context, due)
    }

    /// Watches the client while hyper does not read. Ready if the connection has failed, or if the client has closed its
    /// side and the listener aborts requests then.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.has_ended {
            return Poll::Pending;
        }
        if ready!(self.shared.poll_end(context)).is_err() {
            return Poll::Ready(());
        }
        self.has_ended = true;
        let aborts = self.http.chain.http().is_some_and(|settings| settings.abort_on_close);
        let in_progress = !self.http.connection.clock.has_no_requests();
        if aborts && in_progress { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Called when all output was sent: ready once no request was started for a while.
    fn poll_dormant<T>(&self, context: &mut Context<'_>, dormancy: &mut Alarm) -> Poll<Option<T>> {
        let clock = &self.http.connection.clock;
        let Some(since) = clock.idle_since().filter(|_| clock.header_due().is_none()) else {
            return Poll::Pending;
        };
        dormancy.poll_due(context, since + DORMANT_AFTER).map(|()| None)
    }

    /// Waits for the start of the next request. Returns false if the connection is to close.
    async fn wait(&mut self) -> bool {
        poll_fn(|context| match self.shared.poll_readable(context) {
            Poll::Ready(readable) => Poll::Ready(readable.unwrap_or(false)),
            Poll::Pending => self.poll_end(context).map(|()| false),
        })
        .await
    }
}

/// Runs a tunnel after the response that opens it.
async fn pass(tunnel: Tunnel, mut stream: ClientStream, read: Bytes) {
    stream.unread(read);
    if stream.flush().await.is_ok() {
        tunnel.run_alone(stream).await;
    }
}

/// Closes the connection gracefully.
async fn close(mut stream: ClientStream, interrupted: bool) {
    if !interrupted {
        stream.closes_after_shutdown();
    }
    let closing = async {
        if let Err(error) = stream.shutdown().await {
            tracing::debug!(%error, "close_notify was not sent");
        } else if interrupted {
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
    holder: &Arc<Holder>,
) -> impl Fn(Request<Incoming>) -> Answering + use<> {
    let (http, informational, tunnel) = (Arc::clone(http), informational.clone(), Arc::clone(tunnel));
    let holder = Arc::clone(holder);
    move |request| {
        let (http, informational, tunnel) = (Arc::clone(&http), informational.clone(), Arc::clone(&tunnel));
        let holder = Arc::clone(&holder);
        Box::pin(async move {
            let request = request.map(|body| ClientBody::http1(body, &http.connection, &holder));
            let outcome = service::serve(&http, request, &informational).await;
            // Informational responses are sent before the response: the connection writes them when this yields.
            while !informational.is_empty() {
                tokio::task::yield_now().await;
            }
            Ok(match outcome {
                Outcome::Response(response) => response,
                Outcome::Tunnel(response, begun) => {
                    *tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
                    response.map(|()| ResponseBody::none())
                }
            })
        })
    }
}
