//! The ACME account with a certificate authority.

use super::keyless::{key_servers, show_key_servers};
use crate::{
    Field, Problem,
    acme_values::{ask_url, directory_url, email},
    enums::{Word, name, word},
    file::schema::{Key, Preset, Section},
    model::{Acme, AcmeChallenge, AcmeFleet, AcmeKeyType, AcmeOnDemand, ExternalAccount, Keyless, Place},
    values::count,
};
use serde_json::Value;
use std::{num::NonZeroUsize, path::PathBuf};

pub(super) const ACME: Section<AcmeDraft, Acme> = Section {
    path: "acme",
    about: "The ACME account (RFC 8555) with a certificate authority, for [certificates that are \
            ordered](#listenerscertificatesacme) from it. See the [guide](../guide/acme.md).",
    keys: &[
        Key::new(
            "state",
            "path",
            Preset::Required,
            "A directory for the account's key, the certificates and their keys, in files that only this user \
                    can read. It is created if it does not exist. Preserve it: every new account and certificate \
                    counts towards the authority's limits.",
            |field, draft| draft.state = field.file(),
            |acme| acme.state.display().to_string().into(),
        ),
        Key::new(
            "email",
            "mail address",
            Preset::Means("none"),
            "The address for the authority's mail. Using the authority means agreeing to its terms of service, \
                    with or without an address.",
            |field, draft| draft.email = field.parse(email),
            |acme| acme.email.clone().into(),
        ),
        Key::new(
            "directory",
            "URL",
            Preset::Is("https://acme-v02.api.letsencrypt.org/directory"),
            "URL of the authority's directory. Another directory means another account.",
            |field, draft| draft.directory = field.parse(directory_url),
            |acme| acme.directory.clone().into(),
        ),
        Key::new(
            "ca_file",
            "path",
            Preset::Means("the system's CAs"),
            "CA certificates in PEM that the directory's server must chain to, for an authority of your own.",
            |field, draft| draft.ca_file = field.placed(Field::file),
            |acme| acme.ca_file.as_ref().map(|(file, _)| file.display().to_string()).into(),
        ),
        Key::new(
            "challenges",
            "list of `tls-alpn-01`, `http-01` and `dns-01`",
            Preset::Is("[tls-alpn-01, http-01]"),
            "Challenges that prove control of names; the first that the authority offers and that can prove \
                    the name is used. `tls-alpn-01` is served in handshakes on a listener with TLS, which the \
                    authority must reach at port 443; `http-01` on a listener with `tls: off`, at port 80; `dns-01` \
                    by `dns_hook`, and only it can prove wildcards.",
            |field, draft| draft.challenges = Some(words(field)),
            |acme| acme.challenges.iter().map(|challenge| name(*challenge)).collect(),
        ),
        Key::new(
            "dns_hook",
            "path",
            Preset::Means("none"),
            "A command for `dns-01`. It is run as `HOOK present NAME VALUE`, adds a TXT record with this value \
                    at this name, and exits once all name servers have it; `HOOK cleanup NAME VALUE` removes it. Each \
                    may take up to five minutes.",
            |field, draft| draft.dns_hook = field.placed(Field::file),
            |acme| acme.dns_hook.as_ref().map(|(hook, _)| hook.display().to_string()).into(),
        ),
        Key::new(
            "external_account",
            "mapping",
            Preset::Means("none"),
            "An account that you already have with the authority, if it requires one.",
            |field, draft| {
                EXTERNAL_ACCOUNT.read(field, &mut draft.external);
            },
            |acme| acme.external_account.as_ref().map(|account| EXTERNAL_ACCOUNT.show(account)).into(),
        ),
        Key::new(
            "fleet",
            "`required`, `preferred` or `off`",
            Preset::Is("required"),
            "Whether the gateways that share a Redis and a `fleet_secret` by [`resumption`](#resumption) share \
                    account, certificates and their keys, sealed with that secret, and one of them orders at a time. \
                    While Redis is unreachable, all serve the certificates they have; with `required` none orders \
                    meanwhile, with `preferred` each orders for itself. With `off` each always has its own. Without a \
                    shared Redis it has no effect.",
            |field, draft| draft.fleet = field.parse(word::<AcmeFleet>),
            |acme| name(acme.fleet).into(),
        ),
        Key::new(
            "on_demand",
            "mapping",
            Preset::Means("none"),
            "Certificates for names that are not configured, ordered when a client first requests them.",
            |field, draft| draft.on_demand = on_demand(field),
            |acme| acme.on_demand.as_ref().map(|on_demand| ON_DEMAND.show(on_demand)).into(),
        ),
    ],
};

pub(super) const ON_DEMAND: Section<OnDemandDraft, AcmeOnDemand> = Section {
    path: "acme.on_demand",
    about: "Orders a certificate for a name that no certificate covers, when a client first requests it in a \
            handshake, on listeners that have a certificate with [`acme`](#listenerscertificatesacme). Handshakes for \
            the name are refused until it is issued; then it is served and renewed like any other. See the \
            [guide](../guide/acme.md#on-demand-certificates).",
    keys: &[
        Key::new(
            "ask",
            "URL",
            Preset::Required,
            "Service that decides whether a name may be ordered: it responds to `GET URL?domain=NAME` with 200 \
                    if so, and with any other status if not. With `http://`, it should be on this machine or in a \
                    private network. It is queried once for a name, before its first order; existing certificates do \
                    not need it.",
            |field, draft| draft.ask = field.parse(ask_url),
            |on_demand| on_demand.ask.clone().into(),
        ),
        Key::new(
            "ca_file",
            "path",
            Preset::Means("the system's CAs"),
            "CA certificates in PEM that the server of an `ask` with `https://` must chain to.",
            |field, draft| draft.ca_file = field.placed(Field::file),
            |on_demand| on_demand.ca_file.as_ref().map(|(file, _)| file.display().to_string()).into(),
        ),
        Key::new(
            "names",
            "number",
            Preset::Is("1000"),
            "Maximum number of names.",
            |field, draft| draft.names = field.parse(count),
            |on_demand| on_demand.names.get().into(),
        ),
        Key::new(
            "per_hour",
            "number",
            Preset::Is("20"),
            "Maximum number of new names in an hour. The authority has its own limits for the \
                    account.",
            |field, draft| draft.per_hour = field.parse(count),
            |on_demand| on_demand.per_hour.get().into(),
        ),
        Key::new(
            "key_type",
            "`ecdsa-p256`, `ecdsa-p384`, `rsa-2048`, `rsa-3072` or `rsa-4096`",
            Preset::Is("ecdsa-p256"),
            "The key type of each certificate. A change orders all of them again.",
            |field, draft| draft.key_type = field.parse(word::<AcmeKeyType>),
            |on_demand| name(on_demand.key_type).into(),
        ),
        Key::new(
            "keyless",
            "mapping",
            Preset::Means("keys are here"),
            "The key servers that generate and hold the keys, as for [one \
                    certificate](#listenerscertificatesacme).",
            |field, draft| draft.keyless = key_servers(field),
            |on_demand| show_key_servers(on_demand.keyless.as_deref()),
        ),
    ],
};

pub(super) const EXTERNAL_ACCOUNT: Section<ExternalDraft, ExternalAccount> = Section {
    path: "acme.external_account",
    about: "Binds the account to one that you already have with the authority (RFC 8555 section 7.3.4), when it is \
            created.",
    keys: &[
        Key::new(
            "id",
            "text",
            Preset::Required,
            "The key identifier that the authority has issued.",
            |field, draft| draft.id = field.text().map(str::to_owned),
            |account| account.id.clone().into(),
        ),
        Key::new(
            "key_file",
            "path",
            Preset::Required,
            "A file with the MAC key that the authority has issued, in base64url.",
            |field, draft| draft.key_file = field.placed(Field::file),
            |account| account.key_file.0.display().to_string().into(),
        ),
    ],
};

/// Values read for an ACME account.
#[derive(Default)]
pub(super) struct AcmeDraft {
    state: Option<PathBuf>,
    email: Option<String>,
    directory: Option<String>,
    ca_file: Option<(PathBuf, Place)>,
    challenges: Option<Vec<AcmeChallenge>>,
    dns_hook: Option<(PathBuf, Place)>,
    external: ExternalDraft,
    fleet: Option<AcmeFleet>,
    on_demand: Option<AcmeOnDemand>,
}

/// Values read for on-demand certificates.
#[derive(Default)]
pub(super) struct OnDemandDraft {
    ask: Option<String>,
    ca_file: Option<(PathBuf, Place)>,
    names: Option<NonZeroUsize>,
    per_hour: Option<NonZeroUsize>,
    key_type: Option<AcmeKeyType>,
    keyless: Option<Box<Keyless>>,
}

/// Values read for an external account.
#[derive(Default)]
pub(super) struct ExternalDraft {
    id: Option<String>,
    key_file: Option<(PathBuf, Place)>,
}

/// Reads the ACME account.
pub(super) fn acme(field: &Field<'_>) -> Option<Acme> {
    let mut draft = AcmeDraft::default();
    ACME.read(field, &mut draft)?;
    let preset = Acme::new(draft.state?, field.place());
    let challenges = draft.challenges.unwrap_or(preset.challenges);
    if challenges.contains(&AcmeChallenge::Dns01) != draft.dns_hook.is_some() {
        field.error(Problem::new(
            "`dns-01` and `dns_hook` belong together",
            "name the command as `dns_hook: FILE`, and `dns-01` among the `challenges`",
        ));
    }
    let external = draft.external;
    Some(Acme {
        email: draft.email,
        directory: draft.directory.unwrap_or(preset.directory),
        ca_file: draft.ca_file,
        challenges,
        dns_hook: draft.dns_hook,
        external_account: external
            .id
            .zip(external.key_file)
            .map(|(id, key_file)| ExternalAccount { id, key_file }),
        state: preset.state,
        fleet: draft.fleet.unwrap_or(preset.fleet),
        on_demand: draft.on_demand,
        place: preset.place,
    })
}

fn on_demand(field: &Field<'_>) -> Option<AcmeOnDemand> {
    let mut draft = OnDemandDraft::default();
    ON_DEMAND.read(field, &mut draft)?;
    let preset = AcmeOnDemand::new(draft.ask?);
    Some(AcmeOnDemand {
        names: draft.names.unwrap_or(preset.names),
        per_hour: draft.per_hour.unwrap_or(preset.per_hour),
        key_type: draft.key_type.unwrap_or(preset.key_type),
        keyless: draft.keyless,
        ca_file: draft.ca_file,
        ask: preset.ask,
    })
}

/// Reads a list of distinct words.
pub(super) fn words<T: Word>(field: &Field<'_>) -> Vec<T> {
    let mut words = Vec::new();
    for item in field.items_or_one() {
        match item.parse(word::<T>) {
            Some(known) if words.contains(&known) => {
                item.error(Problem::new("this is listed twice", "remove one"));
            }
            Some(new) => words.push(new),
            None => {}
        }
    }
    words
}

pub(super) fn show(acme: Option<&Acme>) -> Value {
    acme.map(|acme| ACME.show(acme)).into()
}
