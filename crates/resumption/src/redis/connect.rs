//! Opening a connection to Redis.

use super::options::RedisOptions;
use crate::FleetError;
use boring::{
    ssl::{SslConnector, SslMethod},
    x509::store::X509StoreBuilder,
};
use quadrille_config::model::{RedisAddress, RedisScheme};
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, Pipeline,
    RedisConnectionInfo, RedisFuture, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinHandle,
};

/// Timeout of TCP connect, TLS handshake and login together.
const CONNECT: Duration = Duration::from_secs(2);
/// Response timeout for requests that no handshake waits for.
const ANSWER: Duration = Duration::from_secs(2);

/// A connection to one Redis or to a cluster; clones share it.
#[derive(Clone)]
pub(crate) enum Connection {
    One { redis: MultiplexedConnection, _driver: Arc<Driver> },
    Cluster(ClusterConnection),
}

/// The task that drives the connection. It ends with the last clone of its connection, even if responses are
/// outstanding.
pub(crate) struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    pub(super) async fn open(address: &RedisAddress, options: &RedisOptions) -> Result<Self, FleetError> {
        let opening = async {
            match address.scheme {
                RedisScheme::Plain => one(address, options, tcp(address).await?).await,
                RedisScheme::Tls => one(address, options, tls(address, options).await?).await,
                RedisScheme::Cluster => cluster(address, options).await,
            }
        };
        tokio::time::timeout(CONNECT, opening)
            .await
            .unwrap_or(Err(FleetError::Unreachable("no response".into())))
    }
}

async fn tcp(address: &RedisAddress) -> Result<TcpStream, FleetError> {
    let [(host, port), ..] = &address.nodes[..] else {
        return Err(FleetError::Unreachable("no host".into()));
    };
    let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    Ok(stream)
}

async fn tls(
    address: &RedisAddress,
    options: &RedisOptions,
) -> Result<tokio_boring::SslStream<TcpStream>, FleetError> {
    let mut connector = SslConnector::builder(SslMethod::tls()).map_err(unreachable)?;
    quadrille_signature_algorithms::verify_all_servers(&mut connector).map_err(unreachable)?;
    if let Some(ca) = &options.ca {
        connector.set_cert_store_builder(trusted(ca)?);
    }
    let configuration = connector.build().configure().map_err(unreachable)?;
    let host = address.nodes.first().map_or("", |(host, _)| host.as_str());
    tokio_boring::connect(configuration, host, tcp(address).await?).await.map_err(unreachable)
}

/// Reads the certificates of the CAs that are trusted in place of the system's.
fn trusted(ca: &Path) -> Result<X509StoreBuilder, FleetError> {
    let mut store = X509StoreBuilder::new().map_err(unreachable)?;
    for certificate in quadrille_pem::read_certificates(ca).map_err(unreachable)? {
        store.add_cert(&certificate).map_err(unreachable)?;
    }
    Ok(store)
}

async fn one<S>(address: &RedisAddress, options: &RedisOptions, stream: S) -> Result<Connection, FleetError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER));
    let login = login(address, options);
    let (redis, driver) = MultiplexedConnection::new_with_config(&login, stream, config).await?;
    Ok(Connection::One { redis, _driver: Arc::new(Driver(tokio::spawn(driver))) })
}

async fn cluster(address: &RedisAddress, options: &RedisOptions) -> Result<Connection, FleetError> {
    let login = login(address, options);
    let node = |(host, port): &(String, u16)| -> Result<ConnectionInfo, FleetError> {
        let info = ConnectionAddr::Tcp(host.clone(), *port).into_connection_info()?;
        Ok(info.set_redis_settings(login.clone()))
    };
    let nodes: Vec<_> = address.nodes.iter().map(node).collect::<Result<_, _>>()?;
    let client = ClusterClient::builder(nodes)
        .connection_timeout(CONNECT)
        .response_timeout(ANSWER)
        .retries(2)
        .build()?;
    Ok(Connection::Cluster(client.get_async_connection().await?))
}

fn login(address: &RedisAddress, options: &RedisOptions) -> RedisConnectionInfo {
    let mut info = RedisConnectionInfo::default().set_db(i64::from(address.database)).set_skip_set_lib_name();
    if let Some(user) = &address.user {
        info = info.set_username(user);
    }
    if let Some(password) = options.password.as_ref().or(address.password.as_ref()) {
        info = info.set_password(password.as_str());
    }
    info
}

fn unreachable(error: impl std::fmt::Display) -> FleetError {
    FleetError::Unreachable(error.to_string())
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One { redis, .. } => redis.req_packed_command(command),
            Self::Cluster(cluster) => cluster.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One { redis, .. } => redis.req_packed_commands(commands, offset, count),
            Self::Cluster(cluster) => cluster.req_packed_commands(commands, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One { redis, .. } => redis.get_db(),
            Self::Cluster(cluster) => cluster.get_db(),
        }
    }
}
