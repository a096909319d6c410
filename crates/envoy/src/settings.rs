//! Settings per context in Envoy that are process-wide in Quadrille.

use crate::tls::{Resolved, Sessions};
use quadrille_config::{
    Diagnostic,
    model::{AccessLog, Admin, Gateway, MemoryLimit, Place, SessionCache, Source, TicketKeys},
};
use std::{collections::BTreeSet, num::NonZeroUsize, time::Duration};

/// Process settings that are not part of resources.
#[derive(Clone, Debug, Default)]
pub struct ProcessSettings {
    /// The admin listener, if any.
    pub admin: Option<Admin>,
    /// Clusters of control planes, which receive no requests.
    pub control_planes: BTreeSet<String>,
    /// Number of event loops; `None` for one per CPU.
    pub threads: Option<NonZeroUsize>,
    /// Limit on the memory of the process.
    pub memory: MemoryLimit,
}

impl ProcessSettings {
    /// Returns a gateway without listeners.
    pub(crate) fn gateway(&self) -> Gateway {
        // The manager of an Envoy removes it from load balancers before it sends the signal.
        let lame_duck = Duration::ZERO;
        let (admin, memory) = (self.admin.clone(), self.memory.clone());
        Gateway { admin, threads: self.threads, memory, lame_duck, ..Gateway::default() }
    }
}

/// Combined settings of all TLS contexts and filter chains that are process-wide in Quadrille.
#[derive(Default)]
pub(crate) struct ContextSettings {
    ticket_keys: Vec<(Vec<Source>, Place)>,
    sessions: Vec<Sessions>,
    access_log: Option<AccessLog>,
}

impl ContextSettings {
    pub(crate) fn add(&mut self, resolved: &Resolved, sessions: &Sessions) {
        self.ticket_keys.extend(resolved.ticket_keys.clone());
        self.sessions.push(sessions.clone());
    }

    /// Sets the access log; the first one applies.
    pub(crate) fn access_log(&mut self, log: &AccessLog) {
        self.access_log.get_or_insert_with(|| log.clone());
    }

    /// # Errors
    /// If two contexts have different ticket keys.
    pub(crate) fn apply(self, gateway: &mut Gateway) -> Result<(), Diagnostic> {
        gateway.access_log = self.access_log.clone().unwrap_or_default();
        let resumption = &mut gateway.resumption;
        if let Some(shortest) = self.sessions.iter().filter_map(|sessions| sessions.lifetime).min() {
            resumption.lifetime = shortest.clamp(Duration::from_secs(1), WEEK);
        }
        if self.sessions.iter().any(|sessions| sessions.no_cache) {
            resumption.cache = SessionCache::Off;
        }
        if self.sessions.iter().any(|sessions| sessions.no_tickets) {
            resumption.tickets = TicketKeys::Off;
            return Ok(());
        }
        let Some((keys, place)) = self.ticket_keys.first() else { return Ok(()) };
        if let Some((_, other)) = self.ticket_keys.iter().find(|(other, _)| keys != other) {
            let text = format!(
                "refused: these session ticket keys differ from those of {place}, and keys are process-wide"
            );
            return Err(Diagnostic::new(other, text).contradicting(place));
        }
        resumption.tickets = TicketKeys::Files(keys.clone(), place.clone());
        Ok(())
    }
}

/// Maximum ticket lifetime (RFC 8446 section 4.6.1).
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
