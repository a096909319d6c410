//! Requests to the API server: adds the token, and follows which watches are open.

use crate::{
    access::Access,
    connector::ApiConnector,
    watches::{OpenWatch, Watches},
};
use http::{Request, Response, header::AUTHORIZATION};
use http_body::{Frame, SizeHint};
use hyper::body::{Bytes, Incoming};
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client,
    client::{Body, ConfigExt},
};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tower::{BoxError, ServiceBuilder};

/// Creates a client. Must be called in a runtime.
///
/// # Errors
/// If the access cannot be read.
pub(crate) fn client(access: &Access, watches: Watches) -> Result<(Client, String), String> {
    let mut config = access.read()?;
    let namespace = config.default_namespace.clone();
    // Added for each request, by `Transport`.
    config.auth_info.token = None;
    config.auth_info.token_file = None;
    let other = config.auth_layer().map_err(|error| error.to_string())?;
    let http = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PINGS)
        .http2_keep_alive_timeout(LONGEST_PING)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(ApiConnector { access: access.clone() });
    let transport = Transport { access: access.clone(), http, watches };
    let service = ServiceBuilder::new().layer(config.base_uri_layer()).option_layer(other).service(transport);
    Ok((Client::new(service, namespace.clone()), namespace))
}

#[derive(Clone)]
struct Transport {
    access: Access,
    http: legacy::Client<ApiConnector, Body>,
    watches: Watches,
}

impl tower::Service<Request<Body>> for Transport {
    type Response = Response<WatchedBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let Self { access, http, watches } = self.clone();
        Box::pin(async move {
            let watched = watched(request.uri());
            if let Some(token) = access.authorization()? {
                request.headers_mut().insert(AUTHORIZATION, token);
            }
            let response = tokio::time::timeout(LONGEST_RESPONSE, http.request(request)).await;
            let response = response.map_err(|_| "the API server does not respond")?.map_err(explained)?;
            let watched = watched.filter(|_| response.status().is_success());
            let open = watched.map(|path| watches.open(path, Instant::now()));
            Ok(response.map(|body| WatchedBody { body, open }))
        })
    }
}

/// Returns the path of a request that opens a watch.
fn watched(uri: &http::Uri) -> Option<String> {
    let is_watch = uri.query()?.split('&').any(|one| matches!(one, "watch=true" | "watch=1"));
    is_watch.then(|| uri.path().to_owned())
}

/// Adds the cause, which hyper's client leaves out of its text.
fn explained(error: legacy::Error) -> BoxError {
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    cause.map_or_else(|| error.into(), Into::into)
}

/// Body of a response.
struct WatchedBody {
    body: Incoming,
    open: Option<OpenWatch>,
}

impl http_body::Body for WatchedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.open = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

const PINGS: Duration = Duration::from_secs(15);
const LONGEST_PING: Duration = Duration::from_secs(10);
/// Time until the head of a response; lists of tens of thousands of objects take seconds.
const LONGEST_RESPONSE: Duration = Duration::from_secs(60);
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
