//! Admin pages: `/ready` waits for the first configuration, and `/status` shows the view of the cluster.

use crate::progress::Progress;
use async_trait::async_trait;
use http::StatusCode;
use quadrille_gateway::{AdminPages, AdminView, Page};

/// Admin pages of a gateway that watches a cluster.
pub struct KubernetesPages(pub(crate) Progress);

#[async_trait]
impl AdminPages for KubernetesPages {
    async fn page(&self, path: &str, _: Option<&str>, view: &AdminView) -> Option<Page> {
        match path {
            "/ready" if view.ready => {
                let missing = self.0.missing()?;
                Some(Page {
                    status: StatusCode::SERVICE_UNAVAILABLE,
                    content_type: "text/plain; charset=utf-8",
                    body: format!("{missing}\n"),
                })
            }
            "/status" => {
                let mut status = view.status.clone();
                status["kubernetes"] = self.0.status();
                let body = format!("{status:#}\n");
                Some(Page { status: StatusCode::OK, content_type: "application/json", body })
            }
            "/metrics" => {
                self.0.show();
                None
            }
            _ => None,
        }
    }

    fn act(&self, _: &str, _: Option<&str>) -> Option<Page> {
        None
    }
}
