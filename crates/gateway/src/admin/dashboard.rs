//! The dashboard's page and assets, from `crates/gateway/dashboard`.
//!
//! The modules have no dependencies. `exposition`, `stats`, `timeline`, `history` and `alerts` are pure; `panels`,
//! `stages`, `tables` and `notices` draw.

/// A file of the dashboard.
pub(crate) struct Asset {
    pub(crate) content_type: &'static str,
    pub(crate) body: &'static str,
}

/// Content security policy of the page: only these files and this server.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($path:literal, $content_type:expr) => {
        Asset { content_type: $content_type, body: include_str!(concat!("../../dashboard/", $path)) }
    };
}

/// Returns the dashboard's file at this path, if there is one.
pub(crate) fn asset(path: &str) -> Option<Asset> {
    Some(match path {
        "/" | "/dashboard" => asset!("index.html", HTML),
        "/dashboard/style.css" => asset!("style.css", CSS),
        "/dashboard/icon.svg" => asset!("icon.svg", SVG),
        "/dashboard/main.js" => asset!("main.js", JAVASCRIPT),
        "/dashboard/alerts.js" => asset!("alerts.js", JAVASCRIPT),
        "/dashboard/notices.js" => asset!("notices.js", JAVASCRIPT),
        "/dashboard/history.js" => asset!("history.js", JAVASCRIPT),
        "/dashboard/exposition.js" => asset!("exposition.js", JAVASCRIPT),
        "/dashboard/timeline.js" => asset!("timeline.js", JAVASCRIPT),
        "/dashboard/stats.js" => asset!("stats.js", JAVASCRIPT),
        "/dashboard/format.js" => asset!("format.js", JAVASCRIPT),
        "/dashboard/elements.js" => asset!("elements.js", JAVASCRIPT),
        "/dashboard/chart.js" => asset!("chart.js", JAVASCRIPT),
        "/dashboard/stages.js" => asset!("stages.js", JAVASCRIPT),
        "/dashboard/panels.js" => asset!("panels.js", JAVASCRIPT),
        "/dashboard/tables.js" => asset!("tables.js", JAVASCRIPT),
        _ => return None,
    })
}
