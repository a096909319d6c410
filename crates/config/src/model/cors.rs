use super::TextMatch;

/// Access for pages of other origins (the CORS protocol of the Fetch standard). The texts are sent unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cors {
    /// The allowed origins.
    pub origins: Vec<TextMatch>,
    /// `Access-Control-Allow-Methods`.
    pub methods: String,
    /// `Access-Control-Allow-Headers`.
    pub headers: String,
    /// `Access-Control-Expose-Headers`.
    pub expose: String,
    /// `Access-Control-Max-Age`, in seconds.
    pub max_age: String,
    /// Whether credentials such as cookies may be sent.
    pub credentials: bool,
    /// Whether preflight requests of other origins are routed like all requests; otherwise the gateway responds to
    /// them without these headers.
    pub forward_other_preflights: bool,
}
