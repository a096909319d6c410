//! HTTP/3 connections of clients (RFC 9114). One task runs a connection with all its streams, and each turn of it
//! ends by sending the output of all streams together. As TCP connections do, it takes steps with the others of its
//! event loop.

mod response;
mod tunnel_bytes;

use super::{
    drain_watch::Ending,
    stream_resets::{StreamEnd, StreamResets},
};
use crate::{
    admission::Transfers,
    connection::{self, Alarm},
    http::{
        HttpConnection,
        body::client_body::ClientBody,
        filter::request_size,
        request::http3_head,
        response::{informational::Informational, outcome::Outcome},
        service,
    },
    memory::{Endable, Holder},
    quic::{Code, Link, Received, ResponseStream},
};
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::{Request, Response, StatusCode, header};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tunnel_bytes::TunnelBytes;

/// Time for a client without streams to close the connection after GOAWAY.
const FAREWELL: Duration = Duration::from_secs(5);

/// Number of accepted requests and stream completions in one turn before other connections get theirs.
const BUDGET: usize = 16;

/// Interval of PINGs while a client waits for a response, so that its idle timeout does not expire.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// Number of reset streams after which the connection is drained: quiche keeps some state for each of them.
const MOST_RESETS: u32 = 10_000;

/// Serves requests until the connection ends or has to be closed.
pub(crate) async fn serve(link: &Link, http: Arc<HttpConnection>, transfers: Transfers) {
    if !link.begin_http(request_size::decoded(http.header_limits().0)) {
        return;
    }
    let mut driver = Driver {
        link,
        transfers,
        streams: FuturesUnordered::new(),
        resets: StreamResets::default(),
        reset: 0,
        http: &http,
        ending: Ending::new(&http),
        late: http.chain.is_removed(),
        told_to_go: None,
        owes_goodbye: false,
        sign_of_life: None,
        alarm: Alarm::default(),
    };
    poll_fn(|context| driver.poll_turn(context)).await;
    // Streams of disconnected clients end here.
}

struct Driver<'a> {
    link: &'a Link,
    transfers: Transfers,
    streams: FuturesUnordered<Endable<StreamEnd>>,
    resets: StreamResets,
    reset: u32,
    http: &'a Arc<HttpConnection>,
    ending: Ending<'a>,
    /// The chain was removed before the connection was accepted: its first request is its last.
    late: bool,
    told_to_go: Option<Instant>,
    /// Whether GOAWAY is still to be sent, because there was no room for it.
    owes_goodbye: bool,
    /// Time of the next PING.
    sign_of_life: Option<Instant>,
    alarm: Alarm,
}

impl Driver<'_> {
    /// Runs one turn: accepts requests, runs streams and sends the output. Ready when the connection is over.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        ready!(self.transfers.poll_allowed(context));
        self.link.begin_turn();
        self.note_completion();
        let mut budget = self.transfers.fits(connection::REQUEST, BUDGET);
        let mut over = false;
        while !over {
            over = self.poll_accept(&mut budget).is_ready();
            let ran = self.run_streams(context, &mut budget);
            if budget == 0 {
                context.waker().wake_by_ref();
                break;
            }
            // Reading makes room, and reading to the end is an event.
            if !self.link.has_moved() && !ran {
                break;
            }
        }
        self.tell_to_go(context);
        let driven = self.link.poll_drive(context);
        self.transfers.charge(self.link.take_work() + self.http.connection.charges.take());
        if driven.is_ready() || over {
            return Poll::Ready(());
        }
        self.poll_idle(context)
    }

    /// Requests received after the handshake is complete are not replays (RFC 8470 section 3).
    fn note_completion(&self) {
        let early = &self.http.connection.early;
        if early.load(Ordering::Relaxed) && !self.link.is_early() {
            early.store(false, Ordering::Relaxed);
        }
    }

    /// Starts streams. Ready at the end of the connection.
    fn poll_accept(&mut self, budget: &mut usize) -> Poll<()> {
        while *budget > 0 {
            match self.link.poll_request() {
                Poll::Ready(Some(received)) => {
                    *budget -= 1;
                    if self.has_said_farewell() {
                        reject(received);
                        continue;
                    }
                    let holder = Arc::<Holder>::default();
                    let stream = serve_stream(Arc::clone(self.http), received, Arc::clone(&holder));
                    self.streams.push(Endable::new(holder, stream));
                    if self.late {
                        self.go();
                    }
                }
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        Poll::Pending
    }

    /// Runs the streams. Returns whether any of them ended.
    fn run_streams(&mut self, context: &mut Context<'_>, budget: &mut usize) -> bool {
        let mut ran = false;
        while *budget > 0
            && let Poll::Ready(Some(end)) = self.streams.poll_next_unpin(context)
        {
            *budget -= 1;
            ran = true;
            let end = end.unwrap_or(StreamEnd::Answered);
            self.reset += u32::from(matches!(end, StreamEnd::Reset(_)));
            if self.resets.count(end, &self.http.connection.charges) {
                self.link.close(Code::ExcessiveLoad);
            }
            if self.reset == MOST_RESETS {
                self.go();
            }
        }
        ran
    }

    /// Sends GOAWAY once the chain is removed; open streams finish.
    fn tell_to_go(&mut self, context: &mut Context<'_>) {
        if self.told_to_go.is_none() && !self.late && self.ending.poll(context).is_ready() {
            self.go();
        }
        if self.owes_goodbye {
            self.owes_goodbye = !self.link.say_goodbye();
        }
    }

    fn go(&mut self) {
        if self.told_to_go.is_none() {
            self.told_to_go = Some(Instant::now());
            self.owes_goodbye = !self.link.say_goodbye();
        }
    }

    /// Returns whether the time since GOAWAY is over.
    fn has_said_farewell(&self) -> bool {
        self.told_to_go.is_some_and(|told| told.elapsed() >= FAREWELL)
    }

    /// Ready when the time of a client without streams is over.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.streams.is_empty() {
            let due = *self.sign_of_life.get_or_insert_with(|| Instant::now() + SIGN_OF_LIFE);
            if self.alarm.poll_due(context, due).is_ready() {
                self.sign_of_life = None;
                self.link.ping();
            }
            return Poll::Pending;
        }
        self.sign_of_life = None;
        if let Some(told) = self.told_to_go {
            return self.alarm.poll_due(context, told + FAREWELL);
        }
        if let Some(due) = self.http.connection.clock.idle_due()
            && self.alarm.poll_due(context, due).is_ready()
        {
            self.go();
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

/// Rejects a request. The client may send it again (RFC 9114 section 4.1.1).
fn reject(received: Received) {
    let Received { mut response, .. } = received;
    response.reset(Code::RequestRejected);
}

/// Serves one request.
///
/// The code before the `async` block does not add to the size of the future.
fn serve_stream(
    http: Arc<HttpConnection>,
    received: Received,
    holder: Arc<Holder>,
) -> impl Future<Output = StreamEnd> {
    let began = Instant::now();
    let Received { head, body, mut response } = received;
    let request = http3_head::read(&head, body.is_ended());
    async move {
        let Ok(request) = request else {
            response.reset(Code::MessageError);
            return StreamEnd::Answered;
        };
        let (head, ()) = request.into_parts();
        let expects = head.headers.contains_key(header::EXPECT) && !body.is_ended();
        let body = ClientBody::http3(body, &head.headers, &http.connection, &holder);
        let limit = http.connection.clock.idle_limit();
        if expects {
            let mut go_on = Response::new(());
            *go_on.status_mut() = StatusCode::CONTINUE;
            if response::send_head(&mut response, &go_on.into_parts().0, false, limit).await.is_err() {
                return StreamEnd::Reset(began.elapsed());
            }
        }
        let sent = match answer(&http, Request::from_parts(head, body), &mut response, limit).await {
            // The client reset the stream.
            None => Err(response::Cut::ByClient),
            Some(Outcome::Response(answer)) => response::send(answer, &mut response, limit).await,
            Some(Outcome::Tunnel(answer, mut tunnel)) => {
                let incoming = tunnel.client.take().and_then(ClientBody::into_http3);
                let opened = response::send_head(&mut response, &answer.into_parts().0, false, limit).await;
                if let (Some(incoming), Ok(())) = (incoming, opened) {
                    Box::pin(tunnel.run(TunnelBytes::new(incoming, response))).await;
                }
                return StreamEnd::Answered;
            }
        };
        match sent {
            Ok(()) => StreamEnd::Answered,
            Err(response::Cut::ByClient) => StreamEnd::Reset(began.elapsed()),
            Err(response::Cut::ByUs(code)) => {
                response.reset(code);
                StreamEnd::Answered
            }
        }
    }
}

/// Serves the request and sends its informational responses. Returns `None` once the client resets the stream.
async fn answer(
    http: &Arc<HttpConnection>,
    request: Request<ClientBody>,
    response: &mut ResponseStream,
    limit: Duration,
) -> Option<Outcome> {
    let informational = Informational::default();
    let mut serving = pin!(service::serve(http, request, &informational));
    loop {
        let served = poll_fn(|context| {
            if response.poll_reset(context).is_ready() {
                return Poll::Ready(None);
            }
            match serving.as_mut().poll(context) {
                Poll::Ready(outcome) => Poll::Ready(Some((Some(outcome), informational.take()))),
                Poll::Pending => match informational.take() {
                    none if none.is_empty() => Poll::Pending,
                    some => Poll::Ready(Some((None, some))),
                },
            }
        });
        let (outcome, informational) = served.await?;
        for one in informational {
            response::send_head(response, &one.into_parts().0, false, limit).await.ok()?;
        }
        if let Some(outcome) = outcome {
            return Some(outcome);
        }
    }
}
