use super::*;
use crate::upstream::{
    balance::endpoint::Endpoints, connect::connector::ServerStream, tls::credentials::Credentials,
};
use quadrille_config::model;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};

/// A SETTINGS frame (RFC 9113 section 6.5).
const EMPTY_SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

fn upstream(set: impl FnOnce(&mut model::Upstream)) -> Arc<Upstream> {
    let mut model = model::Upstream::new(Vec::new(), model::Place::builtin());
    set(&mut model);
    let upstream = Upstream::new("u", &model, Endpoints::new(), &[Credentials::default()], Vec::new());
    let Ok(upstream) = upstream else { panic!("an upstream") };
    Arc::new(upstream)
}

/// Returns whether a connection to this host is kept for the next request.
async fn stays(pool: &Arc<ConnectionPool>, upstream: &Arc<Upstream>, host: &str) -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let _server = listener.accept().await.unwrap();
    let key = PeerKey::of_host(host);
    let place = pool.place(key.clone(), upstream);
    pool.put_back(Http1Connection::new(ServerStream::Plain(stream), place));
    pool.take(&key).is_some()
}

/// Returns whether an HTTP/2 connection to this host is kept for the next request.
async fn stays_with_http2(pool: &Arc<ConnectionPool>, upstream: &Arc<Upstream>, host: &str) -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    server.write_all(&EMPTY_SETTINGS).await.unwrap();
    let connection = Http2Connection::new(ServerStream::Plain(stream)).await.unwrap();
    pool.keep(PeerKey::of_host(host), upstream, connection);
    drop(server);
    pool.lock().get(&PeerKey::of_host(host)).is_some_and(|peer| !peer.http2.is_empty())
}

#[tokio::test]
async fn names_that_clients_choose_do_not_fill_it() {
    for (upstream, bounded) in [
        (upstream(|model| model.host_from_request = true), true),
        (upstream(|model| model.proxy_protocol = ProxyProtocolOut::V2), true),
        (upstream(|_| ()), false),
    ] {
        let pool = ConnectionPool::new();
        let place = |host: usize| pool.place(PeerKey::of_host(&host.to_string()), &upstream);
        let _places: Vec<_> = (1..MOST_PEERS).map(place).collect();
        assert!(stays(&pool, &upstream, "the last").await);
        assert!(stays_with_http2(&pool, &upstream, "the last").await);
        assert_eq!(stays(&pool, &upstream, "one too many").await, !bounded);
        assert_eq!(stays_with_http2(&pool, &upstream, "and one more").await, !bounded);
    }
}
