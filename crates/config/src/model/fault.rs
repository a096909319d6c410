use std::time::Duration;

/// What is done to some requests on purpose, to see how callers bear it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fault {
    /// So many of a million requests wait so long before anything else happens to them.
    pub delay: Option<(Duration, u32)>,
    /// So many of a million requests are answered with this status.
    pub abort: Option<(u16, u32)>,
}
