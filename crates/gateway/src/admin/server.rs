//! Connections of the admin endpoint, which are limited in number, size and time.

use super::{Admin, Page, host_check::HostCheck};
use crate::admission::{Holder, Places};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    net::IpAddr,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::AbortHandle,
    time::timeout,
};

/// Maximum number of concurrent connections. Further ones evict connections without a request in progress, oldest
/// first, so that silent clients do not delay health checks.
const MOST_CONNECTIONS: usize = 64;

/// Time limit for the complete header of the next request, on a new or an idle connection.
const REQUEST_TIME: Duration = Duration::from_secs(30);

/// Time limit of a connection, even one in use; the client has to reconnect.
const CONNECTION_TIME: Duration = Duration::from_secs(300);

/// Additional time for a request in progress when a connection reaches its limit.
const LAST_ANSWER: Duration = Duration::from_secs(10);

/// Maximum number of bytes read ahead of a request, and thus of its header. Bodies are not read.
const MOST_HEADER: usize = 16 * 1024;

const ANOTHER_HOST: &str = "This address serves requests for IP addresses, localhost and the names in \
     `admin.hosts` of the configuration; the request is for another host.\n";

const FROM_A_BROWSER: &str = "Requests from web pages may read, but not change anything.\n";

/// Rights of the client of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    /// Request pages.
    Read,
    /// Request pages and perform actions.
    Act,
    /// Nothing: the socket does not admit this user.
    Denied(u32),
}

/// Serves the connections of one socket.
pub(super) struct AdminServer {
    admin: Arc<Admin>,
    hosts: HostCheck,
    places: Arc<Places>,
}

/// A connection of the endpoint.
#[derive(Default)]
struct AdminConnection {
    task: OnceLock<AbortHandle>,
    /// Number of requests in progress.
    answering: AtomicUsize,
}

impl Holder for AdminConnection {
    fn yields(&self, _: Instant) -> bool {
        self.task.get().is_some() && self.answering.load(Ordering::Relaxed) == 0
    }

    fn evict(&self) {
        self.task.get().into_iter().for_each(AbortHandle::abort);
    }
}

impl AdminServer {
    /// Serves these pages, requested for these hosts.
    pub(super) fn new(admin: &Arc<Admin>, hosts: HostCheck) -> Self {
        Self { admin: Arc::clone(admin), hosts, places: Places::new(MOST_CONNECTIONS) }
    }

    /// Serves a connection on a task of its own, once it has a place among the others.
    pub(super) async fn serve<S>(self: &Arc<Self>, stream: S, client: IpAddr, rights: Rights)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connection = Arc::new(AdminConnection::default());
        let holder = Arc::clone(&connection) as Arc<dyn Holder>;
        let place = self.places.wait(client, &holder).await;
        let (server, served) = (Arc::clone(self), Arc::clone(&connection));
        let serving = tokio::spawn(async move {
            server.exchange(stream, rights, &served).await;
            drop(place);
        });
        let _ = connection.task.set(serving.abort_handle());
    }

    async fn exchange<S>(&self, stream: S, rights: Rights, served: &AdminConnection)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let service = service_fn(async |request| {
            served.answering.fetch_add(1, Ordering::Relaxed);
            let answer = self.answer(rights, &request).await;
            served.answering.fetch_sub(1, Ordering::Relaxed);
            Ok::<_, Infallible>(answer)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(REQUEST_TIME)
            .max_buf_size(MOST_HEADER)
            .half_close(true)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let ended = match timeout(CONNECTION_TIME, connection.as_mut()).await {
            Ok(ended) => ended,
            Err(_) => {
                connection.as_mut().graceful_shutdown();
                timeout(LAST_ANSWER, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "admin connection failed");
        }
    }

    async fn answer(&self, rights: Rights, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let page = if let Rights::Denied(user) = rights {
            Page::text(StatusCode::FORBIDDEN, &not_admitted(user)).into_response()
        } else if !self.hosts.accepts(request.uri(), request.headers()) {
            Page::text(StatusCode::MISDIRECTED_REQUEST, ANOTHER_HOST).into_response()
        } else if request.method() == Method::POST {
            self.act(request, rights == Rights::Act).await
        } else {
            self.admin.answer(request.uri()).await
        };
        page.map(Full::from)
    }

    /// Rejects requests with an `Origin`: web pages of other sites may make a browser send them.
    async fn act(&self, request: &Request<Incoming>, may_act: bool) -> Response<String> {
        if request.headers().contains_key(header::ORIGIN) {
            return Page::text(StatusCode::FORBIDDEN, FROM_A_BROWSER).into_response();
        }
        match self.admin.act(request.uri(), may_act).await {
            Some(page) => page,
            None => self.admin.answer(request.uri()).await,
        }
    }
}

fn not_admitted(user: u32) -> String {
    format!(
        "the user with the id {user} is not admitted; add it to `users` of `admin.socket` in the configuration, or \
         make it a member of the `group` there\n"
    )
}
