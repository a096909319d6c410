//! Istio's own messages, as far as they are about private keys.

use super::{
    FieldPolicy::{Accepted, Read},
    STRICT, Schema,
};

pub(crate) const PROXY_CONFIG: Schema = Schema {
    name: "istio.mesh.v1alpha1.ProxyConfig",
    fields: &[("private_key_provider", Read(""))],
    others: Accepted("not about private keys"),
};

pub(crate) const ISTIO_PROVIDER: Schema = Schema {
    name: "istio.mesh.v1alpha1.PrivateKeyProvider",
    fields: &[("cryptomb", Read("")), ("qat", Read(""))],
    others: STRICT,
};

pub(crate) const ISTIO_CRYPTOMB: Schema = Schema {
    name: "istio.mesh.v1alpha1.PrivateKeyProvider.CryptoMb",
    fields: &[("poll_delay", Read("Istio forwards the nanoseconds only")), ("fallback", Read(""))],
    others: STRICT,
};

pub(crate) const ISTIO_QAT: Schema = Schema {
    name: "istio.mesh.v1alpha1.PrivateKeyProvider.QAT",
    fields: &[("poll_delay", Read("Istio forwards the nanoseconds only")), ("fallback", Read(""))],
    others: STRICT,
};
