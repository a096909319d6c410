//! The account with a certificate authority.

use crate::{
    Field, Problem,
    acme_values::{ask_url, certificate_name, directory_url, email},
    file::schema::{Key, Preset, Section},
    model::{
        Acme, AcmeChallenge, AcmeFleet, AcmeKeyType, AcmeOnDemand, AcmeOrder, CertificateSource,
        ExternalAccount, Gateway, Place,
    },
    values::count,
    words::{Word, name, word},
};
use serde_json::Value;
use std::{num::NonZeroUsize, path::PathBuf, sync::Arc};

pub(super) const ACME: Section<AcmeDraft, Acme> = Section {
    path: "acme",
    about: "The account with a certificate authority, for [certificates that are ordered]\
            (#listenerscertificatesacme) by ACME (RFC 8555). See the [guide](../guide/acme.md).",
    keys: &[
        Key {
            name: "state",
            value: "path",
            preset: Preset::Required,
            about: "A directory for the account's key, the certificates and their keys, in files that only this user can \
                    read. It is made if it is not there. Keep it: with every new account and certificate the authority's \
                    limits come closer.",
            needs_restart: false,
            read: |field, draft| draft.state = field.file(),
            show: |acme| acme.state.display().to_string().into(),
        },
        Key {
            name: "email",
            value: "mail address",
            preset: Preset::Means("none"),
            about: "Where the authority sends its mail. With it, you agree to the authority's terms of service, as \
                    without it.",
            needs_restart: false,
            read: |field, draft| draft.email = field.parse(email),
            show: |acme| acme.email.clone().into(),
        },
        Key {
            name: "directory",
            value: "URL",
            preset: Preset::Is("https://acme-v02.api.letsencrypt.org/directory"),
            about: "The authority's directory. With another directory there is another account.",
            needs_restart: false,
            read: |field, draft| draft.directory = field.parse(directory_url),
            show: |acme| acme.directory.clone().into(),
        },
        Key {
            name: "ca_file",
            value: "path",
            preset: Preset::Means("the system's CAs"),
            about: "CA certificates in PEM that the directory's server must lead to, for an authority of your own.",
            needs_restart: false,
            read: |field, draft| draft.ca_file = field.placed(Field::file),
            show: |acme| acme.ca_file.as_ref().map(|(file, _)| file.display().to_string()).into(),
        },
        Key {
            name: "challenges",
            value: "list of `tls-alpn-01`, `http-01` and `dns-01`",
            preset: Preset::Is("[tls-alpn-01, http-01]"),
            about: "How names are proved to be yours; the first that the authority offers and that can prove the name is \
                    taken. `tls-alpn-01` is answered in handshakes on a listener with TLS, which the authority must \
                    reach at port 443; `http-01` on a listener with `tls: off`, at port 80; `dns-01` by `dns_hook`, and \
                    only it can prove wildcards.",
            needs_restart: false,
            read: |field, draft| draft.challenges = Some(words(field)),
            show: |acme| acme.challenges.iter().map(|challenge| name(*challenge)).collect(),
        },
        Key {
            name: "dns_hook",
            value: "path",
            preset: Preset::Means("none"),
            about: "A command for `dns-01`. It is run as `HOOK present NAME VALUE`, puts a TXT record with this value at \
                    this name, and ends once all name servers have it; `HOOK cleanup NAME VALUE` removes it. Each may \
                    take five minutes.",
            needs_restart: false,
            read: |field, draft| draft.dns_hook = field.file(),
            show: |acme| acme.dns_hook.as_ref().map(|hook| hook.display().to_string()).into(),
        },
        Key {
            name: "external_account",
            value: "mapping",
            preset: Preset::Means("none"),
            about: "The account that you have with the authority already, where it wants one.",
            needs_restart: false,
            read: |field, draft| {
                EXTERNAL_ACCOUNT.read(field, &mut draft.external);
            },
            show: |acme| acme.external_account.as_ref().map(|account| EXTERNAL_ACCOUNT.show(account)).into(),
        },
        Key {
            name: "fleet",
            value: "`required`, `preferred` or `off`",
            preset: Preset::Is("required"),
            about: "Whether the gateways that share a Redis and a `fleet_secret` by [`resumption`](#resumption) share \
                    account, certificates and their keys, sealed with that secret, and one of them orders at a time. \
                    While Redis cannot be asked, all serve what they have; with `required` none orders meanwhile, with \
                    `preferred` each for itself. With `off` each has its own, always. Without such a Redis it makes no \
                    difference.",
            needs_restart: false,
            read: |field, draft| draft.fleet = field.parse(word::<AcmeFleet>),
            show: |acme| name(acme.fleet).into(),
        },
        Key {
            name: "on_demand",
            value: "mapping",
            preset: Preset::Means("none"),
            about: "Certificates for names that are not configured, once a client has asked for them.",
            needs_restart: false,
            read: |field, draft| draft.on_demand = on_demand(field),
            show: |acme| acme.on_demand.as_ref().map(|on_demand| ON_DEMAND.show(on_demand)).into(),
        },
    ],
};

pub(super) const ON_DEMAND: Section<OnDemandDraft, AcmeOnDemand> = Section {
    path: "acme.on_demand",
    about: "Orders a certificate for a name that no certificate is for, once a client has asked for it in a handshake, on \
            listeners that have a certificate with [`acme`](#listenerscertificatesacme). Handshakes for the name are \
            refused until it is there; then it is served and renewed like any other. See the \
            [guide](../guide/acme.md#names-that-are-not-configured).",
    keys: &[
        Key {
            name: "ask",
            value: "URL",
            preset: Preset::Required,
            about: "Says whether a name may be ordered: `GET URL?domain=NAME` is answered by 200, and by anything else if \
                    not. Only `http://`: let it be on this machine or in a network of yours. It is asked once for a name, \
                    before its first order; certificates that are there do not need it.",
            needs_restart: false,
            read: |field, draft| draft.ask = field.parse(ask_url),
            show: |on_demand| on_demand.ask.clone().into(),
        },
        Key {
            name: "names",
            value: "number",
            preset: Preset::Is("1000"),
            about: "How many such names there may be.",
            needs_restart: false,
            read: |field, draft| draft.names = field.parse(count),
            show: |on_demand| on_demand.names.get().into(),
        },
        Key {
            name: "per_hour",
            value: "number",
            preset: Preset::Is("20"),
            about: "How many new ones in an hour. The authority has limits of its own, for the account.",
            needs_restart: false,
            read: |field, draft| draft.per_hour = field.parse(count),
            show: |on_demand| on_demand.per_hour.get().into(),
        },
    ],
};

pub(super) const EXTERNAL_ACCOUNT: Section<ExternalDraft, ExternalAccount> = Section {
    path: "acme.external_account",
    about: "Binds the account to one that you have with the authority (RFC 8555 section 7.3.4), when it is made.",
    keys: &[
        Key {
            name: "id",
            value: "text",
            preset: Preset::Required,
            about: "The key identifier that the authority gave.",
            needs_restart: false,
            read: |field, draft| draft.id = field.text().map(str::to_owned),
            show: |account| account.id.clone().into(),
        },
        Key {
            name: "key_file",
            value: "path",
            preset: Preset::Required,
            about: "A file with the MAC key that the authority gave, in base64url.",
            needs_restart: false,
            read: |field, draft| draft.key_file = field.placed(Field::file),
            show: |account| account.key_file.0.display().to_string().into(),
        },
    ],
};

pub(super) const ORDER: Section<OrderDraft, AcmeOrder> = Section {
    path: "listeners[].certificates[].acme",
    about: "A certificate that is ordered from the authority of [`acme`](#acme), and renewed in time. Until it is there, \
            handshakes for its names are refused, but for the authority's own. It is used as others are once it is \
            there, without a restart.",
    keys: &[
        Key {
            name: "names",
            value: "list of names and IP addresses",
            preset: Preset::Required,
            about: "What it is for, at most 100: `example.com`, `*.example.com` (with `dns-01`), `192.0.2.1` (if the \
                    authority's profile has addresses).",
            needs_restart: false,
            read: |field, draft| draft.names = names(field),
            show: |order| order.names.clone().into(),
        },
        Key {
            name: "key_types",
            value: "list of `ecdsa-p256`, `ecdsa-p384`, `rsa-2048`, `rsa-3072` and `rsa-4096`",
            preset: Preset::Is("[ecdsa-p256]"),
            about: "A certificate for each, and each client gets the one it can verify. `rsa-2048` besides is for clients \
                    that have no ECDSA; it costs the authority's limits another certificate.",
            needs_restart: false,
            read: |field, draft| draft.key_types = words(field),
            show: |order| [name(order.key_type)].into_iter().collect(),
        },
        Key {
            name: "profile",
            value: "text",
            preset: Preset::Means("the authority's choice"),
            about: "One of the authority's profiles, such as `tlsserver` or `shortlived` at Let's Encrypt. A change takes \
                    effect with the next renewal.",
            needs_restart: false,
            read: |field, draft| draft.profile = field.text().map(str::to_owned),
            show: |order| order.profile.clone().into(),
        },
    ],
};

/// What has been read of an account.
#[derive(Default)]
pub(super) struct AcmeDraft {
    state: Option<PathBuf>,
    email: Option<String>,
    directory: Option<String>,
    ca_file: Option<(PathBuf, Place)>,
    challenges: Option<Vec<AcmeChallenge>>,
    dns_hook: Option<PathBuf>,
    external: ExternalDraft,
    fleet: Option<AcmeFleet>,
    on_demand: Option<AcmeOnDemand>,
}

/// What has been read of names that are not configured.
#[derive(Default)]
pub(super) struct OnDemandDraft {
    ask: Option<String>,
    names: Option<NonZeroUsize>,
    per_hour: Option<NonZeroUsize>,
}

/// What has been read of an account outside of ACME.
#[derive(Default)]
pub(super) struct ExternalDraft {
    id: Option<String>,
    key_file: Option<(PathBuf, Place)>,
}

/// What has been read of an order.
#[derive(Default)]
pub(super) struct OrderDraft {
    names: Vec<String>,
    key_types: Vec<AcmeKeyType>,
    profile: Option<String>,
}

/// The account.
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
        ask: preset.ask,
    })
}

/// The orders of a certificate, one for each type of key.
pub(super) fn orders(field: &Field<'_>) -> Option<Vec<AcmeOrder>> {
    let mut draft = OrderDraft::default();
    ORDER.read(field, &mut draft)?;
    if draft.key_types.is_empty() {
        draft.key_types.push(AcmeKeyType::EcdsaP256);
    }
    let OrderDraft { names, key_types, profile } = draft;
    let order = |key_type| AcmeOrder { names: names.clone(), key_type, profile: profile.clone() };
    Some(key_types.into_iter().map(order).collect())
}

/// Says of certificates that are ordered where they are kept, which is known once the whole file has been read.
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
                Problem::new("nothing says where to order it", remedy),
            ));
        }
        return None;
    };
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

/// Different words.
fn words<T: Word>(field: &Field<'_>) -> Vec<T> {
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

pub(super) fn show_order(order: Option<&AcmeOrder>) -> Value {
    order.map(|order| ORDER.show(order)).into()
}

pub(super) fn show(acme: Option<&Acme>) -> Value {
    acme.map(|acme| ACME.show(acme)).into()
}
