//! HTTPS requests to the authority over BoringSSL, so that there is only one TLS library.

use crate::{
    AcmeError,
    one_request::{self, text},
};
use boring::{
    ssl::{SslConnector, SslMethod, SslVersion},
    x509::store::X509StoreBuilder,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use quadrille_config::model::Acme;
use std::{
    future::Future,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::net::TcpStream;

/// Time limit of one request, including the connection.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum size of a response body; certificate chains are a few kilobytes.
const LARGEST: usize = 1 << 20;

/// HTTPS client of one authority.
#[derive(Clone)]
pub(crate) struct Https {
    connector: SslConnector,
    refused_for: Arc<Mutex<Option<Duration>>>,
}

impl Https {
    /// Trusts the CAs that the account's settings name.
    pub(crate) fn new(acme: &Acme) -> Result<Self, AcmeError> {
        let ca = acme.ca_file.as_ref().map(|(file, _)| file.as_path());
        Ok(Self { connector: connector(ca, "acme.ca_file")?, refused_for: Arc::default() })
    }

    /// Takes the `Retry-After` of the last rejection, if there was one (RFC 8555 section 6.6).
    pub(crate) fn take_refused_for(&self) -> Option<Duration> {
        self.refused_for.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Sends one request on its own connection: an order takes about a dozen, and there is an order every few weeks.
    pub(crate) async fn send<B>(&self, request: Request<B>) -> Result<Response<Full<Bytes>>, String>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync,
    {
        let exchange = self.exchange(request);
        tokio::time::timeout(PATIENCE, exchange)
            .await
            .unwrap_or_else(|_| Err("no response within 30 s".to_owned()))
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
        let after = Some(response.headers()).filter(|_| refused);
        let after = after.and_then(|headers| retry_after(headers, SystemTime::now()));
        if after.is_some() {
            *self.refused_for.lock().unwrap_or_else(PoisonError::into_inner) = after;
        }
    }
}

/// TLS client context that trusts these CAs, or the system's. `key` is the configuration key that names them.
pub(crate) fn connector(ca: Option<&Path>, key: &str) -> Result<SslConnector, AcmeError> {
    let mut builder = SslConnector::builder(SslMethod::tls())?;
    builder.set_min_proto_version(Some(SslVersion::TLS1_2))?;
    quadrille_signature_algorithms::verify_all_servers(&mut builder)?;
    if let Some(file) = ca {
        let cas = quadrille_pem::read_certificates(file)
            .map_err(|problem| AcmeError::File(format!("`{key}` {problem}")))?;
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

/// Reads a response with its body.
async fn whole(response: Response<Incoming>) -> Result<Response<Full<Bytes>>, String> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, LARGEST).collect().await.map_err(text)?;
    Ok(Response::from_parts(head, Full::new(body.to_bytes())))
}

/// Converts a request to origin-form (RFC 9112 section 3.2.1), and returns it with its host and port.
fn origin_form<B>(request: Request<B>) -> Result<(String, u16, Request<B>), String> {
    let (mut head, body) = request.into_parts();
    let no_url = || format!("{} is not an https:// URL", head.uri);
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

/// Returns the wait of `Retry-After`, in seconds or until a date (RFC 9110 section 10.2.3). A date is relative
/// to the authority's own clock, if the response has a `Date`.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse::<u32>().unwrap_or(u32::MAX).into()));
    }
    let date = |text: &str| httpdate::parse_http_date(text.trim()).ok();
    let now = headers.get(header::DATE).and_then(|value| date(value.to_str().ok()?)).unwrap_or(now);
    Some(date(text)?.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (value, date, expected) in [
            ("120", None, Some(120)),
            ("0", None, Some(0)),
            ("99999999999999999999", None, Some(u64::from(u32::MAX))),
            ("Sun, 06 Nov 1994 08:51:37 GMT", None, Some(120)),
            ("Sunday, 06-Nov-94 08:51:37 GMT", None, Some(120)),
            ("Sun Nov  6 08:51:37 1994", None, Some(120)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some("yesterday"), Some(120)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", None, Some(0)),
            ("-5", None, None),
            ("soon", None, None),
            ("", None, None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(value));
            if let Some(date) = date {
                headers.insert(header::DATE, HeaderValue::from_static(date));
            }
            assert_eq!(retry_after(&headers, now).map(|wait| wait.as_secs()), expected, "{value}");
        }
    }
}
