//! The admin endpoint's socket and connections, which are bounded in number, size and time.

use super::{Admin, Page, host_check::HostCheck};
use crate::{handover::Inherited, listener::socket, process};
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
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::AbortHandle,
    time::{sleep, timeout},
};

/// Connections at a time. More wait until one of these has ended.
const MOST_CONNECTIONS: usize = 64;

/// How long the next request may take to come with the whole of its header, on a new connection or an idle one.
const REQUEST_TIME: Duration = Duration::from_secs(30);

/// How long a connection may last, whatever happens on it: one that is in use is made again.
const CONNECTION_TIME: Duration = Duration::from_secs(300);

/// How long a connection may then take for what is under way.
const LAST_ANSWER: Duration = Duration::from_secs(10);

/// Bytes that are read ahead of a request, and so of its header at most. Nobody reads its body.
const MOST_HEADER: usize = 16 * 1024;

const ANOTHER_HOST: &str = "This address answers for IP addresses, localhost and the names in `admin.hosts` of the \
     configuration; the request is for another host.\n";

const FROM_A_BROWSER: &str = "A browser may look here, and change nothing.\n";

/// The endpoint while it is open.
pub(crate) struct AdminEndpoint {
    /// The address that was asked for.
    asked: SocketAddr,
    /// The same with a real port in place of 0.
    pub(crate) address: SocketAddr,
    socket: net::TcpListener,
    accepting: AbortHandle,
}

impl AdminEndpoint {
    /// Its socket, for a process that comes after this one.
    ///
    /// # Errors
    /// If descriptors run out.
    pub(crate) fn share(&self) -> io::Result<(SocketAddr, net::TcpListener)> {
        Ok((self.asked, self.socket.try_clone()?))
    }

    /// Whoever comes is another process's.
    pub(crate) fn close(self) {
        self.accepting.abort();
    }
}

impl Admin {
    /// Opens the endpoint, unless it is switched off, on a socket that is there already or on one of its own; begins to
    /// remember what it will show in any case.
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

/// Answers until the process ends.
async fn accept_all(listener: TcpListener, admin: Arc<Admin>, hosts: Arc<HostCheck>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((tcp, _)) => {
                let (admin, hosts) = (Arc::clone(&admin), Arc::clone(&hosts));
                tokio::spawn(async move {
                    serve(tcp, &admin, &hosts).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an admin connection");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(tcp: TcpStream, admin: &Admin, hosts: &HostCheck) {
    let service = service_fn(async |request| Ok::<_, Infallible>(answer(admin, hosts, &request).await));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME)
        .max_buf_size(MOST_HEADER)
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
        tracing::debug!(%error, "an admin connection");
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

/// Pages of other sites may send a browser here, which then says where it comes from.
async fn act(admin: &Admin, request: &Request<Incoming>) -> Response<String> {
    if request.headers().contains_key(header::ORIGIN) {
        return Page::text(StatusCode::FORBIDDEN, FROM_A_BROWSER).into_response();
    }
    match admin.act(request.uri()) {
        Some(page) => page,
        None => admin.answer(request.uri()).await,
    }
}
