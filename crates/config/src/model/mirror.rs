/// An upstream that gets copies of requests, whose answers nobody sees.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mirror {
    /// Name of an upstream. Nothing is copied for one that does not exist.
    pub upstream: String,
    /// So many of a million requests.
    pub parts: u32,
    /// The host of a copy ends in `-shadow`, so that servers can tell it from the request.
    pub marks_host: bool,
}
