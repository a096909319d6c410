//! Annotations of ingress-nginx: their values, and their outcomes.
//!
//! [`table`] lists all of them. Each family has a module, which judges values that decide about the outcome; the others
//! have the outcome of the table.

pub(crate) mod access;
pub(crate) mod affinity;
pub(crate) mod basic_auth;
pub(crate) mod canary;
pub(crate) mod client_auth;
pub(crate) mod cors;
pub(crate) mod errors;
pub(crate) mod external_auth;
pub(crate) mod headers;
pub(crate) mod limits;
pub(crate) mod mirror;
pub(crate) mod proxy;
pub(crate) mod proxy_tls;
pub(crate) mod redirect;
pub(crate) mod retry;
pub(crate) mod rewrite;
pub(crate) mod snippet;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod tracing;

pub(crate) use text::Texts;

use crate::{
    object::{Meta, Secret},
    world::World,
};
use quadrille_draft::ledger::{Outcome, StatementId};
use table::Support;

/// Prefix of the annotations.
pub(crate) const PREFIX: &str = "nginx.ingress.kubernetes.io/";

/// Annotations of an Ingress.
#[derive(Debug)]
pub(crate) struct Annotations<'w, 'o> {
    pub(crate) world: &'w World<'o>,
    pub(crate) meta: &'o Meta,
    known: Vec<Known<'o>>,
}

#[derive(Debug)]
struct Known<'o> {
    /// The name without the prefix; that of the documentation if it has several.
    name: &'static str,
    value: &'o str,
    id: StatementId,
}

impl<'w, 'o> Annotations<'w, 'o> {
    /// Reads the annotations of an object, and adds them to the ledger.
    pub(crate) fn of(meta: &'o Meta, world: &'w World<'o>) -> Self {
        let mut known: Vec<Known<'o>> = Vec::new();
        for one in &meta.annotations {
            let Some(short) = one.name.strip_prefix(PREFIX) else { continue };
            let id = world.notes.add(meta, &one.name, one.line);
            let Some(entry) = table::find(short) else {
                world.notes.ledger.refused(id, "not an annotation of ingress-nginx: check its spelling");
                continue;
            };
            if !one.is_text {
                world.notes.ledger.refused(
                    id,
                    "the value is not text, so API servers reject the object: write it in quotes",
                );
            }
            match known.iter().any(|other| other.name == entry.name) {
                true => {
                    world
                        .notes
                        .ledger
                        .refused(id, "another name of this annotation is set as well: remove one");
                }
                false => known.push(Known { name: entry.name, value: one.value.trim(), id }),
            }
        }
        Self { world, meta, known }
    }

    /// Returns the value of an annotation; an empty one counts as absent.
    pub(crate) fn value(&self, name: &str) -> Option<&'o str> {
        self.find(name).map(|one| one.value).filter(|value| !value.is_empty())
    }

    /// Returns the value of an annotation, or that of the ConfigMap's key of the same name.
    pub(crate) fn or_global(&self, name: &str) -> Option<&'o str> {
        self.value(name).or_else(|| self.world.globals.get(name))
    }

    /// Returns whether an annotation is `true`. Other words than `true` and `false` are refused.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.value(name)?.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.refuse(name, "write \"true\" or \"false\"; ingress-nginx ignores it");
                None
            }
        }
    }

    /// Returns a flag of an annotation or of the ConfigMap.
    pub(crate) fn flag_or_global(&self, name: &str, default: bool) -> bool {
        self.flag(name).unwrap_or_else(|| self.world.globals.flag(name, default))
    }

    /// Returns the number of an annotation or of the ConfigMap.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let value = self.or_global(name)?;
        match value.parse() {
            Ok(number) => Some(number),
            Err(_) => {
                self.refuse(name, "write a whole number; ingress-nginx ignores it");
                None
            }
        }
    }

    /// Returns the Secret that an annotation names as `name` or `namespace/name`, with its whole name.
    ///
    /// # Errors
    /// If it is not in the input, or in another namespace without `allow-cross-namespace-resources`.
    pub(crate) fn secret(&self, name: &str) -> Result<(&'o Secret, String), String> {
        let own = self.meta.namespace.as_str();
        let (namespace, name) = name.split_once('/').unwrap_or((own, name));
        let whole = format!("{namespace}/{name}");
        if namespace != own && !self.world.globals.flag("allow-cross-namespace-resources", false) {
            return Err(format!(
                "the Secret {whole} is in another namespace: copy it, or set `allow-cross-namespace-resources` in the ConfigMap"
            ));
        }
        match self.world.objects.secret(namespace, name) {
            Some(secret) => Ok((secret, whole)),
            None => Err(format!("the Secret {whole} {}", self.world.objects.missing())),
        }
    }

    /// Notes that an annotation works with this value.
    pub(crate) fn works(&self, name: &str) {
        if let Some(id) = self.id(name) {
            self.world.notes.ledger.converted(id);
        }
    }

    /// Notes that an annotation works differently with this value.
    pub(crate) fn differ(&self, name: &str, difference: impl Into<String>) {
        if let Some(id) = self.id(name) {
            self.world.notes.ledger.differs(id, difference);
        }
    }

    /// Notes that an annotation does not work with this value.
    pub(crate) fn refuse(&self, name: &str, remedy: impl Into<String>) {
        if let Some(id) = self.id(name) {
            self.world.notes.ledger.refused(id, remedy);
        }
    }

    /// Returns the place of an annotation, for comments.
    pub(crate) fn shown(&self, name: &str) -> String {
        self.id(name).map_or_else(|| name.to_owned(), |id| self.world.notes.ledger.shown(id))
    }

    /// Gives each annotation that no module has judged the outcome of the table.
    pub(crate) fn finish(&self) {
        for one in &self.known {
            if self.world.notes.ledger.outcome(one.id) != Outcome::Unread {
                continue;
            }
            match table::find(one.name).map(|entry| entry.support) {
                Some(Support::Works) | None => self.world.notes.ledger.converted(one.id),
                Some(Support::Differs(text)) => self.world.notes.ledger.differs(one.id, text),
                Some(Support::Refused(text)) => self.world.notes.ledger.refused(one.id, text),
            }
        }
    }

    fn find(&self, name: &str) -> Option<&Known<'o>> {
        self.known.iter().find(|one| one.name == name)
    }

    /// Returns the statement that sets a value: the annotation, or the ConfigMap's key.
    fn id(&self, name: &str) -> Option<StatementId> {
        self.find(name).map(|one| one.id).or_else(|| self.world.globals.id(name))
    }
}
