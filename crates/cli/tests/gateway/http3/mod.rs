//! HTTP/3: requests as over HTTP/2, and features specific to QUIC.

mod browser;
mod chains;
mod connections;
mod handshakes;
mod hostile;
mod large;
mod loss;
mod other_client;
mod reload;
mod requests;
mod round_trips;

use crate::support::{
    Certificates, Configuration, Gateway, Http3Client, Pair, document, http3::Http3, listener,
};

/// A gateway that serves HTTP/3 with these listener keys and upstreams, and its client.
struct Served {
    certificates: Certificates,
    pair: Pair,
    gateway: Gateway,
    file: Configuration,
    client: Http3Client,
}

impl Served {
    fn new(keys: &str, upstreams: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.rsa(2048, &["localhost"]);
        let file =
            Configuration::new(&document(&[listener(&pair, &format!("http3: on, {keys}"))], upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        let client = Http3Client::new(&certificates);
        Self { certificates, pair, gateway, file, client }
    }

    #[track_caller]
    fn connect(&mut self) -> Http3 {
        self.client.connect(self.gateway.address(0))
    }
}
