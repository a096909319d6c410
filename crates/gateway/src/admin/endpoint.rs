//! Sockets of the admin endpoint: a TCP address, and a Unix socket.

use super::{
    Admin,
    host_check::HostCheck,
    peer::{Admitted, Peer},
    server::{AdminServer, Rights},
};
use crate::{
    handover::{Inherited, Sockets},
    listener::socket,
    process::{start_failure, unix_socket},
};
use quadrille_config::{
    Diagnostic,
    model::{self, Problem},
};
use std::{
    fmt::Display,
    fs, io,
    net::{self, SocketAddr},
    os::unix::{fs::MetadataExt, net::UnixListener as StdUnixListener},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::{TcpListener, UnixListener},
    task::AbortHandle,
    time::sleep,
};

/// The open endpoint.
pub(crate) struct AdminEndpoint {
    tcp: Option<TcpSocket>,
    unix: Option<UnixSocket>,
    accepting: Vec<AbortHandle>,
}

struct TcpSocket {
    /// Configured address.
    configured: SocketAddr,
    /// Bound address, with the actual port in place of 0.
    bound: SocketAddr,
    socket: net::TcpListener,
}

struct UnixSocket {
    path: PathBuf,
    socket: StdUnixListener,
    /// Device and inode of the file.
    file: (u64, u64),
    /// Whether the file is removed at the end, because no other process has the socket.
    owned: bool,
}

impl AdminEndpoint {
    /// Returns the bound address.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().map(|tcp| tcp.bound)
    }

    /// Returns the path of the Unix socket.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.unix.as_ref().map(|unix| unix.path.as_path())
    }

    /// Duplicates the sockets for a successor process.
    ///
    /// # Errors
    /// Fails if file descriptors are exhausted.
    pub(crate) fn share(&self, sockets: &mut Sockets) -> io::Result<()> {
        if let Some(tcp) = &self.tcp {
            sockets.admin = Some((tcp.configured, tcp.socket.try_clone()?));
        }
        if let Some(unix) = &self.unix {
            sockets.admin_unix = Some((unix.path.clone(), unix.socket.try_clone()?));
        }
        Ok(())
    }

    /// Takes over the file of an inherited Unix socket from the predecessor, which no longer needs it.
    pub(crate) fn own(&mut self) {
        self.unix.iter_mut().for_each(|unix| unix.owned = true);
    }

    /// Stops accepting connections; new ones belong to another process.
    pub(crate) fn close(mut self) {
        self.accepting.iter().for_each(AbortHandle::abort);
        self.unix.iter_mut().for_each(|unix| unix.owned = false);
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if self.owned && identity(&self.path).is_ok_and(|file| file == self.file) {
            // If this fails, the file stays, and the next process replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Admin {
    /// Opens the endpoint, unless it is disabled, on inherited sockets or new ones. Recording of the history starts in
    /// any case.
    pub(crate) fn start(
        self: &Arc<Self>,
        settings: Option<&model::Admin>,
        inherited: &mut Inherited,
    ) -> Result<Option<AdminEndpoint>, Vec<Diagnostic>> {
        let admin = Arc::clone(self);
        tokio::spawn(async move { admin.remember().await });
        let Some(settings) = settings else { return Ok(None) };
        let mut endpoint = AdminEndpoint { tcp: None, unix: None, accepting: Vec::new() };
        let server = || Arc::new(AdminServer::new(self, HostCheck::new(&settings.hosts)));
        if let Some(address) = settings.address {
            let (tcp, listener) = open_tcp(address, settings, inherited)?;
            let rights = if settings.actions { Rights::Act } else { Rights::Read };
            endpoint.accepting.push(tokio::spawn(accept_tcp(listener, server(), rights)).abort_handle());
            endpoint.tcp = Some(tcp);
        }
        if let Some(settings) = &settings.socket {
            let (unix, listener, admitted) = open_unix(settings, inherited)?;
            endpoint.accepting.push(tokio::spawn(accept_unix(listener, server(), admitted)).abort_handle());
            endpoint.unix = Some(unix);
        }
        Ok(Some(endpoint))
    }
}

fn open_tcp(
    address: SocketAddr,
    settings: &model::Admin,
    inherited: &mut Inherited,
) -> Result<(TcpSocket, TcpListener), Vec<Diagnostic>> {
    let socket = match inherited.take_admin(address).map_err(start_failure)? {
        Some(socket) => socket,
        None => socket::bind_one(address, &settings.place).map_err(|problem| vec![problem])?,
    };
    let bound = socket.local_addr().map_err(start_failure)?;
    let kept = socket.try_clone().map_err(start_failure)?;
    let listener = TcpListener::from_std(socket).map_err(start_failure)?;
    Ok((TcpSocket { configured: address, bound, socket: kept }, listener))
}

fn open_unix(
    settings: &model::AdminSocket,
    inherited: &mut Inherited,
) -> Result<(UnixSocket, UnixListener, Admitted), Vec<Diagnostic>> {
    let path = &settings.path;
    let failed = |problem: Problem| vec![Diagnostic::new(&settings.place, problem)];
    let mode = match (&settings.access.group, settings.users.as_slice()) {
        (_, [_, ..]) => 0o666,
        (Some(_), []) => 0o660,
        (None, []) => 0o600,
    };
    let taken = inherited.take_admin_unix(path);
    let owned = taken.is_none();
    let socket = match taken {
        Some(socket) => unix_socket::permit(path, &settings.access, mode).map(|()| socket),
        None => unix_socket::bind(path, &settings.access, mode),
    };
    let socket = socket.map_err(|error| failed(error.problem(path)))?;
    let admitted = Admitted::new(settings).map_err(start_failure)?;
    socket.set_nonblocking(true).map_err(start_failure)?;
    let kept = socket.try_clone().map_err(start_failure)?;
    let listener = UnixListener::from_std(socket).map_err(start_failure)?;
    let file = identity(path).map_err(start_failure)?;
    Ok((UnixSocket { path: path.clone(), socket: kept, file, owned }, listener, admitted))
}

/// Returns device and inode of a file.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Serves connections until the process ends.
async fn accept_tcp(listener: TcpListener, server: Arc<AdminServer>, rights: Rights) {
    loop {
        match listener.accept().await {
            Ok((stream, client)) => server.serve(stream, client.ip(), rights).await,
            Err(error) => pause_after(error).await,
        }
    }
}

/// Serves connections of admitted users until the process ends; others receive a 403 response.
async fn accept_unix(listener: UnixListener, server: Arc<AdminServer>, admitted: Admitted) {
    loop {
        let accepted = listener.accept().await;
        match accepted.and_then(|(stream, _)| Peer::of(&stream).map(|peer| (stream, peer))) {
            Ok((stream, peer)) => {
                let rights = if admitted.has(&peer) { Rights::Act } else { Rights::Denied(peer.user()) };
                server.serve(stream, peer.as_client().into(), rights).await;
            }
            Err(error) => pause_after(error).await,
        }
    }
}

async fn pause_after(error: impl Display) {
    tracing::warn!(%error, "cannot accept an admin connection");
    sleep(Duration::from_millis(100)).await;
}
