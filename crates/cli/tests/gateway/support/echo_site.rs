//! Gateway in front of a server that echoes requests, over all HTTP versions.

use super::{
    Certificates, Configuration, Gateway, Http3Client, curl_status, document, echo_server, http3::Sending,
    listener,
};

/// Gateway with one listener, for `localhost`.
pub struct EchoSite {
    pub certificates: Certificates,
    pub gateway: Gateway,
    _file: Configuration,
}

impl EchoSite {
    /// Starts a gateway with these keys of its listener, in which `CA` is the path of the clients' authority.
    pub fn new(keys: &str) -> Self {
        Self::with(keys, "")
    }

    /// Starts a gateway with these keys of its listener and these upstreams, besides `web`, which echoes requests.
    pub fn with(keys: &str, upstreams: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let keys = keys.replace("CA", &certificates.ca().display().to_string());
        let web = format!("web: {{servers: [\"{}\"]}}{upstreams}", echo_server());
        let file = Configuration::new(&document(&[listener(&pair, &format!("http3: on, {keys}"))], &web));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file }
    }

    /// Returns the statuses over HTTP/1.1, HTTP/2 and HTTP/3.
    pub fn statuses(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> [String; 3] {
        let lines: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let status = |version| {
            let lines = lines.iter().flat_map(|line| ["-H", line.as_str()]);
            let arguments: Vec<_> = [version, "-X", method].into_iter().chain(lines).collect();
            curl_status(&self.gateway, &self.certificates, &arguments, path)
        };
        let mut client = Http3Client::new(&self.certificates).connect(self.gateway.address(0));
        let third = client.exchange(&Sending { method, path, headers, body: b"" });
        [status("--http1.1"), status("--http2"), third.status.to_string()]
    }
}
