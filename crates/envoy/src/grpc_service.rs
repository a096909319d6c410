//! gRPC services called by filters.

use crate::{
    reader::{Message, ReadMessage},
    schema,
};
use quadrille_config::{Problem, quote};

/// Reads the cluster of an `envoy.config.core.v3.GrpcService`, and its authority.
pub(crate) fn envoy_grpc(service: &Message<'_>) -> Option<(String, String)> {
    let envoy = service.require("envoy_grpc")?.message(&schema::ENVOY_GRPC)?;
    let cluster = envoy.require("cluster_name")?.text()?.to_owned();
    let authority = envoy.string("authority");
    let authority = if authority.is_empty() { cluster.clone() } else { authority };
    if authority.parse::<::http::uri::Authority>().is_err() {
        return service.field().fail(Problem::new(
            format!("{} is not an authority", quote(&authority)),
            "set the server's name as `authority` of `envoy_grpc`",
        ));
    }
    Some((cluster, authority))
}
