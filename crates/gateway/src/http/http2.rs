//! A client's connection over which HTTP/2 is spoken (RFC 9113), with all its streams: one task, whose turn ends with
//! everything that the streams have to say leaving together.

use super::{
    HttpConnection,
    client_body::ClientBody,
    ending::Ending,
    informational::Informational,
    outcome::Outcome,
    request_size,
    response_body::ResponseBody,
    service,
    shared_stream::SharedStream,
    stream_resets::{StreamEnd, StreamResets},
    tunnel::StreamBytes,
};
use crate::{
    connection::{Alarm, Patience},
    tls::ClientStream,
};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use h2::{
    Reason, RecvStream, SendStream,
    server::{self, SendResponse},
};
use http::{Request, Response, StatusCode, header};
use http_body::{Body, Frame};
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

/// Bytes of requests that a client may send ahead on one stream, and on the connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bytes of a response that wait for the client's window and for the connection.
const SEND_BUFFER: usize = 256 * 1024;
/// So much of a response's end is left to the connection, whose streams of a client that takes none it can hold.
const SMALL: usize = 16 * 1024;
/// Streams at a time.
const MOST_STREAMS: u32 = 250;

/// After it was told to go, a client without streams has this long to close.
const FAREWELL: Duration = Duration::from_secs(5);

/// In one turn, so many requests are accepted and so many streams run before other connections have theirs.
const BUDGET: usize = 64;

type Connection = server::Connection<SharedStream, Bytes>;

/// Serves requests until the connection ends.
pub(super) async fn serve(stream: ClientStream, http: Arc<HttpConnection>) {
    let shared = SharedStream::new(stream);
    let mut builder = server::Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(request_size::decoded(http.header_limits().0))
        .max_send_buffer_size(SEND_BUFFER)
        .enable_connect_protocol();
    let mut handshake = pin!(builder.handshake(shared.clone()));
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
        streams: FuturesUnordered::new(),
        resets: StreamResets::default(),
        http: &http,
        ending: Ending::new(&http),
        late: http.chain.is_removed(),
        told_to_go: None,
        alarm: Alarm::default(),
    };
    poll_fn(|context| driver.poll_turn(context)).await;
    // Streams of clients that are gone end here.
    drop(driver.streams);
    let _ = poll_fn(|context| driver.shared.poll_send(context)).await;
}

type Stream = Pin<Box<dyn Future<Output = StreamEnd> + Send>>;

struct Driver<'a> {
    connection: Connection,
    shared: SharedStream,
    streams: FuturesUnordered<Stream>,
    resets: StreamResets,
    http: &'a Arc<HttpConnection>,
    ending: Ending<'a>,
    /// The chain was gone already when the connection came: its first request is its last.
    late: bool,
    told_to_go: Option<Instant>,
    alarm: Alarm,
}

impl Driver<'_> {
    /// Does what there is to do, and sends what came of it; ready when the connection is over.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut budget = BUDGET;
        loop {
            let accepted = self.poll_accept(context, &mut budget);
            let ran = self.run_streams(context, &mut budget);
            if accepted.is_ready() {
                return Poll::Ready(());
            }
            if budget == 0 {
                context.waker().wake_by_ref();
                break;
            }
            // What the streams have written is framed by the next look for requests.
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

    /// Reads frames, begins streams, frames what the others have written; ready at the end.
    fn poll_accept(&mut self, context: &mut Context<'_>, budget: &mut usize) -> Poll<()> {
        while *budget > 0 {
            match ready!(self.connection.poll_accept(context)) {
                Some(Ok((request, mut respond))) => {
                    *budget -= 1;
                    if self.has_said_farewell() {
                        // It goes on as if it had not been told; a client that has may send the request again.
                        respond.send_reset(Reason::REFUSED_STREAM);
                        continue;
                    }
                    self.streams.push(Box::pin(serve_stream(Arc::clone(self.http), request, respond)));
                    if self.late {
                        self.go(context);
                    }
                }
                Some(Err(error)) => {
                    tracing::debug!(%error, "an HTTP/2 connection has failed");
                    return Poll::Ready(());
                }
                None => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }

    /// Whether any of them did something.
    fn run_streams(&mut self, context: &mut Context<'_>, budget: &mut usize) -> bool {
        let mut ran = false;
        while *budget > 0
            && let Poll::Ready(Some(end)) = self.streams.poll_next_unpin(context)
        {
            *budget -= 1;
            ran = true;
            if self.resets.count(end) {
                self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            }
        }
        ran
    }

    /// Once the chain is gone, no more streams are taken; those that are there finish.
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

    /// Whether the client has had its time since it was told to go.
    fn has_said_farewell(&self) -> bool {
        self.told_to_go.is_some_and(|told| told.elapsed() >= FAREWELL)
    }

    /// Ready when a client without streams has had its time.
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

/// One request.
///
/// What is done before the future begins is not part of it.
fn serve_stream(
    http: Arc<HttpConnection>,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) -> impl Future<Output = StreamEnd> {
    let began = Instant::now();
    let (head, body) = request.into_parts();
    let expects = head.headers.contains_key(header::EXPECT);
    let body = ClientBody::http2(body, &head.headers, &http.connection);
    if expects && !body.is_end_stream() {
        let mut go_on = Response::new(());
        *go_on.status_mut() = StatusCode::CONTINUE;
        let _ = respond.send_informational(go_on);
    }
    let request = Request::from_parts(head, body);
    async move {
        match answer(&http, request, &mut respond).await {
            // The client wants it no longer.
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

/// Why a response is not sent to its end.
enum Cut {
    /// The client has reset the stream, or is gone.
    ByClient,
    ByUs(Reason),
}

/// What the request comes to, informational responses sent meanwhile; `None` once the client has reset the stream.
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

/// Sends a response, as fast as the client takes it; one that takes nothing for so long is given up.
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
            // It may wait for the client's window here as well as anywhere.
            Ok(data) if body.is_end_stream() && data.len() <= SMALL => {
                drop(stream.send_data(data, true));
                return Ok(());
            }
            Ok(data) => {
                let last = body.is_end_stream();
                send_data(stream, data, last, &mut patience, limit).await?;
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

/// Sends data as the window opens, unless it stays shut for so long.
async fn send_data(
    stream: &mut SendStream<Bytes>,
    mut data: Bytes,
    last: bool,
    patience: &mut Patience,
    limit: Duration,
) -> Result<(), Cut> {
    stream.reserve_capacity(data.len());
    while !data.is_empty() {
        let mut room = stream.capacity();
        if room == 0 {
            room = poll_fn(|context| match stream.poll_capacity(context) {
                Poll::Ready(Some(Ok(room))) => Poll::Ready(Ok(room)),
                Poll::Ready(_) => Poll::Ready(Err(Cut::ByClient)),
                Poll::Pending => {
                    patience.poll_exhausted(context, limit).map(|()| Err(Cut::ByUs(Reason::CANCEL)))
                }
            })
            .await?;
            patience.renew();
        }
        let piece = data.split_to(room.min(data.len()));
        let ends = last && data.is_empty();
        stream.send_data(piece, ends).map_err(|_| Cut::ByClient)?;
    }
    Ok(())
}
