//! HTTP/2 connections of clients (RFC 9113). One task runs a connection with all its streams, and each turn of it
//! ends by sending the output of all streams together.

use super::{
    drain_watch::Ending,
    shared_stream::SharedStream,
    stream_resets::{StreamEnd, StreamResets},
};
use crate::{
    connection::{Alarm, Patience},
    http::{
        HttpConnection,
        body::client_body::ClientBody,
        filter::request_size,
        response::{body::ResponseBody, informational::Informational, outcome::Outcome, tunnel::StreamBytes},
        service,
    },
    http2::{FRAME_BUDGET, Intake, MOST_ERRORS, MOST_REMEMBERED, Metered, REMEMBERED_FOR, Windows},
    memory::{Endable, Held, Holder, Purpose},
    tls::ClientStream,
};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use h2::{
    Reason, RecvStream, SendStream,
    server::{self, SendResponse},
};
use http::{Method, Request, Response, StatusCode, header};
use http_body::{Body, Frame};
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

/// Maximum number of response bytes that are buffered while the client's window or the connection is full.
const SEND_BUFFER: usize = 256 * 1024;
/// Size up to which the end of a response is queued without waiting for the window. The connection can buffer that
/// for all streams of a client that reads nothing.
const SMALL: usize = 16 * 1024;
/// Maximum number of concurrent streams.
const MOST_STREAMS: u32 = 250;

/// Time for a client without streams to close the connection after GOAWAY.
const FAREWELL: Duration = Duration::from_secs(5);

/// Number of accepted requests and stream completions in one turn before other connections get theirs.
const BUDGET: usize = 64;

type Connection = server::Connection<Metered<SharedStream>, Bytes>;

/// Serves requests until the connection ends.
pub(crate) async fn serve(mut stream: ClientStream, http: Arc<HttpConnection>) {
    stream.closes_after_shutdown();
    let (shared, intake) = (SharedStream::new(stream), Intake::default());
    let windows = Windows::of(MOST_STREAMS);
    let mut builder = server::Builder::new();
    builder
        .initial_window_size(windows.stream)
        .initial_connection_window_size(windows.connection)
        .data_frame_budget(FRAME_BUDGET)
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(request_size::decoded(http.header_limits().0))
        .max_send_buffer_size(SEND_BUFFER)
        .max_concurrent_reset_streams(MOST_REMEMBERED)
        .reset_stream_duration(REMEMBERED_FOR)
        .max_local_error_reset_streams(Some(MOST_ERRORS))
        .enable_connect_protocol();
    let mut handshake = pin!(builder.handshake(Metered::new(shared.clone(), intake.clone())));
    let shaken = poll_fn(|context| {
        let shaken = handshake.as_mut().poll(context);
        drop(shared.poll_send(context));
        shaken
    });
    let connection = match shaken.await {
        Ok(connection) => connection,
        Err(error) => return tracing::debug!(%error, "no HTTP/2 preface"),
    };
    let mut driver = Driver {
        connection,
        shared,
        intake,
        streams: FuturesUnordered::new(),
        resets: StreamResets::default(),
        http: &http,
        ending: Ending::new(&http),
        late: http.chain.is_removed(),
        told_to_go: None,
        alarm: Alarm::default(),
    };
    poll_fn(|context| driver.poll_turn(context)).await;
    // Streams of disconnected clients end here.
    drop(driver.streams);
    let _ = poll_fn(|context| driver.shared.poll_send(context)).await;
}

struct Driver<'a> {
    connection: Connection,
    shared: SharedStream,
    intake: Intake,
    streams: FuturesUnordered<Endable<StreamEnd>>,
    resets: StreamResets,
    http: &'a Arc<HttpConnection>,
    ending: Ending<'a>,
    /// The chain was removed before the connection was accepted: its first request is its last.
    late: bool,
    told_to_go: Option<Instant>,
    alarm: Alarm,
}

impl Driver<'_> {
    /// Runs one turn: accepts requests, runs streams and sends the output. Ready when the connection is over.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut budget = BUDGET;
        loop {
            let accepted = self.poll_accept(context, &mut budget);
            let ran = self.run_streams(context, &mut budget);
            if accepted.is_ready() {
                return Poll::Ready(());
            }
            if self.intake.relieve() || budget == 0 {
                context.waker().wake_by_ref();
                break;
            }
            // The next `poll_accept` frames the output of the streams.
            if !ran {
                break;
            }
        }
        self.tell_to_go(context);
        if let Poll::Ready(Err(_)) = self.shared.poll_send(context) {
            return Poll::Ready(());
        }
        self.poll_idle(context)
    }

    /// Reads frames, starts streams and frames the output of the others. Ready at the end of the connection.
    fn poll_accept(&mut self, context: &mut Context<'_>, budget: &mut usize) -> Poll<()> {
        while *budget > 0 {
            match ready!(self.connection.poll_accept(context)) {
                Some(Ok((request, mut respond))) => {
                    *budget -= 1;
                    if self.has_said_farewell() {
                        // The client ignored GOAWAY; it may safely send the request again.
                        respond.send_reset(Reason::REFUSED_STREAM);
                        continue;
                    }
                    let holder = Arc::<Holder>::default();
                    let http = Arc::clone(self.http);
                    let stream = serve_stream(http, request, respond, &self.intake, &holder);
                    self.streams.push(Endable::new(holder, stream));
                    if self.late {
                        self.go(context);
                    }
                }
                Some(Err(error)) => {
                    tracing::debug!(%error, "HTTP/2 connection failed");
                    return Poll::Ready(());
                }
                None => return Poll::Ready(()),
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
            if self.resets.count(end.unwrap_or(StreamEnd::Answered), &self.http.connection.charges) {
                self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            }
        }
        ran
    }

    /// Sends GOAWAY once the chain is removed; open streams finish.
    fn tell_to_go(&mut self, context: &mut Context<'_>) {
        if self.told_to_go.is_none() && !self.late && self.ending.poll(context).is_ready() {
            self.go(context);
        }
    }

    fn go(&mut self, context: &mut Context<'_>) {
        self.told_to_go.get_or_insert_with(Instant::now);
        self.connection.graceful_shutdown();
        context.waker().wake_by_ref();
    }

    /// Returns whether the time since GOAWAY is over.
    fn has_said_farewell(&self) -> bool {
        self.told_to_go.is_some_and(|told| told.elapsed() >= FAREWELL)
    }

    /// Ready when the time of a client without streams is over.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.streams.is_empty() {
            return Poll::Pending;
        }
        if let Some(told) = self.told_to_go {
            return self.alarm.poll_due(context, told + FAREWELL);
        }
        if let Some(due) = self.http.connection.clock.idle_due()
            && self.alarm.poll_due(context, due).is_ready()
        {
            self.go(context);
        }
        Poll::Pending
    }
}

/// Serves one request.
///
/// The code before the `async` block does not add to the size of the future.
fn serve_stream(
    http: Arc<HttpConnection>,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    intake: &Intake,
    holder: &Arc<Holder>,
) -> impl Future<Output = StreamEnd> + use<> {
    let began = Instant::now();
    let (head, body) = request.into_parts();
    let expects = head.headers.contains_key(header::EXPECT);
    // A tunnel needs its stream even if the client sends nothing.
    let stream = (!body.is_end_stream() || head.method == Method::CONNECT).then(|| intake.open(body));
    let body = ClientBody::http2(stream, &head.headers, &http.connection, holder);
    if expects && !body.is_end_stream() {
        let mut go_on = Response::new(());
        *go_on.status_mut() = StatusCode::CONTINUE;
        let _ = respond.send_informational(go_on);
    }
    let request = Request::from_parts(head, body);
    async move {
        match answer(&http, request, &mut respond).await {
            // The client reset the stream.
            None => return StreamEnd::Reset(began.elapsed()),
            Some(Outcome::Response(response)) => {
                let sent = send(response, respond, http.connection.clock.idle_limit()).await;
                if let Err(Cut::ByClient) = sent {
                    return StreamEnd::Reset(began.elapsed());
                }
            }
            Some(Outcome::Tunnel(response, mut tunnel)) => {
                let incoming = tunnel.client.take().and_then(ClientBody::into_stream);
                if let (Some(incoming), Ok(outgoing)) = (incoming, respond.send_response(response, false)) {
                    Box::pin(tunnel.run(StreamBytes::new(incoming, outgoing))).await;
                }
            }
        }
        StreamEnd::Answered
    }
}

/// Reason why a response is not sent completely.
enum Cut {
    /// The client reset the stream or disconnected.
    ByClient,
    ByUs(Reason),
}

/// Serves the request and sends its informational responses. Returns `None` once the client resets the stream.
async fn answer(
    http: &Arc<HttpConnection>,
    request: Request<ClientBody>,
    respond: &mut SendResponse<Bytes>,
) -> Option<Outcome> {
    let informational = Informational::default();
    let mut serving = pin!(service::serve(http, request, &informational));
    poll_fn(|context| {
        if respond.poll_reset(context).is_ready() {
            return Poll::Ready(None);
        }
        let outcome = serving.as_mut().poll(context);
        for response in informational.take() {
            let _ = respond.send_informational(response);
        }
        outcome.map(Some)
    })
    .await
}

/// Sends a response as fast as the client reads it. Gives up when the client reads nothing for `limit`.
fn send(
    response: Response<ResponseBody>,
    mut respond: SendResponse<Bytes>,
    limit: Duration,
) -> impl Future<Output = Result<(), Cut>> {
    let (head, mut body) = response.into_parts();
    let ended = body.is_end_stream();
    let stream = respond.send_response(Response::from_parts(head, ()), ended);
    let mut stream = stream.ok().filter(|_| !ended);
    async move {
        let Some(stream) = &mut stream else { return Ok(()) };
        let sent = send_body(stream, &mut body, limit).await;
        if let Err(Cut::ByUs(reason)) = sent {
            stream.send_reset(reason);
        }
        sent
    }
}

async fn send_body(
    stream: &mut SendStream<Bytes>,
    body: &mut ResponseBody,
    limit: Duration,
) -> Result<(), Cut> {
    let mut patience = Patience::default();
    let mut unsent = Held::nothing(Purpose::Unsent);
    if let Some(holder) = body.holder() {
        unsent.belongs_to(holder);
    }
    loop {
        let frame = poll_fn(|context| {
            if stream.poll_reset(context).is_ready() {
                return Poll::Ready(Err(Cut::ByClient));
            }
            Pin::new(&mut *body).poll_frame(context).map(Ok)
        });
        let Some(frame) = frame.await? else {
            drop(stream.send_data(Bytes::new(), true));
            return Ok(());
        };
        let frame = frame.map_err(|_| Cut::ByUs(Reason::INTERNAL_ERROR))?;
        match frame.into_data().map_err(Frame::into_trailers) {
            // The connection may hold it until the client's window opens.
            Ok(data) if body.is_end_stream() && data.len() <= SMALL => {
                drop(stream.send_data(data, true));
                return Ok(());
            }
            Ok(data) => {
                let last = body.is_end_stream();
                send_data(stream, data, last, (&mut patience, limit), &mut unsent).await?;
                if last {
                    return Ok(());
                }
            }
            Err(Ok(trailers)) => {
                drop(stream.send_trailers(trailers));
                return Ok(());
            }
            Err(Err(_)) => {}
        }
    }
}

/// Sends data as the window opens. Gives up when it stays closed for `limit`.
async fn send_data(
    stream: &mut SendStream<Bytes>,
    mut data: Bytes,
    last: bool,
    (patience, limit): (&mut Patience, Duration),
    unsent: &mut Held,
) -> Result<(), Cut> {
    stream.reserve_capacity(data.len());
    while !data.is_empty() {
        let mut room = stream.capacity();
        if room == 0 {
            unsent.set(data.len());
            room = poll_fn(|context| match stream.poll_capacity(context) {
                Poll::Ready(Some(Ok(room))) => Poll::Ready(Ok(room)),
                Poll::Ready(_) => Poll::Ready(Err(Cut::ByClient)),
                Poll::Pending => {
                    patience.poll_exhausted(context, limit).map(|()| Err(Cut::ByUs(Reason::CANCEL)))
                }
            })
            .await?;
            patience.renew();
            unsent.set(0);
        }
        let piece = data.split_to(room.min(data.len()));
        let ends = last && data.is_empty();
        stream.send_data(piece, ends).map_err(|_| Cut::ByClient)?;
    }
    Ok(())
}
