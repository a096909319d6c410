//! The request to the operator's service that decides whether a certificate may be ordered for a name.

use crate::{
    https::connector,
    one_request::{self, text},
};
use boring::ssl::SslConnector;
use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::Empty;
use hyper::body::Incoming;
use quadrille_config::model::AcmeOnDemand;
use std::time::Duration;
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(5);

/// Client of that service.
#[derive(Default)]
pub(crate) struct Asker {
    /// Created on first use, because it reads all CAs of the system.
    tls: Option<SslConnector>,
}

impl Asker {
    /// Sends `GET URL?domain=NAME`. Returns whether the status is 200; any other response denies the name.
    pub(crate) async fn may_be_ordered(
        &mut self,
        settings: &AcmeOnDemand,
        name: &str,
    ) -> Result<bool, String> {
        let asked = tokio::time::timeout(PATIENCE, self.status(settings, name)).await;
        Ok(asked.unwrap_or_else(|_| Err("no response within 5 s".to_owned()))? == StatusCode::OK)
    }

    async fn status(&mut self, settings: &AcmeOnDemand, name: &str) -> Result<StatusCode, String> {
        let uri: Uri = settings.ask.parse().map_err(text)?;
        let authority = uri.authority().ok_or("not a URL")?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let separator = if uri.query().is_some() { '&' } else { '?' };
        // Names contain no character that requires percent-encoding.
        let request = Request::get(format!("{path}{separator}domain={name}"))
            .header(header::HOST, authority.as_str())
            .header(header::CONNECTION, "close")
            .body(Empty::<Bytes>::new())
            .map_err(text)?;
        let is_https = uri.scheme_str() == Some("https");
        let port = authority.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let tcp = TcpStream::connect((host, port)).await.map_err(text)?;
        if !is_https {
            return one_request::send(tcp, request, status_of).await;
        }
        let tls = self.tls(settings)?.configure().map_err(text)?;
        let stream = tokio_boring::connect(tls, host, tcp).await.map_err(text)?;
        one_request::send(stream, request, status_of).await
    }

    fn tls(&mut self, settings: &AcmeOnDemand) -> Result<&SslConnector, String> {
        if self.tls.is_none() {
            let made = connector(
                settings.ca_file.as_ref().map(|(file, _)| file.as_path()),
                "acme.on_demand.ca_file",
            );
            self.tls = Some(made.map_err(text)?);
        }
        self.tls.as_ref().ok_or_else(|| "TLS is unavailable".to_owned())
    }
}

async fn status_of(response: Response<Incoming>) -> Result<StatusCode, String> {
    Ok(response.status())
}
