//! Keys on the device: uploaded once, wiped when they are released.

use crate::{
    KeySize, PrivateKey,
    driver::{Device, DeviceMemory, PinnedMemory, Stream, Unavailable},
    key::KernelSize,
};
use quadrille_rsa_numbers::{Modulus, RsaKey};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use zeroize::Zeroize;

/// RSA key in the device's memory, which is wiped on drop.
pub struct DeviceKey {
    slot: KeySlot,
    size: KeySize,
    /// Public modulus, for rejecting inputs that are not below it.
    n: Vec<u64>,
    pub(crate) e: u32,
}

/// Reason for which a key was not uploaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UploadError {
    /// The device was lost.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The limit for keys of this size is reached; releasing one makes room.
    #[error("the GPU's limit of {0} keys of one size is reached")]
    Full(usize),
}

/// Place of a key in the device's memory, which is wiped on drop.
pub(crate) struct KeySlot {
    store: Arc<KeyStore>,
    /// Index of the key's size.
    size: usize,
    slot: u32,
}

/// Device memory for keys, with a part for each size.
pub(crate) struct KeyStore {
    slots: usize,
    inner: Mutex<Inner>,
    device: Arc<Device>,
}

struct Inner {
    // Drop order: the stream waits for its pending commands.
    stream: Stream,
    staging: PinnedMemory,
    sizes: Vec<SlotsOfOneSize>,
}

/// Device memory for keys of one size, each in a slot.
struct SlotsOfOneSize {
    memory: DeviceMemory,
    /// Words of a key.
    words: usize,
    /// Index of the first slot that was never used.
    fresh: u32,
    released: Vec<u32>,
}

impl KeyStore {
    /// Creates a store for `slots` keys of each size, which is given in words.
    pub(crate) fn new(device: &Arc<Device>, slots: usize, sizes: &[usize]) -> Result<Self, Unavailable> {
        let stream = Stream::new(device)?;
        let slots_of = |&words: &usize| {
            let memory = DeviceMemory::new(device, words * slots, &stream)?;
            Ok::<_, Unavailable>(SlotsOfOneSize { memory, words, fresh: 0, released: Vec::new() })
        };
        let staging = PinnedMemory::new(device, sizes.iter().copied().max().unwrap_or(0))?;
        let sizes = sizes.iter().map(slots_of).collect::<Result<_, _>>()?;
        let inner = Mutex::new(Inner { stream, staging, sizes });
        Ok(Self { slots, inner, device: Arc::clone(device) })
    }

    /// Copies the words of a key of this size to the device.
    pub(crate) fn upload(self: &Arc<Self>, size: usize, words: &[u32]) -> Result<KeySlot, UploadError> {
        self.device.enter()?;
        let mut guard = self.inner();
        let Inner { stream, staging, sizes } = &mut *guard;
        let of_size = &mut sizes[size];
        assert_eq!(words.len(), of_size.words, "a key of another size");
        let slot = match of_size.released.pop() {
            Some(slot) => slot,
            None if (of_size.fresh as usize) < self.slots => {
                of_size.fresh += 1;
                of_size.fresh - 1
            }
            None => return Err(UploadError::Full(self.slots)),
        };
        staging.words_mut()[..words.len()].copy_from_slice(words);
        let sent = stream.send(&of_size.memory, slot as usize * words.len(), staging, 0..words.len());
        let sent = sent.and(stream.wait());
        staging.words_mut()[..words.len()].zeroize();
        sent?;
        Ok(KeySlot { store: Arc::clone(self), size, slot })
    }

    /// Address of the keys of this size.
    pub(crate) fn address(&self, size: usize) -> u64 {
        self.inner().sizes[size].memory.at(0)
    }

    /// Number of keys of this size on the device.
    pub(crate) fn held(&self, size: usize) -> usize {
        let inner = self.inner();
        let of_size = &inner.sizes[size];
        of_size.fresh as usize - of_size.released.len()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeySlot {
    /// Slot number, if the key belongs to that store.
    pub(crate) fn number_in(&self, store: &Arc<KeyStore>) -> Option<u32> {
        Arc::ptr_eq(&self.store, store).then_some(self.slot)
    }
}

impl Drop for KeySlot {
    /// A slot that could not be wiped is not reused; its device is lost, and its memory with it.
    fn drop(&mut self) {
        if self.store.device.enter().is_err() {
            return;
        }
        let mut guard = self.store.inner();
        let Inner { stream, sizes, .. } = &mut *guard;
        let of_size = &mut sizes[self.size];
        let start = self.slot as usize * of_size.words;
        if stream.clear(&of_size.memory, start..start + of_size.words).and(stream.wait()).is_ok() {
            of_size.released.push(self.slot);
        }
    }
}

impl DeviceKey {
    /// Uploads a key.
    pub(crate) fn new(store: &Arc<KeyStore>, key: &PrivateKey) -> Result<Self, UploadError> {
        let slot = store.upload(key.size as usize, &key.words)?;
        Ok(Self { slot, size: key.size, n: key.n.clone(), e: key.e })
    }

    /// Size of the modulus.
    pub fn size(&self) -> KeySize {
        self.size
    }

    /// Slot number of the key, if it belongs to that store.
    pub(crate) fn slot_in(&self, store: &Arc<KeyStore>) -> Option<u32> {
        self.slot.number_in(store)
    }
}

/// Words of a key of each size.
pub(crate) fn rsa_sizes() -> [usize; KeySize::ALL.len()] {
    KeySize::ALL.map(KernelSize::key_words)
}

impl RsaKey for DeviceKey {
    fn modulus(&self) -> Modulus<'_> {
        Modulus { size: self.size, n: &self.n }
    }
}

impl fmt::Debug for DeviceKey {
    /// Shows the size, but not the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceKey").field("size", &self.size).finish_non_exhaustive()
    }
}

impl fmt::Debug for KeyStore {
    /// Shows the limit, but not the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyStore").field("slots", &self.slots).finish_non_exhaustive()
    }
}
