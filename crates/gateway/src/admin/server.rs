//! Socket and connections of the admin endpoint, which are limited in number, size and time.

use super::{Admin, Page, host_check::HostCheck};
use crate::{
    admission::{Holder, Places},
    handover::Inherited,
    listener::socket,
    process,
};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use quadrille_config::{Diagnostic, model};
use std::{
    convert::Infallible,
    io,
    net::{self, SocketAddr},
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::AbortHandle,
    time::{sleep, timeout},
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

/// The open endpoint.
pub(crate) struct AdminEndpoint {
    /// Configured address.
    asked: SocketAddr,
    /// Bound address, with the actual port in place of 0.
    pub(crate) address: SocketAddr,
    socket: net::TcpListener,
    accepting: AbortHandle,
}

impl AdminEndpoint {
    /// Duplicates the socket for a successor process.
    ///
    /// # Errors
    /// Fails if file descriptors are exhausted.
    pub(crate) fn share(&self) -> io::Result<(SocketAddr, net::TcpListener)> {
        Ok((self.asked, self.socket.try_clone()?))
    }

    /// Stops accepting connections; new ones belong to another process.
    pub(crate) fn close(self) {
        self.accepting.abort();
    }
}

impl Admin {
    /// Opens the endpoint, unless it is disabled, on an inherited socket or a new one. Recording of the history
    /// starts in any case.
    pub(crate) fn start(
        self: &Arc<Self>,
        settings: Option<&model::Admin>,
        inherited: &mut Inherited,
    ) -> Result<Option<AdminEndpoint>, Vec<Diagnostic>> {
        let admin = Arc::clone(self);
        tokio::spawn(async move { admin.remember().await });
        let Some(settings) = settings else { return Ok(None) };
        let socket = match inherited.take_admin(settings.address).map_err(process::start_failure)? {
            Some(socket) => socket,
            None => socket::bind_one(settings.address, &settings.place).map_err(|problem| vec![problem])?,
        };
        let address = socket.local_addr().map_err(process::start_failure)?;
        let kept = socket.try_clone().map_err(process::start_failure)?;
        let listener = TcpListener::from_std(socket).map_err(process::start_failure)?;
        let hosts = Arc::new(HostCheck::new(&settings.hosts));
        let accepting = tokio::spawn(accept_all(listener, Arc::clone(self), hosts)).abort_handle();
        Ok(Some(AdminEndpoint { asked: settings.address, address, socket: kept, accepting }))
    }
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

/// Serves connections until the process ends.
async fn accept_all(listener: TcpListener, admin: Arc<Admin>, hosts: Arc<HostCheck>) {
    let places = Places::new(MOST_CONNECTIONS);
    loop {
        match listener.accept().await {
            Ok((tcp, peer)) => {
                let (admin, hosts) = (Arc::clone(&admin), Arc::clone(&hosts));
                let connection = Arc::new(AdminConnection::default());
                let holder = Arc::clone(&connection) as Arc<dyn Holder>;
                let place = places.wait(peer.ip(), &holder).await;
                let served = Arc::clone(&connection);
                let serving = tokio::spawn(async move {
                    serve(tcp, &admin, &hosts, &served).await;
                    drop(place);
                });
                let _ = connection.task.set(serving.abort_handle());
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an admin connection");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(tcp: TcpStream, admin: &Admin, hosts: &HostCheck, served: &AdminConnection) {
    let service = service_fn(async |request| {
        served.answering.fetch_add(1, Ordering::Relaxed);
        let answer = answer(admin, hosts, &request).await;
        served.answering.fetch_sub(1, Ordering::Relaxed);
        Ok::<_, Infallible>(answer)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME)
        .max_buf_size(MOST_HEADER)
        .half_close(true)
        .serve_connection(TokioIo::new(tcp), service);
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

async fn answer(admin: &Admin, hosts: &HostCheck, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let page = if !hosts.accepts(request.uri(), request.headers()) {
        Page::text(StatusCode::MISDIRECTED_REQUEST, ANOTHER_HOST).into_response()
    } else if request.method() == Method::POST {
        act(admin, request).await
    } else {
        admin.answer(request.uri()).await
    };
    page.map(Full::from)
}

/// Rejects requests with an `Origin`: web pages of other sites may make a browser send them.
async fn act(admin: &Admin, request: &Request<Incoming>) -> Response<String> {
    if request.headers().contains_key(header::ORIGIN) {
        return Page::text(StatusCode::FORBIDDEN, FROM_A_BROWSER).into_response();
    }
    match admin.act(request.uri()) {
        Some(page) => page,
        None => admin.answer(request.uri()).await,
    }
}
