//! Backend of an engine, and its choice for each batch.

use crate::{Backend, Batching, Key, KeyType, MlKem768, Overflow, P256, Scalar, X25519};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Backend with which an engine was started. Its properties are queried on submitters' threads, and a panic in a
/// query counts as a negative result: no compute thread is lost.
pub(crate) struct Installed {
    backend: Box<dyn Backend>,
    name: &'static str,
    verifies: bool,
    pub(crate) overflow: Option<Arc<dyn Overflow>>,
}

/// Backend chosen for a batch.
pub(crate) struct Chosen<'a> {
    pub(crate) backend: &'a dyn Backend,
    pub(crate) name: &'static str,
    pub(crate) verifies: bool,
}

impl Installed {
    pub(crate) fn new(backend: impl Backend) -> Self {
        let overflow = backend.overflow();
        Self { name: backend.name(), verifies: backend.verifies(), overflow, backend: Box::new(backend) }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn batching(&self, key_type: KeyType) -> Batching {
        let ask = || {
            let batching = Batching::new(self.backend.width(key_type), self.backend.crossover(key_type));
            self.backend.prices(key_type).map_or(batching, |prices| batching.priced(prices))
        };
        catch_unwind(AssertUnwindSafe(ask)).unwrap_or(Batching::NEVER)
    }

    pub(crate) fn x25519(&self) -> Option<&dyn X25519> {
        catch_unwind(AssertUnwindSafe(|| self.backend.x25519())).ok().flatten()
    }

    pub(crate) fn p256(&self) -> Option<&dyn P256> {
        catch_unwind(AssertUnwindSafe(|| self.backend.p256())).ok().flatten()
    }

    pub(crate) fn ml_kem(&self) -> Option<&dyn MlKem768> {
        catch_unwind(AssertUnwindSafe(|| self.backend.ml_kem())).ok().flatten()
    }

    pub(crate) fn prepare(&self, key: &Key) {
        let _ = catch_unwind(AssertUnwindSafe(|| self.backend.prepare(key)));
    }

    pub(crate) fn choose(&self, scalar: bool) -> Chosen<'_> {
        if scalar {
            Chosen { backend: &Scalar, name: Scalar.name(), verifies: Scalar.verifies() }
        } else {
            Chosen { backend: &*self.backend, name: self.name, verifies: self.verifies }
        }
    }
}
