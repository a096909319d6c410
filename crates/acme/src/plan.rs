//! The orders that a configuration requires.

use crate::{AcmeError, KeyServers, StateDirectory, files, on_demand::granted};
use quadrille_config::model::{Acme, AcmeFleet, AcmeOrder, Gateway, Keyless, Listener};
use quadrille_keyless::client::Client;
use quadrille_resumption::Records;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// The account, and all certificates to be ordered with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The account.
    pub acme: Arc<Acme>,
    /// The certificates, without duplicates.
    pub wanted: Vec<Wanted>,
    /// The fleet that shares them.
    pub fleet: Option<Records>,
    /// The key servers that generate some of their keys.
    pub key_servers: KeyServers,
}

/// A certificate to obtain and keep valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Contents of the order.
    pub order: AcmeOrder,
    /// Path of the certificate's file.
    pub file: PathBuf,
}

impl Plan {
    /// Plans these orders with this account.
    pub fn new(acme: Acme, orders: Vec<AcmeOrder>) -> Self {
        let files: BTreeMap<_, _> =
            orders.into_iter().map(|order| (order.file(&acme.state), order)).collect();
        let wanted = files.into_iter().map(|(file, order)| Wanted { order, file }).collect();
        Self { acme: Arc::new(acme), wanted, fleet: None, key_servers: KeyServers::default() }
    }

    /// Shares the plan with this fleet, unless the configuration disables sharing.
    #[must_use]
    pub fn shared_with(self, fleet: Option<Records>) -> Self {
        let fleet = fleet.filter(|_| self.acme.fleet != AcmeFleet::Off);
        Self { fleet, ..self }
    }

    /// Adds the key servers that the plan names.
    #[must_use]
    pub fn with_key_servers(mut self, all: &KeyServers) -> Self {
        self.key_servers = all.only(|settings| self.keyless().any(|wanted| wanted == settings));
        self
    }

    /// Returns all key servers that are to generate keys.
    fn keyless(&self) -> impl Iterator<Item = &Keyless> {
        let configured = self.wanted.iter().filter_map(|wanted| wanted.order.keyless.as_deref());
        let on_demand = self.acme.on_demand.as_ref().and_then(|on_demand| on_demand.keyless.as_deref());
        configured.chain(on_demand)
    }

    /// Returns the client of the key servers for the order with this [id](Wanted::id); an unconfigured id is on
    /// demand.
    pub(crate) fn client(&self, id: &str) -> Option<Client> {
        let settings = match self.wanted.iter().find(|wanted| wanted.id() == id) {
            Some(wanted) => wanted.order.keyless.as_deref(),
            None => self.acme.on_demand.as_ref().and_then(|on_demand| on_demand.keyless.as_deref()),
        };
        self.key_servers.client(settings?).cloned()
    }

    /// Returns `None` if there is nothing to order.
    pub fn of(gateway: &Gateway) -> Option<Self> {
        let acme = gateway.acme.as_ref()?;
        let chains = gateway.listeners.iter().flat_map(Listener::all_chains);
        let certificates = chains.filter_map(|chain| chain.tls.as_ref()).flat_map(|tls| &tls.certificates);
        let orders: Vec<_> = certificates.filter_map(|certificate| certificate.order.clone()).collect();
        (!orders.is_empty()).then(|| Self::new(acme.clone(), orders))
    }

    /// Adds the orders granted on demand.
    #[must_use]
    pub fn with_granted(self) -> Self {
        let orders = self.wanted.into_iter().map(|wanted| wanted.order).chain(granted(&self.acme)).collect();
        Self {
            fleet: self.fleet,
            key_servers: self.key_servers,
            ..Self::new(Acme::clone(&self.acme), orders)
        }
    }
}

impl Wanted {
    /// Describes a certificate ordered with this account.
    pub(crate) fn new(acme: &Acme, order: AcmeOrder) -> Self {
        Self { file: order.file(&acme.state), order }
    }

    /// Title for logs: the names, and the key type.
    pub fn title(&self) -> String {
        format!("{} ({})", self.order.names.join(", "), quadrille_config::enums::name(self.order.key_type))
    }

    /// Returns the name of the file, which identifies the certificate.
    pub fn id(&self) -> String {
        self.file.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Requests an immediate renewal from the process that keeps this certificate, whether or not it is due.
    ///
    /// # Errors
    /// If the state directory cannot be written to.
    pub fn request_renewal(&self, acme: &Acme) -> Result<(), AcmeError> {
        StateDirectory::open(&acme.state)?;
        files::write(&self.renewal_request(), b"")
    }

    /// Path of the file that requests the renewal.
    pub(crate) fn renewal_request(&self) -> PathBuf {
        self.file.with_extension("renew")
    }
}
