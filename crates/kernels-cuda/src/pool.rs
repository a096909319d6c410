//! Lanes of a device: each runs one batch at a time, until the device is lost.

use crate::Unavailable;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Idle lanes, and whether the device is lost.
pub(crate) struct Pool<Lane> {
    idle: Mutex<Vec<Lane>>,
    freed: Condvar,
    lost: OnceLock<Unavailable>,
}

impl<Lane> Pool<Lane> {
    pub(crate) fn new(lanes: Vec<Lane>) -> Self {
        Self { idle: Mutex::new(lanes), freed: Condvar::new(), lost: OnceLock::new() }
    }

    /// Runs `batch` with a lane, for which it waits. After an error the lane is dropped, which waits for the device,
    /// and the device is lost.
    pub(crate) fn with(
        &self,
        batch: impl FnOnce(&mut Lane) -> Result<(), Unavailable>,
    ) -> Result<(), Unavailable> {
        let mut lane = self.take()?;
        let done = batch(&mut lane);
        match &done {
            Ok(()) => {
                self.idle().push(lane);
                self.freed.notify_one();
            }
            Err(reason) => self.lose(reason),
        }
        done
    }

    pub(crate) fn alive(&self) -> Result<(), Unavailable> {
        self.lost.get().map_or(Ok(()), |reason| Err(reason.clone()))
    }

    /// Rejects batches from now on.
    pub(crate) fn lose(&self, reason: &Unavailable) {
        let _ = self.lost.set(reason.clone());
        self.freed.notify_all();
    }

    fn take(&self) -> Result<Lane, Unavailable> {
        let mut idle = self.idle();
        loop {
            self.alive()?;
            match idle.pop() {
                Some(lane) => return Ok(lane),
                None => idle = self.freed.wait(idle).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
