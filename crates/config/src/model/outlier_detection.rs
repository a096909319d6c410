use std::{num::NonZeroUsize, time::Duration};

/// Outlier detection: servers whose requests fail are ejected, and receive no requests for some time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutlierDetection {
    /// Consecutive responses with status 500 or above, or missing responses, that eject a server; `None` disables the
    /// check.
    pub errors: Option<NonZeroUsize>,
    /// Consecutive responses with status 502, 503 or 504, or missing responses, that eject a server; `None` disables
    /// the check.
    pub gateway_errors: Option<NonZeroUsize>,
    /// Consecutive failed connections or missing responses that eject a server; `None` disables the separate check.
    pub local_errors: Option<NonZeroUsize>,
    /// Whether missing responses count only as `local_errors`.
    pub split: bool,
    /// Duration of the first ejection; the second in a row lasts twice as long, and so on.
    pub ejection: Duration,
    /// Maximum duration of an ejection.
    pub longest_ejection: Duration,
    /// Interval without failures after which the ejection count of a server decreases by one.
    pub interval: Duration,
    /// While this percentage of the servers or more is ejected, no other server is.
    pub most: u8,
}

/// Envoy's defaults, without its success-rate statistics.
impl Default for OutlierDetection {
    fn default() -> Self {
        let five = NonZeroUsize::MIN.saturating_add(4);
        Self {
            errors: Some(five),
            gateway_errors: None,
            local_errors: None,
            split: false,
            ejection: Duration::from_secs(30),
            longest_ejection: Duration::from_secs(300),
            interval: Duration::from_secs(10),
            most: 10,
        }
    }
}
