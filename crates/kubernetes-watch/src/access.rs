//! Address of the API server, and credentials for it. They are read again for each request and connection, so that
//! tokens and certificates can be renewed.

use base64ct::{Base64, Encoding};
use http::{HeaderValue, uri::Scheme};
use kube::{Config, config::Kubeconfig};
use secrecy::ExposeSecret;
use std::{io, path::PathBuf};
use zeroize::Zeroizing;

/// Access to an API server.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// `None` for the service account of a pod.
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// A client certificate with its key, in PEM.
pub(crate) struct Identity {
    pub(crate) chain: Vec<u8>,
    pub(crate) key: Zeroizing<Vec<u8>>,
}

impl Access {
    /// Reads the address and the credentials.
    ///
    /// # Errors
    /// If they cannot be read, or have a setting that is not supported.
    pub(crate) fn read(&self) -> Result<Config, String> {
        let config = match &self.kubeconfig {
            Some(file) => {
                let failed =
                    |error: &dyn std::fmt::Display| format!("kubeconfig {}: {error}", file.display());
                let read = Kubeconfig::read_from(file).map_err(|error| failed(&error))?;
                Config::try_from(read).map_err(|error| failed(&error))?
            }
            None => Config::incluster().map_err(|error| {
                format!("the service account of a pod: {error}; outside a cluster, give --kubeconfig FILE")
            })?,
        };
        if config.accept_invalid_certs {
            return Err("kubeconfig: `insecure-skip-tls-verify` is not supported, as any other host on the network could pass \
                        for the API server: give `certificate-authority`"
                .to_owned());
        }
        if config.proxy_url.is_some() {
            return Err("kubeconfig: `proxy-url` is not supported: remove it".to_owned());
        }
        let host = config.cluster_url.host().unwrap_or_default();
        let is_local = ["localhost", "127.0.0.1", "[::1]"].contains(&host);
        if config.cluster_url.scheme() != Some(&Scheme::HTTPS) && !is_local {
            return Err(format!(
                "the API server {}: without TLS, only a local address can be used",
                config.cluster_url
            ));
        }
        Ok(config)
    }

    /// Returns the `Authorization` header of a token, if the access has one.
    ///
    /// # Errors
    /// If the access or its file of a token cannot be read.
    pub(crate) fn authorization(&self) -> Result<Option<HeaderValue>, String> {
        let config = self.read()?;
        let token = match (&config.auth_info.token, &config.auth_info.token_file) {
            (Some(token), _) => Zeroizing::new(token.expose_secret().to_owned()),
            (None, Some(file)) => {
                let read = std::fs::read_to_string(file).map(Zeroizing::new);
                read.map_err(|error| format!("the token {file}: {error}"))?
            }
            (None, None) => return Ok(None),
        };
        let header = Zeroizing::new(format!("Bearer {}", token.trim()));
        let mut value = HeaderValue::from_str(&header)
            .map_err(|_| "the token has characters that a header cannot have".to_owned())?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

/// Returns the client certificate of an access, if it has one.
///
/// # Errors
/// If a part of it is missing, or cannot be read.
pub(crate) fn identity(config: &Config) -> io::Result<Option<Identity>> {
    let own = &config.auth_info;
    let key_data = own.client_key_data.as_ref().map(ExposeSecret::expose_secret);
    let chain = part(
        "client-certificate",
        own.client_certificate_data.as_deref(),
        own.client_certificate.as_deref(),
    )?;
    let key = part("client-key", key_data, own.client_key.as_deref())?;
    match (chain, key) {
        (Some(chain), Some(key)) => Ok(Some(Identity { chain: chain.to_vec(), key })),
        (None, None) => Ok(None),
        _ => Err(io::Error::other("kubeconfig: `client-certificate` and `client-key` belong together")),
    }
}

fn part(name: &str, data: Option<&str>, file: Option<&str>) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    match (data, file) {
        (Some(data), _) => {
            let decoded = Base64::decode_vec(data.trim()).map(|bytes| Some(Zeroizing::new(bytes)));
            decoded.map_err(|_| io::Error::other(format!("kubeconfig: `{name}-data` is not base64")))
        }
        (None, Some(file)) => {
            let failed = |error: io::Error| io::Error::new(error.kind(), format!("{file}: {error}"));
            std::fs::read(file).map(|bytes| Some(Zeroizing::new(bytes))).map_err(failed)
        }
        (None, None) => Ok(None),
    }
}
