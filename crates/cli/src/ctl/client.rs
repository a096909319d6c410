//! Requests to the admin API of a gateway, over a Unix socket or TCP.

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use quadrille_config::{Problem, values};
use serde_json::Value;
use std::{
    io::{self, ErrorKind},
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};

/// The socket of a gateway that systemd starts.
const SOCKET: &str = "/run/quadrille/admin.sock";

/// The default address of the admin pages.
const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9901);

/// Time limit of a request; a reload reads all certificates.
const PATIENCE: Duration = Duration::from_secs(300);

/// The gateway.
#[derive(clap::Args)]
pub(crate) struct Target {
    /// Unix socket of the gateway's admin API [default: /run/quadrille/admin.sock, if it exists].
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// Address of the gateway's admin API, instead of a socket [default: 127.0.0.1:9901].
    #[arg(long, value_name = "ADDRESS", global = true, conflicts_with = "socket", value_parser = address)]
    address: Option<SocketAddr>,
    /// The gateway's configuration file, which names its socket or address.
    #[arg(short, long, value_name = "FILE", global = true, conflicts_with_all = ["socket", "address"])]
    config: Option<PathBuf>,
}

/// A client of the admin API.
pub(crate) enum Client {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl Client {
    /// Finds the gateway.
    ///
    /// # Errors
    /// If the configuration cannot be read, or the gateway has no admin API by it.
    pub(crate) fn new(target: Target) -> Result<Self, Vec<String>> {
        match target {
            Target { socket: Some(path), .. } => Ok(Self::Unix(path)),
            Target { address: Some(address), .. } => Ok(Self::Tcp(address)),
            Target { config: Some(file), .. } => Self::of_configuration(&file),
            _ if Path::new(SOCKET).exists() => Ok(Self::Unix(SOCKET.into())),
            _ => Ok(Self::Tcp(ADDRESS)),
        }
    }

    fn of_configuration(file: &Path) -> Result<Self, Vec<String>> {
        let admin = quadrille_config::load(file)?.admin;
        let socket = admin.as_ref().and_then(|admin| admin.socket.as_ref());
        let address = admin.as_ref().and_then(|admin| admin.address);
        match (socket, address) {
            (Some(socket), _) => Ok(Self::Unix(socket.path.clone())),
            (None, Some(address)) if address.port() == 0 => Err(vec![format!(
                "{}: the kernel chooses the port of `admin`; give --address with the one in the log",
                file.display()
            )]),
            (None, Some(address)) => Ok(Self::Tcp(reachable(address))),
            (None, None) => Err(vec![format!(
                "{}: `admin` is off; set `admin: {{socket: PATH}}` and restart the gateway",
                file.display()
            )]),
        }
    }

    /// Requests a page. Returns its text.
    ///
    /// # Errors
    /// If the gateway is not reached, or refuses.
    pub(crate) fn text(&self, page: &str) -> Result<String, Vec<String>> {
        self.request(Method::GET, page)
    }

    /// Requests a page in JSON. Returns its text and its value.
    ///
    /// # Errors
    /// If the gateway is not reached, or refuses.
    pub(crate) fn json(&self, page: &str) -> Result<(String, Value), Vec<String>> {
        let text = self.request(Method::GET, page)?;
        let value = serde_json::from_str(&text)
            .map_err(|_| vec![format!("{}: {page} is not a page of Quadrille's", self.shown())])?;
        Ok((text, value))
    }

    /// Requests an action with these parameters. Returns the response's text.
    ///
    /// # Errors
    /// If the gateway is not reached, or refuses.
    pub(crate) fn post(&self, action: &str, parameters: &[(&str, &str)]) -> Result<String, Vec<String>> {
        let encoded =
            |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
        let parameters = parameters.iter().map(encoded).collect::<Vec<_>>().join("&");
        self.request(Method::POST, &format!("{action}?{parameters}"))
    }

    fn request(&self, method: Method, path: &str) -> Result<String, Vec<String>> {
        let failed = |error: &dyn std::fmt::Display| vec![format!("{}: {error}", self.shown())];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(&error))?;
        let unreached = |error: io::Error| self.unreached(&error);
        let exchange = async {
            let exchanged = match self {
                Self::Unix(socket) => {
                    exchange(UnixStream::connect(socket).await.map_err(unreached)?, method, path).await
                }
                Self::Tcp(address) => {
                    exchange(TcpStream::connect(address).await.map_err(unreached)?, method, path).await
                }
            };
            exchanged.map_err(|error| format!("{}: {error}", self.shown()))
        };
        let result = runtime.block_on(async { timeout(PATIENCE, exchange).await });
        let (status, text) = match result {
            Ok(result) => result.map_err(|problem| vec![problem])?,
            Err(_) => return Err(failed(&format!("no response within {PATIENCE:?}"))),
        };
        match status.is_success() {
            true => Ok(text),
            // An older gateway does not know the action.
            false if status == StatusCode::NOT_FOUND && text.starts_with("no such page") => {
                Err(failed(&"the gateway is of a version without this command"))
            }
            false => Err(text.lines().map(str::to_owned).collect()),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Unix(path) => path.display().to_string(),
            Self::Tcp(address) => format!("http://{address}"),
        }
    }

    fn unreached(&self, error: &io::Error) -> String {
        let remedy = match (self, error.kind()) {
            (Self::Unix(_), ErrorKind::PermissionDenied) => {
                "run this as root or as the gateway's user, or see `users` and `group` of `admin.socket`"
            }
            (Self::Unix(_), _) => {
                "is the gateway running, with `admin: {socket: ...}` and this path? --address reaches it by TCP"
            }
            (Self::Tcp(_), _) => {
                "is the gateway running, with `admin` at this address? give --socket, --address or --config"
            }
        };
        format!("cannot reach the gateway at {}: {error}; {remedy}", self.shown())
    }
}

async fn exchange<S>(stream: S, method: Method, path: &str) -> hyper::Result<(StatusCode, String)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap_or_default();
    request.headers_mut().insert(header::HOST, header::HeaderValue::from_static("localhost"));
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    driver.abort();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

/// Parses an address, with or without `http://`.
fn address(text: &str) -> Result<SocketAddr, Problem> {
    let plain = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    values::admin_address(plain)
}

/// Returns the address at which this machine reaches itself.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip().is_unspecified() {
        true if address.is_ipv4() => SocketAddr::new(ADDRESS.ip(), address.port()),
        true => SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), address.port()),
        false => address,
    }
}
