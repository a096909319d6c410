//! Requests to the authority over BoringSSL, so that there is one TLS library.

use crate::{
    AcmeError,
    one_request::{self, text},
};
use boring::{
    ssl::{SslConnector, SslMethod, SslVersion},
    x509::{X509, store::X509StoreBuilder},
};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use quadrille_config::model::Acme;
use std::{
    future::Future,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::net::TcpStream;

/// For one request with all that belongs to it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Chains of certificates are a few kilobytes.
const LARGEST: usize = 1 << 20;

/// A client of one authority.
#[derive(Clone)]
pub(crate) struct Https {
    connector: SslConnector,
    refused_for: Arc<Mutex<Option<Duration>>>,
}

impl Https {
    /// Trusts what the account says.
    pub(crate) fn new(acme: &Acme) -> Result<Self, AcmeError> {
        let ca = acme.ca_file.as_ref().map(|(file, _)| file.as_path());
        Ok(Self { connector: connector(ca, "acme.ca_file")?, refused_for: Arc::default() })
    }

    /// How long the authority wants to be left alone, as its last refusal says (RFC 8555 section 6.6).
    pub(crate) fn take_refused_for(&self) -> Option<Duration> {
        self.refused_for.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// One request, on a connection of its own: there are a dozen in an order, and an order in weeks.
    pub(crate) async fn send<B>(&self, request: Request<B>) -> Result<Response<Full<Bytes>>, String>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync,
    {
        let exchange = self.exchange(request);
        tokio::time::timeout(PATIENCE, exchange).await.unwrap_or_else(|_| Err("no answer in 30 s".to_owned()))
    }

    async fn exchange<B>(&self, request: Request<B>) -> Result<Response<Full<Bytes>>, String>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync,
    {
        let (host, port, request) = origin_form(request)?;
        let at = |error: &dyn std::fmt::Display| format!("{host}:{port}: {error}");
        let tcp = TcpStream::connect((host.as_str(), port)).await.map_err(|error| at(&error))?;
        let configuration = self.connector.configure().map_err(|error| at(&error))?;
        let tls = tokio_boring::connect(configuration, &host, tcp).await.map_err(|error| at(&error))?;
        let response = one_request::send(tls, request, whole).await.map_err(|error| at(&error))?;
        self.note_refusal(&response);
        Ok(response)
    }

    fn note_refusal(&self, response: &Response<Full<Bytes>>) {
        let refused =
            matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let after = response.headers().get(header::RETRY_AFTER).filter(|_| refused).and_then(seconds);
        if after.is_some() {
            *self.refused_for.lock().unwrap_or_else(PoisonError::into_inner) = after;
        }
    }
}

/// TLS towards servers that lead to these CAs, or to the system's. `key` is where the configuration names them.
pub(crate) fn connector(ca: Option<&Path>, key: &str) -> Result<SslConnector, AcmeError> {
    let mut builder = SslConnector::builder(SslMethod::tls())?;
    builder.set_min_proto_version(Some(SslVersion::TLS1_2))?;
    if let Some(file) = ca {
        let unusable = |problem: String| AcmeError::File(format!("`{key}` {}: {problem}", file.display()));
        let pem = std::fs::read(file).map_err(|error| unusable(error.to_string()))?;
        let cas = X509::stack_from_pem(&pem).map_err(|_| unusable("no certificates in PEM".to_owned()))?;
        let mut store = X509StoreBuilder::new()?;
        cas.iter().try_for_each(|ca| store.add_cert(ca))?;
        builder.set_cert_store_builder(store);
    }
    Ok(builder.build())
}

impl HttpClient for Https {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let this = self.clone();
        Box::pin(async move {
            let response = this.send(request).await.map_err(|problem| Error::Other(problem.into()))?;
            Ok(BytesResponse::from(response))
        })
    }
}

/// A response with its body.
async fn whole(response: Response<Incoming>) -> Result<Response<Full<Bytes>>, String> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, LARGEST).collect().await.map_err(text)?;
    Ok(Response::from_parts(head, Full::new(body.to_bytes())))
}

/// As HTTP/1.1 sends it to the server itself (RFC 9112 section 3.2.1), with where that is.
fn origin_form<B>(request: Request<B>) -> Result<(String, u16, Request<B>), String> {
    let (mut head, body) = request.into_parts();
    let no_url = || format!("{} is no URL with https://", head.uri);
    if head.uri.scheme_str() != Some("https") {
        return Err(no_url());
    }
    let authority = head.uri.authority().ok_or_else(no_url)?.clone();
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let value = HeaderValue::from_str(authority.as_str()).map_err(|_| no_url())?;
    head.headers.insert(header::HOST, value);
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = path.parse::<Uri>().map_err(|error| error.to_string())?;
    Ok((host, authority.port_u16().unwrap_or(443), Request::from_parts(head, body)))
}

/// Authorities send seconds; a date counts as an hour (RFC 9110 section 10.2.3).
fn seconds(value: &HeaderValue) -> Option<Duration> {
    const HOUR: u64 = 3600;
    let text = value.to_str().ok()?.trim();
    Some(Duration::from_secs(text.parse().unwrap_or(HOUR)))
}
