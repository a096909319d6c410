//! Guards of data that is held in memory.

use super::{
    holder::Holder,
    meter::Purpose,
    monitor::{METER, grown},
};
use std::sync::Arc;

/// Counts a change of the data that is held for a purpose.
pub(crate) fn count(purpose: Purpose, before: usize, now: usize) {
    if METER.change(purpose, before, now) {
        grown();
    }
}

/// A guard of data that is held for a purpose; the data is counted until the guard is dropped. A guard without data
/// costs nothing.
#[derive(Debug)]
pub(crate) struct Held {
    purpose: Purpose,
    bytes: usize,
    /// The exchange that the data belongs to, if it is known.
    holder: Option<Arc<Holder>>,
}

impl Held {
    /// Creates a guard without data.
    pub(crate) const fn nothing(purpose: Purpose) -> Self {
        Self { purpose, bytes: 0, holder: None }
    }

    /// Creates a guard of this number of bytes.
    pub(crate) fn bytes(purpose: Purpose, bytes: usize) -> Self {
        let mut held = Self::nothing(purpose);
        held.set(bytes);
        held
    }

    /// Sets the number of bytes.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        let before = std::mem::replace(&mut self.bytes, bytes);
        if let Some(holder) = &self.holder {
            holder.change(before, bytes);
        }
        count(self.purpose, before, bytes);
    }

    /// Attributes the data to an exchange.
    pub(crate) fn belongs_to(&mut self, holder: &Arc<Holder>) {
        let before = self.holder.replace(Arc::clone(holder));
        if self.bytes > 0 {
            before.iter().for_each(|before| before.change(self.bytes, 0));
            holder.change(0, self.bytes);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_counts_for_its_exchange_until_it_is_dropped() {
        let [first, second] = [(); 2].map(|()| Arc::<Holder>::default());
        let mut held = Held::bytes(Purpose::Retry, 100);
        held.belongs_to(&first);
        held.set(300);
        assert_eq!((first.held(), METER.held(Purpose::Retry)), (300, 300));
        held.belongs_to(&second);
        held.set(50);
        assert_eq!((first.held(), second.held()), (0, 50));
        drop(held);
        assert_eq!((second.held(), METER.held(Purpose::Retry)), (0, 0));
    }
}
