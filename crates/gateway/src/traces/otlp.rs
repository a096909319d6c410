//! OTLP: export requests and their responses (<https://opentelemetry.io/docs/specs/otlp/>).

use crate::upstream::{RequestBody, exchange::grpc_call};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri, Version, header};
use opentelemetry::KeyValue;
use opentelemetry_proto::{
    tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    transform::{
        common::tonic::ResourceAttributesWithSchema, trace::tonic::group_spans_by_resource_and_scope,
    },
};
use opentelemetry_sdk::{Resource, trace::SpanData};
use prost::Message;
use quadrille_config::model::{SpanCollector, TracingProtocol};

const METHOD: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Parts that all messages to a collector have in common.
pub(super) struct Form {
    protocol: TracingProtocol,
    path: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: std::time::Duration,
    resource: ResourceAttributesWithSchema,
}

impl Form {
    /// Creates the form. `environment` are headers that the model may override.
    pub(super) fn new(model: &SpanCollector, environment: Vec<(HeaderName, HeaderValue)>) -> Self {
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder_empty()
            .with_service_name(model.service.clone())
            .with_attribute(version)
            .build();
        Self {
            protocol: model.protocol,
            path: model.path.clone(),
            headers: environment.into_iter().chain(model.headers.iter().cloned()).collect(),
            timeout: model.timeout,
            resource: ResourceAttributesWithSchema::from(&resource),
        }
    }

    /// Encodes the spans as one message.
    pub(super) fn message(&self, spans: Vec<SpanData>) -> ExportTraceServiceRequest {
        ExportTraceServiceRequest { resource_spans: group_spans_by_resource_and_scope(spans, &self.resource) }
    }

    /// Builds the request with a message, for an endpoint with this authority.
    pub(super) fn request(
        &self,
        message: &ExportTraceServiceRequest,
        http2: bool,
        scheme: &str,
        authority: &str,
    ) -> Result<Request<RequestBody>, String> {
        let made = match self.protocol {
            TracingProtocol::Grpc if !http2 => {
                return Err("the endpoint does not support HTTP/2, which gRPC requires".to_owned());
            }
            TracingProtocol::Grpc => grpc_call::request(scheme, authority, METHOD, self.timeout, message),
            TracingProtocol::Http => self.post(message, http2, scheme, authority),
        };
        // Errors are not reported in detail, because a header may contain a secret.
        let mut request = made.map_err(|_| "cannot build the request".to_owned())?;
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }

    fn post(
        &self,
        message: &ExportTraceServiceRequest,
        http2: bool,
        scheme: &str,
        authority: &str,
    ) -> Result<Request<RequestBody>, http::Error> {
        let uri = Uri::builder().path_and_query(self.path.as_str());
        let uri = if http2 { uri.scheme(scheme).authority(authority) } else { uri };
        let body = Bytes::from(message.encode_to_vec());
        let request = Request::post(uri.build()?)
            .version(if http2 { Version::HTTP_2 } else { Version::HTTP_11 })
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .header(header::CONTENT_LENGTH, body.len());
        let request = if http2 { request } else { request.header(header::HOST, authority) };
        request.body(RequestBody::whole(body))
    }

    /// Returns how many spans the collector has rejected, if it has accepted the message at all.
    pub(super) fn answer(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        trailers: Option<&HeaderMap>,
        body: &[u8],
    ) -> Result<usize, String> {
        if !status.is_success() {
            return Err(format!("the collector responds with {}", status.as_u16()));
        }
        let message = match self.protocol {
            TracingProtocol::Http => Some(body),
            TracingProtocol::Grpc => {
                let status = grpc_call::status(headers, trailers).map(HeaderValue::as_bytes);
                match status {
                    Some(b"0") => grpc_call::message(body),
                    Some(status) => {
                        return Err(format!("the call ends with status {}", status.escape_ascii()));
                    }
                    None => return Err("no gRPC status in the response".to_owned()),
                }
            }
        };
        // Any other response of this status means that the spans were accepted.
        let said = message.and_then(|message| ExportTraceServiceResponse::decode(message).ok());
        let partial = said.and_then(|said| said.partial_success);
        Ok(partial.map_or(0, |partial| usize::try_from(partial.rejected_spans).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;
    use quadrille_config::model::{CollectorServers, Place};

    #[test]
    fn answers_say_what_was_taken() {
        let servers = CollectorServers::Upstream { name: "c".into(), authority: "c".into() };
        let mut model = SpanCollector::new(servers, Place::builtin());
        let refused = ExportTracePartialSuccess { rejected_spans: 2, error_message: String::new() };
        let partial = ExportTraceServiceResponse { partial_success: Some(refused) }.encode_to_vec();
        let status = |text: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static("grpc-status"), HeaderValue::from_static(text))])
        };
        let none = HeaderMap::new();
        let grpc = Form::new(&model, Vec::new());
        let framed = [&[0, 0, 0, 0, partial.len() as u8][..], &partial].concat();
        assert_eq!(grpc.answer(StatusCode::OK, &none, Some(&status("0")), &framed), Ok(2));
        assert_eq!(grpc.answer(StatusCode::OK, &status("0"), None, b""), Ok(0));
        for (code, headers, said) in [
            (StatusCode::OK, status("16"), "status 16"),
            (StatusCode::OK, none.clone(), "no gRPC"),
            (StatusCode::FORBIDDEN, none.clone(), "403"),
        ] {
            let error = grpc.answer(code, &headers, None, b"").expect_err(said);
            assert!(error.contains(said), "{error}");
        }
        model.protocol = TracingProtocol::Http;
        let http = Form::new(&model, Vec::new());
        assert_eq!(http.answer(StatusCode::OK, &none, None, &partial), Ok(2));
        assert_eq!(http.answer(StatusCode::ACCEPTED, &none, None, b"\xff"), Ok(0));
    }
}
