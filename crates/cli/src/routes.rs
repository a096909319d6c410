//! `quadrille routes`.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use quadrille_config::model::{Chain, Gateway, Listener};
use quadrille_gateway::{ExplainedRequest, ExplainedStep, RouteExplanation, explain_route};
use std::path::PathBuf;

/// Explain how requests are routed.
#[derive(clap::Subcommand)]
pub(crate) enum Routes {
    Explain(Explain),
}

/// Show which route a request takes, and why it does not take the others.
///
/// Reads the configuration file, and selects the route as the gateway does; no request is sent, and no certificate or
/// upstream is read. Rules that change headers are not applied.
#[derive(clap::Args)]
pub(crate) struct Explain {
    /// URL of the request, such as https://example.com/api?q=1.
    url: Uri,
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Method of the request.
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: Method,
    /// Header of the request, in the form 'Name: value'. May be repeated.
    #[arg(long = "header", value_name = "HEADER", value_parser = header_line)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Address or port of the listener [default: by scheme, port and host of the URL].
    #[arg(long, value_name = "ADDRESS")]
    listener: Option<String>,
}

impl Routes {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        match self {
            Self::Explain(explain) => explain.run(),
        }
    }
}

impl Explain {
    fn run(self) -> Result<(), Vec<String>> {
        let model = quadrille_config::load(&self.config)?;
        let tls = match self.url.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(vec!["the URL has no scheme; write https://HOST/PATH".to_owned()]),
        };
        let (listener, chain) = self.chain(&model, tls).map_err(|problem| vec![problem])?;
        let Some(http) = chain.http() else { return Ok(()) };
        let headers: HeaderMap = self.all_headers();
        let authority = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let request = ExplainedRequest {
            authority: authority
                .or(self.url.authority().map(http::uri::Authority::as_str))
                .unwrap_or_default(),
            method: &self.method,
            path: self.url.path(),
            query: self.url.query(),
            headers: &headers,
            tls,
        };
        println!("listener {} ({})", listener.address, chain.place);
        show(&explain_route(http, &request));
        Ok(())
    }

    fn all_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
        headers
    }

    /// Returns the listener that receives the request, and its chain for the host.
    fn chain<'m>(&self, model: &'m Gateway, tls: bool) -> Result<(&'m Listener, &'m Chain), String> {
        let host = self.url.host().unwrap_or_default().to_ascii_lowercase();
        let chains = model.listeners.iter().flat_map(|one| one.all_chains().map(move |chain| (one, chain)));
        let mut found: Vec<_> = chains
            .filter(|(listener, chain)| {
                chain.http().is_some() && chain.tls.is_some() == tls && self.is_meant(model, listener)
            })
            .filter_map(|(listener, chain)| Some((sni_length(chain, &host)?, listener, chain)))
            .collect();
        let longest = found.iter().map(|(length, ..)| *length).max();
        found.retain(|(length, ..)| Some(*length) == longest);
        match &found[..] {
            [(_, listener, chain)] => Ok((*listener, *chain)),
            [] => Err("no listener receives this URL; name one with --listener, or another port".to_owned()),
            several => {
                let addresses: Vec<_> =
                    several.iter().map(|(_, listener, _)| listener.address.to_string()).collect();
                let addresses = addresses.join(", ");
                Err(format!("several listeners may receive this URL: {addresses}; name one with --listener"))
            }
        }
    }

    /// Returns whether the listener is the one of the flag, or else has the port of the URL. Without either, a listener
    /// with the scheme's default port precedes all others.
    fn is_meant(&self, model: &Gateway, listener: &Listener) -> bool {
        if let Some(name) = &self.listener {
            let address = listener.address;
            return [address.to_string(), address.port().to_string(), listener.name.clone()].contains(name);
        }
        let default = if self.url.scheme_str() == Some("https") { 443 } else { 80 };
        let has = |port: u16| model.listeners.iter().any(|listener| listener.address.port() == port);
        match self.url.port_u16() {
            Some(port) => listener.address.port() == port,
            None if has(default) => listener.address.port() == default,
            None => true,
        }
    }
}

/// Returns the length of the longest name of a chain that matches this SNI; zero without names, and `None` if none
/// matches.
fn sni_length(chain: &Chain, host: &str) -> Option<usize> {
    let names = &chain.accepts.server_names;
    let matches = |name: &&String| match name.strip_prefix('*') {
        Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        None => host == name.as_str(),
    };
    if names.is_empty() { Some(0) } else { names.iter().filter(matches).map(String::len).max() }
}

fn show(explanation: &RouteExplanation) {
    let RouteExplanation { path, outcome, steps } = explanation;
    println!("path {path}\n{outcome}");
    for ExplainedStep { place, about, applies, reasons } in steps {
        let verdict = if *applies { "applies" } else { "no" };
        println!("\n{verdict:8}{about}\n        {place}");
        reasons.iter().for_each(|reason| println!("        {reason}"));
    }
}

/// Parses a header line.
fn header_line(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let problem = || format!("{text:?} is not a header; write 'Name: value'");
    let (name, value) = text.split_once(':').ok_or_else(problem)?;
    let name = name.trim().parse().map_err(|_| problem())?;
    Ok((name, value.trim().parse().map_err(|_| problem())?))
}
