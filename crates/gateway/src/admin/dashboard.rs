//! The dashboard's page with what belongs to it, as it lies in `crates/gateway/dashboard`.

/// A file of the dashboard.
pub(crate) struct Asset {
    pub(crate) content_type: &'static str,
    pub(crate) body: &'static str,
}

/// What a browser may do on the page: load these files and ask this server, nothing else.
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

/// The file at this path, if it is one of the dashboard's.
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
