//! Istio's messages about private keys.

use super::{
    FieldPolicy::{Accepted, Read},
    STRICT, Schema,
};

pub(crate) const PROXY_CONFIG: Schema = Schema {
    name: "istio.mesh.v1alpha1.ProxyConfig",
    fields: &[("private_key_provider", Read(""))],
    others: Accepted("not related to private keys"),
};

pub(crate) const ISTIO_PROVIDER: Schema = Schema {
    name: "istio.mesh.v1alpha1.PrivateKeyProvider",
    fields: &[("cryptomb", Read("")), ("qat", Read(""))],
    others: STRICT,
};

pub(crate) const ISTIO_CRYPTOMB: Schema = Schema {
    name: "istio.mesh.v1alpha1.PrivateKeyProvider.CryptoMb",
    fields: &[("poll_delay", Read("Istio forwards only the nanoseconds")), ("fallback", Read(""))],
    others: STRICT,
};

pub(crate) const ISTIO_QAT: Schema = Schema {
    name: "istio.mesh.v1alpha1.PrivateKeyProvider.QAT",
    fields: &[("poll_delay", Read("Istio forwards only the nanoseconds")), ("fallback", Read(""))],
    others: STRICT,
};
