//! The TLS handshake of an accepted connection.

use super::{
    connection_error::{self, ConnectionError},
    filter_chain::{ChainConfig, FilterChain},
    protocol_detection,
};
use crate::{
    admission::Visit,
    connection::{ClientCertificate, Connection},
    telemetry::{metrics, sampling},
    tls::{
        ChainTls, ClientRejection, HandshakeState, ResumptionState, Transport,
        handshake::{acme_challenge, early_data, key_exchange},
        resumption::session_clock,
    },
};
use boring::ssl::{NameType, SslRef};
use quadrille_handshake_timing::Marks;
use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};
use tokio::io::AsyncWriteExt;
use tokio_boring::{SslStream, SslStreamBuilder};

/// Completes the TLS handshake, and records it.
pub(super) async fn accept(
    mut transport: Transport,
    tls: &ChainTls,
    chain: &FilterChain,
    config: &ChainConfig,
    ends: (SocketAddr, SocketAddr),
    began: Instant,
    visit: Arc<Visit>,
) -> Result<(SslStream<Transport>, Connection), ConnectionError> {
    protocol_detection::expect_tls(&mut transport).await.map_err(ConnectionError::NotTls)?;
    let mut ssl =
        tls.session(transport.tcp(), visit).map_err(|error| ConnectionError::Tls(error.to_string()))?;
    let mut sample = config.sampling.begin(&mut ssl, began);
    let state = HandshakeState::of(&ssl);
    let accepting = HandshakeState::driven(state, SslStreamBuilder::new(ssl, transport).accept());
    let accepting = session_clock::own(accepting);
    let mut stream = sampling::measured(sample.as_mut(), accepting)
        .await
        .map_err(|error| connection_error::classify(&error))?;
    if acme_challenge::is_validation(stream.ssl()) {
        let _ = stream.shutdown().await;
        return Err(ConnectionError::NameValidation);
    }
    if !tls.admits(stream.ssl()) {
        return Err(ConnectionError::Rejected(ClientRejection::Pin));
    }
    let connection = complete(stream.ssl_mut(), chain, config, ends, began, sample.as_ref());
    Ok((stream, connection))
}

/// Records a completed handshake; returns the connection's properties.
pub(super) fn complete(
    ssl: &mut SslRef,
    chain: &FilterChain,
    config: &ChainConfig,
    ends: (SocketAddr, SocketAddr),
    began: Instant,
    sample: Option<&Marks>,
) -> Connection {
    let connection = describe(ssl, config, ends, began);
    metrics::handshake(&connection);
    metrics::resumption(ResumptionState::outcome(ssl));
    let exchange = key_exchange::completed(ssl);
    if let Some((group, by_engine)) = exchange {
        metrics::key_exchange(group, by_engine.is_some());
    }
    if let Some(sample) = sample {
        let by_engine = exchange.and_then(|(_, by_engine)| by_engine);
        let cpu = config.sampling.record(sample, ssl, &connection, by_engine);
        if let (Some(cpu), Some(visit)) = (cpu, HandshakeState::visit(ssl)) {
            visit.measured(connection.resumed, cpu);
        }
    }
    if let Some(visit) = HandshakeState::visit(ssl) {
        visit.complete();
    }
    if let Some(accepted) = early_data::accepted(ssl) {
        metrics::early_data(accepted);
    }
    chain.counters.handshakes.add();
    if connection.resumed {
        chain.counters.resumed.add();
    }
    connection
}

fn describe(
    ssl: &SslRef,
    config: &ChainConfig,
    (client, local): (SocketAddr, SocketAddr),
    began: Instant,
) -> Connection {
    Connection {
        tls: true,
        sni: ssl.servername(NameType::HOST_NAME).map(str::to_owned),
        certificate: ClientCertificate::of(ssl),
        version: ssl.version_str(),
        cipher: ssl.current_cipher().and_then(boring::ssl::SslCipherRef::standard_name).unwrap_or("none"),
        resumed: ssl.session_reused(),
        early: AtomicBool::new(early_data::in_progress(ssl)),
        handshake: began.elapsed(),
        key: HandshakeState::key_result(ssl).and_then(Result::ok),
        ..Connection::plain(client, local, &config.timeouts)
    }
}
