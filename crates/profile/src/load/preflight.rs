//! One connection before the load: checks that the server is reachable, presents a trusted certificate and supports
//! the offer.

use super::{
    Load, LoadError, Negotiated,
    connection::{reason, server_name},
};
use boring::{
    ssl::{HandshakeError, Ssl, SslVerifyMode},
    x509::X509VerifyError,
};
use std::{io, net::TcpStream, path::PathBuf};

/// Certificates that are trusted.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Certificates of the system's authorities.
    System,
    /// Certificates of the authorities in this PEM file.
    File(PathBuf),
    /// Any certificate.
    Any,
}

/// Reason not to start the load.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The server is unreachable, or does not respond in time.
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    /// The certificate is not trusted.
    #[error("the certificate is not trusted: {0}")]
    Untrusted(String),
    /// The file of authorities cannot be used.
    #[error("cannot read certificates from {file}: {reason}")]
    Authorities {
        /// Path of the file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// The handshake failed: no common version, group or cipher, or not a TLS server.
    #[error("the handshake failed: {0}")]
    Handshake(String),
    /// The load itself is invalid.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Performs one handshake with the chain verified, and returns the negotiated parameters.
pub fn preflight(load: &Load, trust: &Trust) -> Result<Negotiated, Refusal> {
    let name = load.names.first().map_or("", String::as_str);
    let mut context = load.offer.builder()?;
    match trust {
        Trust::System => context.set_default_verify_paths().map_err(LoadError::from)?,
        Trust::File(file) => {
            let refused = |reason: String| Refusal::Authorities { file: file.display().to_string(), reason };
            let pem = std::fs::read(file).map_err(|error| refused(error.to_string()))?;
            let authorities =
                quadrille_pem::certificates(&pem).map_err(|damage| refused(damage.to_string()))?;
            if authorities.is_empty() {
                return Err(refused("it contains no certificates".to_owned()));
            }
            for authority in authorities {
                context.cert_store_mut().add_cert(authority).map_err(LoadError::from)?;
            }
        }
        Trust::Any => {}
    }
    context.set_verify(if matches!(trust, Trust::Any) { SslVerifyMode::NONE } else { SslVerifyMode::PEER });
    let mut ssl = Ssl::new(&context.build()).map_err(LoadError::from)?;
    match (server_name(name), name.parse::<std::net::IpAddr>()) {
        (_, Ok(address)) => ssl.param_mut().set_ip(address),
        (server_name, Err(_)) => {
            let name = server_name.unwrap_or_default();
            ssl.set_hostname(name).and_then(|()| ssl.param_mut().set_host(name))
        }
    }
    .map_err(LoadError::from)?;

    let socket =
        TcpStream::connect_timeout(&load.target, load.connection_timeout).map_err(Refusal::Connect)?;
    socket.set_read_timeout(Some(load.connection_timeout)).map_err(Refusal::Connect)?;
    socket.set_write_timeout(Some(load.connection_timeout)).map_err(Refusal::Connect)?;
    match ssl.setup_connect(socket).handshake() {
        Ok(mut stream) => {
            let negotiated = Negotiated::from_ssl(stream.ssl());
            let _ = stream.shutdown();
            Ok(negotiated)
        }
        Err(HandshakeError::SetupFailure(errors)) => Err(LoadError::from(errors).into()),
        Err(HandshakeError::WouldBlock(_)) => Err(Refusal::Handshake("no response in time".to_owned())),
        Err(HandshakeError::Failure(failed)) => Err(match failed.ssl().verify_result() {
            Err(error) if error != X509VerifyError::INVALID_CALL && !matches!(trust, Trust::Any) => {
                Refusal::Untrusted(error.error_string().to_owned())
            }
            _ => Refusal::Handshake(reason(failed.error())),
        }),
    }
}
