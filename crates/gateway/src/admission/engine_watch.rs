//! Observer of the engine: forwards all reports to the metrics, and the pace of private-key operations to admission
//! control.

use super::Admission;
use crate::telemetry::metrics::EngineMetrics;
use quadrille_engine::{BatchReport, ExchangeReport, KeyType, Observer, Overflow};
use std::sync::Arc;

/// Observes the engine of a gateway.
pub(crate) struct EngineWatch(pub(crate) Arc<Admission>);

impl Observer for EngineWatch {
    fn batch(&self, report: &BatchReport) {
        EngineMetrics.batch(report);
        if report.in_place {
            return;
        }
        let admission = &self.0;
        let elsewhere = admission.overflow.get() == Some(&report.backend);
        let (now, mut state) = (admission.now(), admission.state());
        let controller = &mut state.controller;
        controller.computed(report.key_type, report.operations, report.computed, elsewhere, now);
    }

    fn exchanged(&self, report: &ExchangeReport) {
        EngineMetrics.exchanged(report);
    }

    fn shed(&self, key_type: KeyType) {
        EngineMetrics.shed(key_type);
    }

    fn retired(&self, overflow: &dyn Overflow, reason: &str) {
        EngineMetrics.retired(overflow, reason);
    }

    fn withdrawn(&self, key_type: KeyType) {
        EngineMetrics.withdrawn(key_type);
    }
}
