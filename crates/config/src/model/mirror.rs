/// An upstream that receives copies of requests, and whose responses are discarded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mirror {
    /// Name of an upstream. Nothing is copied for one that does not exist.
    pub upstream: String,
    /// The share of requests, in parts per million.
    pub parts: u32,
    /// Whether `-shadow` is appended to the host of a copy, so that servers can distinguish it.
    pub marks_host: bool,
}
