//! The TXT records that prove names while an order is under way.

use crate::{AcmeError, dns_hook};
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// The records of one order. Dropped, it has them removed beside all else.
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
    /// There are none yet; the hook adds and removes them.
    pub(crate) fn new(hook: Option<&Path>) -> Self {
        Self { hook: hook.map(Path::to_owned), there: Vec::new() }
    }

    /// Adds the record that proves a name.
    pub(crate) async fn add(&mut self, name: &str, value: String) -> Result<(), AcmeError> {
        let Some(hook) = &self.hook else { return Ok(()) };
        let record = Record { name: dns_hook::record_name(name), value };
        // First of all: a hook that is interrupted may have added it.
        self.there.push(record.clone());
        dns_hook::run(hook, "present", &record.name, &record.value).await
    }

    /// Removes all.
    pub(crate) async fn remove(mut self) {
        if let Some(hook) = &self.hook {
            remove(hook, &mut self.there).await;
        }
    }
}

/// A record that stays does no harm. Interrupted, it leaves those that are still there.
async fn remove(hook: &Path, records: &mut Vec<Record>) {
    while let Some(record) = records.last() {
        if let Err(error) = dns_hook::run(hook, "cleanup", &record.name, &record.value).await {
            tracing::warn!(%error, "a challenge's TXT record could not be removed from DNS");
        }
        records.pop();
    }
}

/// An order may be interrupted anywhere, by a reload above all.
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
