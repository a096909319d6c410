//! Experimental settings of a certificate: trust anchor identifiers.

use crate::{
    Field, Problem,
    file::schema::{Key, Preset, Section},
    model::{CertificateSource, TrustAnchor},
    quote,
};
use serde_json::Value;

const PROPERTIES: &str = "properties";

pub(super) const EXPERIMENTAL: Section<Option<TrustAnchor>> = Section {
    path: "listeners[].certificates[].experimental",
    about: "Settings that implement drafts of standards. They may change or be removed in any release.",
    keys: &[Key::new(
        "trust_anchor",
        "`properties`, or an identifier such as `32473.1`",
        Preset::Means("the chain is for all clients"),
        "The identifier of the CA that the chain ends at (draft-ietf-tls-trust-anchor-ids-06): only clients of TLS \
                1.3 that request it in the extension `trust_anchors` receive the chain, before all other \
                certificates of its names. Add a certificate for the other clients. `properties` reads the identifier \
                and the groups from the block `CERTIFICATE PROPERTIES` of the chain's file. See the \
                [guide](../guide/post-quantum-certificates.md#trust-anchor-identifiers).",
        |field, anchor| *anchor = field.parse(read),
        |anchor| anchor.as_ref().map(shown).into(),
    )],
};

/// Reads the experimental settings of a certificate.
pub(super) fn experimental(field: &Field<'_>) -> Option<TrustAnchor> {
    let mut anchor = None;
    EXPERIMENTAL.read(field, &mut anchor)?;
    anchor
}

/// Shows the experimental settings of a certificate; null without any.
pub(super) fn show(certificate: &CertificateSource) -> Value {
    let anchor = &certificate.trust_anchor;
    anchor.is_some().then(|| EXPERIMENTAL.show(anchor)).into()
}

fn read(text: &str) -> Result<TrustAnchor, Problem> {
    match text {
        PROPERTIES => Ok(TrustAnchor::Properties),
        _ => text.parse().map(TrustAnchor::Id).map_err(|problem: Problem| Problem {
            message: format!("{} is {}", quote(text), problem.message),
            remedy: problem.remedy.map(|remedy| format!("{remedy}, or `{PROPERTIES}`")),
        }),
    }
}

fn shown(anchor: &TrustAnchor) -> String {
    match anchor {
        TrustAnchor::Properties => PROPERTIES.to_owned(),
        TrustAnchor::Id(id) => id.to_string(),
    }
}
