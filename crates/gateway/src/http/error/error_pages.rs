//! Error pages from the configuration.

use super::error_page::{self, Form};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header, response};
use quadrille_config::{
    Diagnostic,
    model::{ErrorPage, Problem, Respond, Source, Statuses},
};
use std::{
    fs::File,
    io::{self, Read as _},
    sync::Arc,
};

/// Error pages, read from their files. The pages of a route come before those of its listener.
pub(crate) struct ErrorPages(Box<[(ErrorPage, Bytes, Form)]>);

/// Maximum size of a page, which each listener keeps in memory.
const LONGEST: usize = 1 << 20;

impl ErrorPages {
    /// Reads the files. Returns `None` if no pages are configured.
    ///
    /// # Errors
    /// Names a file that cannot be read.
    pub(crate) fn read(pages: &[ErrorPage]) -> Result<Option<Arc<Self>>, Diagnostic> {
        let read = |page: &ErrorPage| {
            let fail = |problem: Problem| Diagnostic::new(&page.body_place, problem);
            let body = contents(&page.body).map_err(|error| {
                fail(Problem::new(format!("cannot read the page {}: {error}", page.body), "correct the path"))
            })?;
            if body.len() > LONGEST {
                let message = format!("the page {} is longer than 1 MiB", page.body);
                return Err(fail(Problem::new(message, "write a shorter one: it is kept in memory")));
            }
            Ok((page.clone(), body.into(), Form::of_type(&page.content_type)))
        };
        let pages: Box<[_]> = pages.iter().map(read).collect::<Result<_, _>>()?;
        Ok((!pages.is_empty()).then(|| Arc::new(Self(pages))))
    }

    /// Returns the page for a local error response to a client with these headers; `None` selects the built-in page.
    pub(crate) fn of_gateway(&self, status: u16, headers: &HeaderMap) -> Option<Respond> {
        self.choose(status, headers, |_| true)
    }

    /// Returns the page that replaces an upstream's error, and adapts the header to it; `None` keeps the upstream's
    /// body.
    pub(crate) fn in_place(&self, headers: &HeaderMap, head: &mut response::Parts) -> Option<Respond> {
        let is_error = head.status.is_client_error() || head.status.is_server_error();
        let status = head.status.as_u16();
        if !is_error || !self.of_status(status).any(|(page, _, _)| page.of_servers) {
            return None;
        }
        let (vary, accept) = error_page::VARY;
        head.headers.append(vary, accept);
        let page = self.choose(status, headers, |page| page.of_servers)?;
        describe(&page, &mut head.headers);
        Some(page)
    }

    /// Iterates over the pages for exactly this status, and then over those for its class.
    fn of_status(&self, status: u16) -> impl Iterator<Item = &(ErrorPage, Bytes, Form)> {
        [Statuses::One(status), Statuses::Class(status / 100)]
            .into_iter()
            .flat_map(|statuses| self.0.iter().filter(move |(page, _, _)| page.statuses.contains(&statuses)))
    }

    /// Chooses the first page in the format that the client requests; the first of all if it names none.
    fn choose(
        &self,
        status: u16,
        headers: &HeaderMap,
        is_meant: impl Fn(&ErrorPage) -> bool,
    ) -> Option<Respond> {
        let wanted = error_page::wanted(headers);
        let suits = |form: Form| wanted == Form::Text || wanted == form;
        let (page, body, _) =
            self.of_status(status).find(|(page, _, form)| is_meant(page) && suits(*form))?;
        Some(Respond { status, content_type: page.content_type.clone(), body: body.clone() })
    }
}

/// Adapts the header of an upstream response to this page, in place of the fields that describe its own body.
fn describe(page: &Respond, headers: &mut HeaderMap) {
    const OF_BODY: [&str; 11] = [
        "accept-ranges",
        "content-digest",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-md5",
        "content-range",
        "digest",
        "etag",
        "last-modified",
        "repr-digest",
    ];
    for name in OF_BODY {
        headers.remove(name);
    }
    headers.insert(header::CONTENT_LENGTH, page.body.len().into());
    if let Ok(content_type) = HeaderValue::from_str(&page.content_type) {
        headers.insert(header::CONTENT_TYPE, content_type);
    }
}

/// Reads a page, up to one byte more than the maximum size.
fn contents(source: &Source) -> io::Result<Vec<u8>> {
    let Some(path) = source.path() else { return Ok(source.read()?.to_vec()) };
    let mut body = Vec::new();
    File::open(path)?.take(LONGEST as u64 + 1).read_to_end(&mut body)?;
    Ok(body)
}
