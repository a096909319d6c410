//! Fetched OCSP responses of a chain for clients that request its trust anchor.

use super::{FETCHES, responder::Responder};
use crate::support::{Configuration, Gateway, document, tls_client};
use boring::ssl::{Ssl, SslStream};
use boring_sys as ffi;
use std::net::TcpStream;

/// The trust anchor 32473.1, with its length.
const REQUESTED: [u8; 5] = [4, 0x81, 0xfd, 0x59, 1];

#[test]
fn a_fetched_response_is_stapled() {
    let responder = Responder::start();
    let pair = responder.issue("localhost", "");
    let listener = format!(
        "{{address: \"127.0.0.1:0\", certificates: [{{chain: {}, key: {}, experimental: {{trust_anchor: \
         32473.1}}}}], respond: ok, tls: {{ocsp_stapling: on}}}}",
        pair.chain.display(),
        pair.key.display()
    );
    let file = Configuration::new(&document(&[listener], ""));
    let gateway = Gateway::with_config(&file.path(), 1);
    gateway.wait_for_metric(FETCHES, &["good"], |count| count == 1.0);
    for requests_it in [true, false] {
        let context = tls_client(|builder| {
            // SAFETY: the context is live, and the list has the length that is passed.
            let ok = unsafe {
                let (ids, length) = (REQUESTED.as_ptr(), REQUESTED.len());
                ffi::SSL_CTX_set1_requested_trust_anchors(builder.as_ptr(), ids, length)
            };
            assert_eq!(ok, 1);
            if requests_it {
                builder.enable_ocsp_stapling();
            }
        });
        let mut ssl = Ssl::new(&context).expect("a session");
        ssl.set_hostname("localhost").expect("a name");
        let tcp = TcpStream::connect(gateway.address(0)).expect("a connection");
        let mut stream = SslStream::new(ssl, tcp).expect("a stream");
        stream.connect().unwrap_or_else(|error| panic!("{error}\n{}", gateway.log()));
        let response = stream.ssl().ocsp_status();
        assert_eq!(response.is_some_and(|der| der.len() > 100), requests_it, "{response:?}");
    }
}
