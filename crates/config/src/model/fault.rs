use std::time::Duration;

/// Fault injection into some requests, to test the behavior of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Delay before any other processing, and the share of requests in parts per million.
    pub delay: Option<(Duration, u32)>,
    /// Status of the response, and the share of requests in parts per million.
    pub abort: Option<(u16, u32)>,
}
