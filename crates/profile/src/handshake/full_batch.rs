//! Cost of a handshake whose operations share full batches: the engine's work in lanes, in place of scalar code.

use super::{Costs, Suite, error::Error};
use crate::algorithms::{self, Purpose, Rate};

/// Savings of the engine's operations in batches that fill all lanes of this CPU.
#[derive(Clone, Debug)]
pub struct FullBatch {
    tier: &'static str,
    rsa2048: Gain,
    p256: Gain,
    x25519: Gain,
}

/// Microseconds of one operation alone, and as its share of a full batch.
#[derive(Clone, Copy, Debug)]
struct Gain {
    alone: f64,
    shared: f64,
}

impl FullBatch {
    /// Measures the savings; `None` on a CPU without lanes.
    ///
    /// # Errors
    /// If BoringSSL fails for lack of memory.
    pub fn measure() -> Result<Option<Self>, Error> {
        let rates = algorithms::of_a_handshake()?;
        let of = |purpose, algorithm| rates_of(&rates, purpose, algorithm);
        let rsa = of(Purpose::Sign, "RSA-2048");
        let Some((_, tier)) = rsa.1 else { return Ok(None) };
        let gain = |(alone, shared): (f64, Option<(f64, &str)>)| Gain {
            alone,
            shared: shared.map_or(alone, |(shared, _)| shared),
        };
        let (p256, x25519) = (of(Purpose::Sign, "ECDSA P-256"), of(Purpose::Exchange, "X25519"));
        Ok(Some(Self { tier, rsa2048: gain(rsa), p256: gain(p256), x25519: gain(x25519) }))
    }

    /// Returns the costs of the same handshake with its operations in full batches. The overhead of an operation is
    /// unchanged: padding, hashing, handover.
    pub fn of(&self, costs: &Costs) -> Costs {
        let key = if costs.kind.suite == Suite::EcdheEcdsa { self.p256 } else { self.rsa2048 };
        let (key_operation, key_exchange) =
            (key.applied_to(costs.key_operation), self.x25519.applied_to(costs.key_exchange));
        let saved = costs.key_operation - key_operation + costs.key_exchange - key_exchange;
        Costs { by: self.tier, key_operation, key_exchange, total: costs.total - saved, ..costs.clone() }
    }
}

impl Gain {
    /// Returns the cost in a full batch; 0 for handshakes without the operation.
    fn applied_to(self, microseconds: f64) -> f64 {
        if microseconds == 0.0 { 0.0 } else { (microseconds - self.alone + self.shared).max(self.shared) }
    }
}

/// Returns microseconds in scalar code, and in the widest lanes with their name.
fn rates_of<'a>(rates: &'a [Rate], purpose: Purpose, algorithm: &str) -> (f64, Option<(f64, &'static str)>) {
    let of_it =
        || rates.iter().filter(move |rate: &&'a Rate| rate.purpose == purpose && rate.algorithm == algorithm);
    let is_scalar = |rate: &&Rate| matches!(rate.by, "scalar" | "engine");
    let alone = of_it().filter(is_scalar).map(|rate| rate.microseconds).fold(f64::INFINITY, f64::min);
    let lanes = of_it()
        .filter(|rate| !is_scalar(rate))
        .min_by(|one, other| one.microseconds.total_cmp(&other.microseconds));
    (alone, lanes.filter(|rate| rate.microseconds < alone).map(|rate| (rate.microseconds, rate.by)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::{HandshakeKind, Message, Side};

    #[test]
    fn an_operation_costs_its_share_and_what_is_around_it_stays() {
        let full = FullBatch {
            tier: "ifma",
            rsa2048: Gain { alone: 700.0, shared: 100.0 },
            p256: Gain { alone: 10.0, shared: 10.0 },
            x25519: Gain { alone: 40.0, shared: 15.0 },
        };
        let kind = HandshakeKind { suite: Suite::EcdheRsa, tls13: true, resumed: false };
        let costs = Costs {
            kind,
            side: Side::Server,
            by: "scalar",
            messages: vec![(Message::Certificate, 9.0)],
            key_operation: 703.0,
            key_exchange: 41.0,
            verification: 0.0,
            total: 753.0,
        };
        let shared = full.of(&costs);
        assert_eq!((shared.by, shared.key_operation, shared.key_exchange), ("ifma", 103.0, 16.0));
        assert_eq!((shared.total, shared.sum()), (128.0, 128.0));
        let resumed = Costs { key_operation: 0.0, ..costs };
        assert_eq!(full.of(&resumed).key_operation, 0.0);
    }
}
