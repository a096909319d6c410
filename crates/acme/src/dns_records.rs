//! TXT records that prove control of names while an order is in progress.

use crate::{AcmeError, dns_hook};
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// The records of one order. Dropping it starts a task that removes them.
pub(crate) struct Records {
    hook: Option<PathBuf>,
    there: Vec<Record>,
}

#[derive(Clone)]
struct Record {
    name: String,
    value: String,
}

impl Records {
    /// Starts without records; the hook adds and removes them.
    pub(crate) fn new(hook: Option<&Path>) -> Self {
        Self { hook: hook.map(Path::to_owned), there: Vec::new() }
    }

    /// Adds the record that proves control of a name.
    pub(crate) async fn add(&mut self, name: &str, value: String) -> Result<(), AcmeError> {
        let Some(hook) = &self.hook else { return Ok(()) };
        let record = Record { name: dns_hook::record_name(name), value };
        // Registered first: a hook that is interrupted may have added the record.
        self.there.push(record.clone());
        dns_hook::run(hook, "present", &record.name, &record.value).await
    }

    /// Removes all records.
    pub(crate) async fn remove(mut self) {
        if let Some(hook) = &self.hook {
            remove(hook, &mut self.there).await;
        }
    }
}

/// Removes the records one by one. When interrupted, the remaining ones stay listed. A leftover record does no harm.
async fn remove(hook: &Path, records: &mut Vec<Record>) {
    while let Some(record) = records.last() {
        if let Err(error) = dns_hook::run(hook, "cleanup", &record.name, &record.value).await {
            tracing::warn!(%error, "a challenge's TXT record could not be removed from DNS");
        }
        records.pop();
    }
}

/// An order may be interrupted at any point, most often by a reload.
impl Drop for Records {
    fn drop(&mut self) {
        let mut left = std::mem::take(&mut self.there);
        if let Some(hook) = self.hook.take()
            && !left.is_empty()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move { remove(&hook, &mut left).await });
        }
    }
}
