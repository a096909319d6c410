//! Input of the page.

use crate::{
    contestants::Contestant,
    machine::Machine,
    report::{CrossCheck, HandshakeRow, IdleRow, PostQuantumRow, ProviderRows, RequestFindings},
    rounds::Plan,
    scenario::Scenario,
};

/// All results.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The machine.
    pub machine: Machine,
    /// The date.
    pub date: String,
    /// The amount of measurement.
    pub plan: Plan,
    /// The servers.
    pub contestants: Vec<Contestant>,
    /// CPU per handshake, scenario by scenario.
    pub handshakes: Vec<(Scenario, Vec<HandshakeRow>)>,
    /// Requests on open connections, or the reason that they were not measured.
    pub requests: Result<RequestFindings, String>,
    /// Servers with the provider in their OpenSSL, or the reason that they were not measured.
    pub provider: Result<ProviderRows, String>,
    /// Handshakes with ML-DSA-44 beside P-256, or the reason that they were not measured.
    pub post_quantum: Result<Vec<PostQuantumRow>, String>,
    /// Memory per idle connection.
    pub idle: Vec<IdleRow>,
    /// Results of the independent generator, or the reason that they are missing.
    pub cross_check: Result<CrossCheck, String>,
}
