use std::{num::NonZeroUsize, time::Duration};

/// Which servers get no requests for a while, because of what became of those that they got.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutlierDetection {
    /// So many answers of 500 and above in a row, or none at all; `None` does not look at them.
    pub errors: Option<NonZeroUsize>,
    /// So many answers of 502, 503 or 504 in a row, or none at all; `None` does not look at them.
    pub gateway_errors: Option<NonZeroUsize>,
    /// So many times in a row no connection, or no answer; `None` does not look at them apart.
    pub local_errors: Option<NonZeroUsize>,
    /// What gets no answer counts as `local_errors` alone.
    pub split: bool,
    /// How long a server is out the first time; the second time in a row it is twice as long, and so on.
    pub ejection: Duration,
    /// The longest time.
    pub longest_ejection: Duration,
    /// After such a time without failures, a server has been out once less.
    pub interval: Duration,
    /// While so many of a hundred servers or more are out, no other is taken out.
    pub most: u8,
}

/// As Envoy's, without its statistics of success rates.
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
