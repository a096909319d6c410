//! Keys on the device: uploaded once, wiped when they are released.

use crate::{
    KeySize, PrivateKey,
    driver::{Device, DeviceMemory, PinnedMemory, Stream, Unavailable},
    key::KernelSize,
};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use zeroize::Zeroize;

/// A key in the device's memory, which is wiped when this is dropped.
pub struct DeviceKey {
    store: Arc<KeyStore>,
    size: KeySize,
    seat: u32,
    /// Public, to refuse inputs that are not below it.
    pub(crate) n: Vec<u64>,
    pub(crate) e: u32,
}

/// Why a key is not on the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UploadError {
    /// The device is gone.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// As many keys of this size are there as were planned for; a released one makes room.
    #[error("the GPU has room for {0} keys of one size, and holds that many")]
    Full(usize),
}

/// The device's memory for keys, with a part for each size.
pub(crate) struct KeyStore {
    seats: usize,
    inner: Mutex<Inner>,
    device: Arc<Device>,
}

struct Inner {
    // Dropped in this order: the stream waits for what it still does.
    stream: Stream,
    staging: PinnedMemory,
    shelves: [Shelf; KeySize::ALL.len()],
}

struct Shelf {
    memory: DeviceMemory,
    /// Seats that were never taken begin here.
    fresh: u32,
    released: Vec<u32>,
}

impl KeyStore {
    /// Words that the device needs for so many keys of each size.
    pub(crate) fn words(seats: usize) -> usize {
        KeySize::ALL.iter().map(|size| size.key_words() * seats).sum()
    }

    pub(crate) fn new(device: &Arc<Device>, seats: usize) -> Result<Self, Unavailable> {
        let stream = Stream::new(device)?;
        let shelf = |size: KeySize| {
            let memory = DeviceMemory::new(device, size.key_words() * seats, &stream)?;
            Ok::<_, Unavailable>(Shelf { memory, fresh: 0, released: Vec::new() })
        };
        let shelves = [shelf(KeySize::Rsa2048)?, shelf(KeySize::Rsa3072)?, shelf(KeySize::Rsa4096)?];
        let staging = PinnedMemory::new(device, KeySize::Rsa4096.key_words())?;
        let inner = Mutex::new(Inner { stream, staging, shelves });
        Ok(Self { seats, inner, device: Arc::clone(device) })
    }

    pub(crate) fn upload(self: &Arc<Self>, key: &PrivateKey) -> Result<DeviceKey, UploadError> {
        self.device.enter()?;
        let mut guard = self.inner();
        let Inner { stream, staging, shelves } = &mut *guard;
        let shelf = &mut shelves[key.size as usize];
        let seat = match shelf.released.pop() {
            Some(seat) => seat,
            None if (shelf.fresh as usize) < self.seats => {
                shelf.fresh += 1;
                shelf.fresh - 1
            }
            None => return Err(UploadError::Full(self.seats)),
        };
        let words = key.words.len();
        staging.words_mut()[..words].copy_from_slice(&key.words);
        let sent = stream.send(&shelf.memory, seat as usize * words, staging, 0..words);
        let sent = sent.and(stream.wait());
        staging.words_mut()[..words].zeroize();
        sent?;
        Ok(DeviceKey { store: Arc::clone(self), size: key.size, seat, n: key.n.clone(), e: key.e })
    }

    /// Where the keys of this size are.
    pub(crate) fn address(&self, size: KeySize) -> u64 {
        self.inner().shelves[size as usize].memory.at(0)
    }

    /// Keys of this size that are on the device.
    pub(crate) fn held(&self, size: KeySize) -> usize {
        let inner = self.inner();
        let shelf = &inner.shelves[size as usize];
        shelf.fresh as usize - shelf.released.len()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeviceKey {
    /// The size of the modulus.
    pub fn size(&self) -> KeySize {
        self.size
    }

    /// The key's number on its shelf, if it is one of that store's.
    pub(crate) fn seat_in(&self, store: &Arc<KeyStore>) -> Option<u32> {
        Arc::ptr_eq(&self.store, store).then_some(self.seat)
    }
}

impl Drop for DeviceKey {
    /// A seat that could not be wiped is not given to another key; its device is lost, and its memory with it.
    fn drop(&mut self) {
        if self.store.device.enter().is_err() {
            return;
        }
        let mut guard = self.store.inner();
        let Inner { stream, shelves, .. } = &mut *guard;
        let shelf = &mut shelves[self.size as usize];
        let words = self.size.key_words();
        let start = self.seat as usize * words;
        if stream.clear(&shelf.memory, start..start + words).and(stream.wait()).is_ok() {
            shelf.released.push(self.seat);
        }
    }
}

impl fmt::Debug for DeviceKey {
    /// Says the size and nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceKey").field("size", &self.size).finish_non_exhaustive()
    }
}

impl fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyStore").field("seats", &self.seats).finish_non_exhaustive()
    }
}
