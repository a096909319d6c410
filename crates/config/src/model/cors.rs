use super::TextMatch;

/// What pages of other origins may do (the CORS protocol of the Fetch standard). The texts are sent as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cors {
    /// Whose origin is one of these may.
    pub origins: Vec<TextMatch>,
    /// `Access-Control-Allow-Methods`.
    pub methods: String,
    /// `Access-Control-Allow-Headers`.
    pub headers: String,
    /// `Access-Control-Expose-Headers`.
    pub expose: String,
    /// `Access-Control-Max-Age`, in seconds.
    pub max_age: String,
    /// Cookies and the like may be sent.
    pub credentials: bool,
    /// Preflight requests of other origins go where all requests go; else they are answered without these headers.
    pub forward_other_preflights: bool,
}
