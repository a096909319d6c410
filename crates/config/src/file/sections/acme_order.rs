//! A certificate that is ordered.

use super::{
    acme::words,
    keyless::{key_servers, show_key_servers},
};
use crate::{
    Field, Problem,
    acme_values::{certificate_name, refuse_private_name},
    enums::name,
    file::schema::{Key, Preset, Section},
    model::{Acme, AcmeKeyType, AcmeOrder, CertificateSource, Gateway, Keyless},
};
use serde_json::Value;
use std::sync::Arc;

pub(super) const ORDER: Section<OrderDraft, AcmeOrder> = Section {
    path: "listeners[].certificates[].acme",
    about: "A certificate that is ordered from the authority of [`acme`](#acme), and renewed in time. Until it is \
            issued, handshakes for its names are refused, except those in which the authority validates them. Once \
            issued, it is used without a restart.",
    keys: &[
        Key::new(
            "names",
            "list of names and IP addresses",
            Preset::Required,
            "The names in the certificate, at most 100: `example.com`, `*.example.com` (with `dns-01`), \
                    `192.0.2.1` (if the authority's profile allows addresses). A private authority may issue for `localhost` \
                    and other names of one label, too.",
            |field, draft| draft.names = names(field),
            |order| order.names.clone().into(),
        ),
        Key::new(
            "key_types",
            "list of `ecdsa-p256`, `ecdsa-p384`, `rsa-2048`, `rsa-3072` and `rsa-4096`",
            Preset::Is("[ecdsa-p256]"),
            "One certificate for each; each client receives the one that it can verify. Adding `rsa-2048` \
                    serves clients without ECDSA, and counts as another certificate towards the authority's limits.",
            |field, draft| draft.key_types = words(field),
            |order| [name(order.key_type)].into_iter().collect(),
        ),
        Key::new(
            "profile",
            "text",
            Preset::Means("the authority's choice"),
            "One of the authority's profiles, such as `tlsserver` or `shortlived` at Let's Encrypt. A change takes \
                    effect with the next renewal.",
            |field, draft| draft.profile = field.text().map(str::to_owned),
            |order| order.profile.clone().into(),
        ),
        Key::new(
            "keyless",
            "mapping",
            Preset::Means("the key is here"),
            "The key servers that generate and hold the key, with the settings of a certificate's \
                    [`keyless`](#listenerscertificateskeykeyless) except `use`, `fallback` and `protocol: \
                    compatible`. Only the certificate is then stored here, in the state directory and in the fleet. \
                    The key servers' policy must allow `generate` and `sign`. See the \
                    [guide](../guide/acme.md#keys-on-a-key-server).",
            |field, draft| draft.keyless = key_servers(field),
            |order| show_key_servers(order.keyless.as_deref()),
        ),
    ],
};

/// Values read for a certificate order.
#[derive(Default)]
pub(super) struct OrderDraft {
    names: Vec<String>,
    key_types: Vec<AcmeKeyType>,
    profile: Option<String>,
    keyless: Option<Box<Keyless>>,
}

/// The orders of a certificate, one for each type of key.
pub(super) fn orders(field: &Field<'_>) -> Option<Vec<AcmeOrder>> {
    let mut draft = OrderDraft::default();
    ORDER.read(field, &mut draft)?;
    if draft.key_types.is_empty() {
        draft.key_types.push(AcmeKeyType::EcdsaP256);
    }
    let OrderDraft { names, key_types, profile, keyless } = draft;
    let order = |key_type| AcmeOrder {
        names: names.clone(),
        key_type,
        profile: profile.clone(),
        keyless: keyless.clone(),
    };
    Some(key_types.into_iter().map(order).collect())
}

/// Sets the storage paths of ordered certificates, which are known once the whole file has been read.
pub(super) fn settle(root: &Field<'_>, gateway: &mut Gateway) {
    let chains = gateway.listeners.iter_mut().flat_map(|listener| &mut listener.chains);
    for tls in chains.filter_map(|chain| chain.tls.as_mut()) {
        if tls.certificates.iter().all(|certificate| certificate.order.is_none()) {
            continue;
        }
        for certificate in &mut Arc::make_mut(tls).certificates {
            if let Some(kept) = kept(root, gateway.acme.as_ref(), certificate) {
                *certificate = Arc::new(kept);
            }
        }
    }
}

fn kept(root: &Field<'_>, acme: Option<&Acme>, certificate: &CertificateSource) -> Option<CertificateSource> {
    let order = certificate.order.clone()?;
    let place = &certificate.chain_place;
    let Some(acme) = acme else {
        if root.entry("acme").is_none() {
            let remedy = "add `acme: { state: DIRECTORY, email: ... }` at the top level";
            root.report(crate::Diagnostic::new(
                place,
                Problem::new("no ACME account to order it from", remedy),
            ));
        }
        return None;
    };
    for problem in order.names.iter().filter_map(|name| refuse_private_name(name, &acme.directory).err()) {
        root.report(crate::Diagnostic::new(place, problem));
    }
    for unproved in order.names.iter().filter(|name| acme.challenges_for(name).next().is_none()) {
        let problem = format!("none of the `challenges` can prove {unproved}");
        let remedy = "wildcards need `dns-01` with a `dns_hook`, IP addresses one of the others";
        root.report(crate::Diagnostic::new(place, Problem::new(problem, remedy)));
    }
    Some(CertificateSource::ordered(acme, order, place.clone()))
}

fn names(field: &Field<'_>) -> Vec<String> {
    const MOST: usize = 100;
    let mut names = Vec::new();
    for item in field.items_or_one() {
        match item.parse(certificate_name) {
            Some(name) if names.contains(&name) => {
                item.error(Problem::new("this name is listed twice", "remove one"));
            }
            Some(name) => names.push(name),
            None => {}
        }
    }
    if names.len() > MOST {
        field.error(Problem::new(
            format!("{} names", names.len()),
            format!("a certificate has at most {MOST} names"),
        ));
    }
    names
}

pub(super) fn show_order(order: Option<&AcmeOrder>) -> Value {
    order.map(|order| ORDER.show(order)).into()
}
