//! What the page is made from.

use crate::{
    contestants::Contestant,
    machine::Machine,
    report::{CrossCheck, HandshakeRow, IdleRow, ProviderRows, RequestFindings},
    rounds::Plan,
    scenario::Scenario,
};

/// Everything that was measured.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Where.
    pub machine: Machine,
    /// When, as a date.
    pub date: String,
    /// How much.
    pub plan: Plan,
    /// Who.
    pub contestants: Vec<Contestant>,
    /// CPU per handshake, scenario by scenario.
    pub handshakes: Vec<(Scenario, Vec<HandshakeRow>)>,
    /// Requests on open connections, or why they were not measured.
    pub requests: Result<RequestFindings, String>,
    /// Servers with the provider in their OpenSSL, or why they were not measured.
    pub provider: Result<ProviderRows, String>,
    /// Memory per idle connection.
    pub idle: Vec<IdleRow>,
    /// What the generator that is not ours saw, or why it did not.
    pub cross_check: Result<CrossCheck, String>,
}
