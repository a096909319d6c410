//! One stream to one control plane, reopened until its subscriptions end. The protocol logic is in
//! [`stream`](crate::stream).

use crate::{
    Dialect, Interest, Limits, Rejection, ResourceType, Update,
    backoff::Backoff,
    proto,
    resource_type::{AGGREGATED, methods},
    stream::{Request, Response, Stream},
    transport::ControlPlane,
};
use http::uri::PathAndQuery;
use prost::Message;
use std::{
    collections::BTreeMap,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Streaming, client::Grpc, metadata::MetadataMap, transport::Channel};

/// Receives the updates of a control plane. Its functions run on the client's task.
pub trait UpdateHandler: Send + 'static {
    /// Applies the valid resources of an update and returns the rejections of the others. Existing resources must not
    /// be dropped because of a rejection. The next response of the same stream waits for the returned future.
    fn handle(&mut self, update: &Update) -> impl Future<Output = Vec<Rejection>> + Send;

    /// Called after the stream has ended because its subscriptions have.
    fn ended(&mut self);

    /// Called when the connection is up, or down for the given reason.
    fn connection_changed(&mut self, state: Result<(), &str>);
}

/// Subscriptions at a control plane, which can be changed at any time, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Subscriptions(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    wanted: Mutex<BTreeMap<ResourceType, Interest>>,
    changed: Notify,
    ended: AtomicBool,
}

impl Subscriptions {
    /// Replaces the subscriptions of a resource type.
    pub fn subscribe(&self, kind: ResourceType, interest: Interest) {
        let mut wanted = self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.get(&kind) != Some(&interest) {
            wanted.insert(kind, interest);
            self.0.changed.notify_one();
        }
    }

    /// Ends all subscriptions for good: the stream closes after its handler has processed the received updates.
    pub fn end(&self) {
        self.0.ended.store(true, Ordering::Relaxed);
        self.0.changed.notify_one();
    }

    fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::Relaxed)
    }

    /// Waits for the duration, or until the subscriptions end.
    async fn wait(&self, duration: Duration) {
        let until_end = async {
            while !self.has_ended() {
                self.0.changed.notified().await;
            }
        };
        let _ = tokio::time::timeout(duration, until_end).await;
    }

    fn current(&self) -> BTreeMap<ResourceType, Interest> {
        self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Settings of a stream.
#[derive(Clone)]
pub struct Client {
    /// The control plane to connect to.
    pub control_plane: ControlPlane,
    /// Variant of the transport protocol.
    pub dialect: Dialect,
    /// Resource type of a single-type service; `None` for the aggregated service.
    pub only: Option<ResourceType>,
    /// Identity of this node.
    pub node: proto::Node,
    /// Limits on responses.
    pub limits: Limits,
}

impl Client {
    /// Keeps the stream open until [`Subscriptions::end`]. Each failure is reported to the handler and followed by a
    /// retry with backoff.
    pub async fn run(self, subscriptions: Subscriptions, mut handler: impl UpdateHandler) {
        let mut stream = Stream::new(self.dialect, self.node.clone(), self.limits);
        let mut backoff = Backoff::CONNECTIONS;
        loop {
            let lost = match self.dialect {
                Dialect::StateOfTheWorld => {
                    self.connection::<proto::DiscoveryRequest, proto::DiscoveryResponse>(
                        &mut stream,
                        &subscriptions,
                        &mut handler,
                        &mut backoff,
                    )
                    .await
                }
                Dialect::Delta => {
                    self.connection::<proto::DeltaDiscoveryRequest, proto::DeltaDiscoveryResponse>(
                        &mut stream,
                        &subscriptions,
                        &mut handler,
                        &mut backoff,
                    )
                    .await
                }
            };
            if subscriptions.has_ended() {
                return handler.ended();
            }
            handler.connection_changed(Err(&lost));
            let wait = backoff.wait(fastrand::f64());
            tracing::warn!(control_plane = self.control_plane.name, %lost, ?wait, "no stream to the control plane");
            subscriptions.wait(wait).await;
        }
    }

    /// Runs one connection until it ends, and returns the reason.
    async fn connection<Q, S>(
        &self,
        stream: &mut Stream,
        subscriptions: &Subscriptions,
        handler: &mut impl UpdateHandler,
        backoff: &mut Backoff,
    ) -> String
    where
        Q: Message + TryFrom<Request> + 'static,
        S: Message + Default + Into<Response> + 'static,
    {
        let channel = match self.control_plane.channel().await {
            Ok(channel) => channel,
            Err(error) => return chain(&error),
        };
        stream.connected();
        handler.connection_changed(Ok(()));
        let (requests, outgoing) = mpsc::channel(QUEUED);
        // A control plane may send nothing, not even response headers, before it has a response.
        let mut opening = pin!(self.open::<Q, S>(channel, outgoing));
        let mut opened = None;
        loop {
            if subscriptions.has_ended() {
                return "no subscription is left".to_owned();
            }
            apply_subscriptions(stream, subscriptions);
            // Requests are not read before the stream is open, but the channel has room for all that can be sent
            // until then.
            if let Err(reason) = send::<Q>(stream, &requests).await {
                return reason;
            }
            let message = tokio::select! {
                () = subscriptions.0.changed.notified() => continue,
                () = until(stream.next_deadline()) => continue,
                message = message(&mut opened, opening.as_mut()) => message,
            };
            match message {
                Ok(response) => {
                    backoff.reset();
                    if let Some(update) = stream.receive(response.into()) {
                        let rejections = handler.handle(&update).await;
                        stream.answer(Instant::now(), &update, &rejections);
                    }
                }
                Err(reason) => return reason,
            }
        }
    }

    async fn open<Q, S>(&self, channel: Channel, outgoing: mpsc::Receiver<Q>) -> Result<Streaming<S>, String>
    where
        Q: Message + 'static,
        S: Message + Default + 'static,
    {
        let mut grpc = Grpc::new(channel).max_decoding_message_size(self.limits.message);
        grpc.ready().await.map_err(|error| chain(&error))?;
        let methods = self.only.map_or(AGGREGATED, methods);
        let method = PathAndQuery::from_static(methods[usize::from(self.dialect == Dialect::Delta)]);
        let mut request = tonic::Request::new(ReceiverStream::new(outgoing));
        *request.metadata_mut() = self.metadata()?;
        let codec = tonic_prost::ProstCodec::<Q, S>::default();
        let response = grpc.streaming(request, method, codec).await;
        Ok(response.map_err(|status| explain(&status))?.into_inner())
    }

    fn metadata(&self) -> Result<MetadataMap, String> {
        let mut headers = http::HeaderMap::new();
        for (name, value) in &self.control_plane.metadata {
            let name: http::HeaderName =
                name.parse().map_err(|_| format!("initial_metadata: {name} is not a valid header name"))?;
            let value =
                value.parse().map_err(|_| format!("initial_metadata: the value of {name} is not valid"))?;
            headers.append(name, value);
        }
        Ok(MetadataMap::from_headers(headers))
    }
}

/// Returns the next message, or the reason for its absence. Cancellation safe.
async fn message<S>(
    opened: &mut Option<Streaming<S>>,
    opening: Pin<&mut impl Future<Output = Result<Streaming<S>, String>>>,
) -> Result<S, String> {
    if opened.is_none() {
        *opened = Some(opening.await?);
    }
    let Some(incoming) = opened else { return Err("the stream is not open".to_owned()) };
    match incoming.message().await {
        Ok(Some(response)) => Ok(response),
        Ok(None) => Err("the control plane has closed the stream".to_owned()),
        Err(status) => Err(explain(&status)),
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

fn apply_subscriptions(stream: &mut Stream, subscriptions: &Subscriptions) {
    for (kind, interest) in subscriptions.current() {
        let surplus = stream.subscribe(kind, interest);
        if surplus > 0 {
            tracing::error!(%kind, surplus, "more resources are referenced than can be subscribed to");
        }
    }
}

async fn send<Q: TryFrom<Request>>(stream: &mut Stream, requests: &mpsc::Sender<Q>) -> Result<(), String> {
    while let Some(request) = stream.next_request(Instant::now()) {
        let Ok(request) = Q::try_from(request) else { continue };
        // A control plane that no longer reads is treated as lost.
        let sent = tokio::time::timeout(SEND_TIMEOUT, requests.send(request)).await;
        match sent {
            Ok(Ok(())) => (),
            Ok(Err(_)) => return Err("the control plane has closed the stream".to_owned()),
            Err(_) => return Err(format!("nothing read for {} s", SEND_TIMEOUT.as_secs())),
        }
    }
    Ok(())
}

fn explain(status: &tonic::Status) -> String {
    let source = std::error::Error::source(status).map(|source| format!(" ({})", chain(source)));
    format!("{:?}: {}{}", status.code(), status.message(), source.unwrap_or_default())
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}

/// Capacity for requests in transit: at most one subscription and one ACK or NACK per resource type.
const QUEUED: usize = 16;
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
