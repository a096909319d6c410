//! HTTP/2 connection to an endpoint, which carries many exchanges.

use super::{
    content_length,
    error::{ExchangeError, Limits, Watchdog},
    request_body::RequestBody,
    upload::{Sending, Upload},
};
use crate::{
    connection::Alarm,
    http2::{
        FRAME_BUDGET, IncomingStream, Intake, MOST_ERRORS, MOST_REMEMBERED, Metered, REMEMBERED_FOR, Windows,
    },
    memory::Holder,
    upstream::connect::connector::ServerStream,
};
use bytes::Bytes;
use h2::{
    Reason, RecvStream,
    client::{self, SendRequest},
};
use http::{HeaderMap, HeaderName, Method, Request, Response, header, response::Parts};
use http_body::{Body, Frame, SizeHint};
use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker, ready},
    time::{Duration, Instant},
};
use tokio::{
    sync::oneshot,
    time::{error::Elapsed, timeout},
};

/// Maximum number of concurrent exchanges on a connection: the minimum that servers should allow (RFC 9113 section
/// 6.5.2).
pub(crate) const MOST_EXCHANGES: u32 = 100;

/// Maximum number of request bytes of an exchange that wait for the server.
const SEND_BUFFER: usize = 64 * 1024;

/// Time to wait for the server's settings, which are the first that it sends (RFC 9113 section 3.4): they limit the
/// number of exchanges.
const SETTINGS: Duration = Duration::from_secs(1);

/// Value of the maximum number of streams until the server's settings arrive.
const UNKNOWN: usize = usize::MAX - 1;

/// A connection that carries many concurrent exchanges; clones refer to the same connection.
#[derive(Clone)]
pub(crate) struct Http2Connection {
    sender: SendRequest<Bytes>,
    /// Held by every exchange.
    shared: Arc<Shared>,
    pub(crate) used: Instant,
}

type Connection = client::Connection<Metered<ServerStream>, Bytes>;

impl Http2Connection {
    /// Creates a connection. Its driver is a task of this event loop, which ends when there are no more senders.
    pub(crate) async fn new(stream: ServerStream) -> io::Result<Self> {
        let intake = Intake::default();
        let windows = Windows::of(MOST_EXCHANGES);
        let mut builder = client::Builder::new();
        builder
            .initial_window_size(windows.stream)
            .initial_connection_window_size(windows.connection)
            .data_frame_budget(FRAME_BUDGET)
            .initial_max_send_streams(UNKNOWN)
            .max_header_list_size(crate::upstream::MOST_RESPONSE_HEADER)
            .max_send_buffer_size(SEND_BUFFER)
            .max_concurrent_reset_streams(MOST_REMEMBERED)
            .reset_stream_duration(REMEMBERED_FOR)
            .max_local_error_reset_streams(Some(MOST_ERRORS))
            .enable_push(false);
        let stream = Metered::new(stream, intake.clone());
        let (sender, mut connection) = builder.handshake(stream).await.map_err(io::Error::other)?;
        // Without settings in time, there is no limit.
        if let Ok(Err(error)) = settings(&sender, &mut connection).await {
            return Err(io::Error::other(error));
        }
        let (alive, end) = oneshot::channel();
        tokio::spawn(drive(connection, intake.clone(), end));
        let shared =
            Shared { heard: AtomicUsize::new(0), is_silent: AtomicBool::new(false), intake, _alive: alive };
        Ok(Self { sender, shared: Arc::new(shared), used: Instant::now() })
    }

    /// Returns whether it has capacity for another exchange.
    pub(crate) fn has_room(&mut self) -> bool {
        self.exchanges() < self.places() && !self.is_over()
    }

    /// Returns the maximum number of concurrent exchanges.
    pub(crate) fn places(&self) -> usize {
        self.sender.current_max_send_streams().min(MOST_EXCHANGES as usize)
    }

    /// Returns the number of exchanges in progress.
    pub(crate) fn exchanges(&self) -> usize {
        Arc::strong_count(&self.shared) - 1
    }

    /// Returns whether it accepts no further exchanges.
    pub(crate) fn is_over(&mut self) -> bool {
        self.shared.is_silent.load(Ordering::Relaxed) || !is_ready(&mut self.sender)
    }

    /// Returns another handle, which does not count as an exchange.
    pub(crate) fn exchange(&self) -> Http2Exchange {
        Http2Exchange { sender: self.sender.clone(), shared: Arc::clone(&self.shared) }
    }
}

/// Returns whether the connection accepts a stream.
fn is_ready(sender: &mut SendRequest<Bytes>) -> bool {
    matches!(sender.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())))
}

/// Waits for the server's settings.
async fn settings(
    sender: &SendRequest<Bytes>,
    connection: &mut Connection,
) -> Result<Result<(), h2::Error>, Elapsed> {
    let arrival = poll_fn(|context| match Pin::new(&mut *connection).poll(context) {
        Poll::Ready(ended) => Poll::Ready(ended.and(Err(Reason::CONNECT_ERROR.into()))),
        Poll::Pending if sender.current_max_send_streams() == UNKNOWN => Poll::Pending,
        Poll::Pending => Poll::Ready(Ok(())),
    });
    timeout(SETTINGS, arrival).await
}

/// Runs a connection until it ends. h2 does not notice the drop of the last sender, which `end` reports.
async fn drive(mut connection: Connection, intake: Intake, end: oneshot::Receiver<Infallible>) {
    let mut end = pin!(end);
    let mut is_unused = false;
    let ended = poll_fn(|context| {
        is_unused = is_unused || end.as_mut().poll(context).is_ready();
        intake.relieve();
        let ended = Pin::new(&mut connection).poll(context);
        if ended.is_pending() && intake.has_stopped() {
            // Exchanges run before more is read.
            context.waker().wake_by_ref();
        }
        ended
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "upstream HTTP/2 connection ended");
    }
}

/// State shared by the exchanges of a connection.
struct Shared {
    /// Number of times that data was received on the connection.
    heard: AtomicUsize,
    /// Whether an exchange has timed out while no data was received on the connection: the path may be broken, which
    /// TCP detects late.
    is_silent: AtomicBool,
    intake: Intake,
    /// Dropped with the last handle.
    _alive: oneshot::Sender<Infallible>,
}

impl Shared {
    fn hear(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a timeout of an exchange, with the receive count when it started.
    fn timed_out(&self, heard: usize) {
        if self.heard.load(Ordering::Relaxed) == heard {
            self.is_silent.store(true, Ordering::Relaxed);
        }
    }
}

/// Handle of one exchange.
pub(crate) struct Http2Exchange {
    sender: SendRequest<Bytes>,
    shared: Arc<Shared>,
}

impl Http2Exchange {
    /// Sends a request, and waits for the header of its response.
    pub(crate) fn send(
        mut self,
        request: Request<RequestBody>,
        limits: Limits,
    ) -> impl Future<Output = Result<Response<Http2Body>, ExchangeError>> {
        let mut watchdog = Watchdog::new(limits, request.body().progress());
        let is_head = *request.method() == Method::HEAD;
        let begun = self.begin(request);
        let shared = self.shared;
        let heard = shared.heard.load(Ordering::Relaxed);
        async move {
            let (mut response, mut upload) = begun?;
            let mut begin =
                |context: &mut Context<'_>| upload.take().and_then(|upload| upload.begin(context));
            let sending = poll_fn(|context| Poll::Ready(begin(context))).await;
            let mut alarm = Alarm::default();
            let response = poll_fn(|context| match Pin::new(&mut response).poll(context) {
                Poll::Ready(response) => Poll::Ready(response.map_err(ExchangeError::from)),
                Poll::Pending => {
                    let error = ready!(watchdog.poll_overdue(context, &mut alarm));
                    if matches!(error, ExchangeError::TimedOut) {
                        shared.timed_out(heard);
                    }
                    Poll::Ready(Err(error))
                }
            })
            .await?;
            watchdog.header();
            shared.hear();
            let (mut head, incoming) = response.into_parts();
            let bodiless = is_head || content_length::is_bodiless(head.status);
            let length = length(&mut head, &incoming, bodiless)?;
            // A body that must not follow is not read, and its stream is reset.
            let incoming = (!bodiless && !incoming.is_end_stream()).then(|| shared.intake.open(incoming));
            let body = Http2Body { incoming, length, alarm, watchdog, _sending: sending, shared };
            Ok(Response::from_parts(head, body))
        }
    }

    /// Opens a stream, and sends the request's header.
    fn begin(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<(client::ResponseFuture, Option<Box<Upload>>), ExchangeError> {
        if !is_ready(&mut self.sender) {
            return Err(ExchangeError::NotSent);
        }
        let (mut head, body) = request.into_parts();
        adapt(&head.method, &mut head.headers, &body);
        let ended = body.is_end_stream();
        let (response, stream) = self.sender.send_request(Request::from_parts(head, ()), ended)?;
        Ok((response, (!ended).then(|| Box::new(Upload::new(stream, body)))))
    }
}

/// Removes fields that HTTP/2 does not allow (RFC 9113 section 8.2.2), and adds the length of the body.
fn adapt(method: &Method, headers: &mut HeaderMap, body: &RequestBody) {
    const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
    const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, KEEP_ALIVE, PROXY_CONNECTION]
    {
        headers.remove(name);
    }
    if headers.get(header::TE).is_some_and(|coding| coding != "trailers") {
        headers.remove(header::TE);
    }
    let has_length = matches!(*method, Method::GET | Method::HEAD | Method::DELETE | Method::CONNECT);
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0 || !has_length)
        && !headers.contains_key(header::CONTENT_LENGTH)
    {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
}

/// Returns the length of a response's body, if it is known. h2 has checked it against the received data.
fn length(head: &mut Parts, body: &RecvStream, bodiless: bool) -> Result<Option<u64>, ExchangeError> {
    if content_length::forbids_length(head.status) {
        head.headers.remove(header::CONTENT_LENGTH);
    }
    let announced = content_length::unify(&mut head.headers);
    let announced = announced.map_err(|problem| ExchangeError::Broken(problem.into()))?;
    Ok(if bodiless { Some(0) } else { announced.or_else(|| body.is_end_stream().then_some(0)) })
}

/// Body of a response.
pub(crate) struct Http2Body {
    /// `None` if the response consists of the header only.
    incoming: Option<IncomingStream>,
    /// Number of remaining bytes, if it is known.
    length: Option<u64>,
    alarm: Alarm,
    watchdog: Watchdog,
    _sending: Option<Sending>,
    shared: Arc<Shared>,
}

impl Http2Body {
    /// Attributes unread data to an exchange.
    pub(in crate::upstream) fn belongs_to(&self, holder: &Arc<Holder>) {
        self.incoming.iter().for_each(|incoming| incoming.belongs_to(holder));
    }
}

impl Body for Http2Body {
    type Data = Bytes;
    type Error = ExchangeError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        let this = &mut *self;
        let Some(incoming) = &mut this.incoming else { return Poll::Ready(None) };
        let Poll::Ready(frame) = incoming.poll_frame(context) else {
            let error = ready!(this.watchdog.poll_overdue(context, &mut this.alarm));
            return Poll::Ready(Some(Err(error)));
        };
        this.watchdog.renew();
        this.shared.hear();
        let received = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()).map_or(0, Bytes::len);
        this.length = this.length.map(|length| length.saturating_sub(received as u64));
        Poll::Ready(match frame {
            // An early response (RFC 9113 section 8.1).
            Some(Err(error)) if error.reason() == Some(Reason::NO_ERROR) => None,
            frame => frame.map(|frame| frame.map_err(ExchangeError::from)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(IncomingStream::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
