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

/// Key in the device's memory, which is wiped on drop.
pub struct DeviceKey {
    store: Arc<KeyStore>,
    size: KeySize,
    slot: u32,
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
    sizes: [SlotsOfOneSize; KeySize::ALL.len()],
}

/// Device memory for keys of one size, each in a slot.
struct SlotsOfOneSize {
    memory: DeviceMemory,
    /// Index of the first slot that was never used.
    fresh: u32,
    released: Vec<u32>,
}

impl KeyStore {
    /// Number of words on the device for this many keys of each size.
    pub(crate) fn words(slots: usize) -> usize {
        KeySize::ALL.iter().map(|size| size.key_words() * slots).sum()
    }

    pub(crate) fn new(device: &Arc<Device>, slots: usize) -> Result<Self, Unavailable> {
        let stream = Stream::new(device)?;
        let slots_of = |size: KeySize| {
            let memory = DeviceMemory::new(device, size.key_words() * slots, &stream)?;
            Ok::<_, Unavailable>(SlotsOfOneSize { memory, fresh: 0, released: Vec::new() })
        };
        let sizes = [slots_of(KeySize::Rsa2048)?, slots_of(KeySize::Rsa3072)?, slots_of(KeySize::Rsa4096)?];
        let staging = PinnedMemory::new(device, KeySize::Rsa4096.key_words())?;
        let inner = Mutex::new(Inner { stream, staging, sizes });
        Ok(Self { slots, inner, device: Arc::clone(device) })
    }

    pub(crate) fn upload(self: &Arc<Self>, key: &PrivateKey) -> Result<DeviceKey, UploadError> {
        self.device.enter()?;
        let mut guard = self.inner();
        let Inner { stream, staging, sizes } = &mut *guard;
        let of_size = &mut sizes[key.size as usize];
        let slot = match of_size.released.pop() {
            Some(slot) => slot,
            None if (of_size.fresh as usize) < self.slots => {
                of_size.fresh += 1;
                of_size.fresh - 1
            }
            None => return Err(UploadError::Full(self.slots)),
        };
        let words = key.words.len();
        staging.words_mut()[..words].copy_from_slice(&key.words);
        let sent = stream.send(&of_size.memory, slot as usize * words, staging, 0..words);
        let sent = sent.and(stream.wait());
        staging.words_mut()[..words].zeroize();
        sent?;
        Ok(DeviceKey { store: Arc::clone(self), size: key.size, slot, n: key.n.clone(), e: key.e })
    }

    /// Address of the keys of this size.
    pub(crate) fn address(&self, size: KeySize) -> u64 {
        self.inner().sizes[size as usize].memory.at(0)
    }

    /// Number of keys of this size on the device.
    pub(crate) fn held(&self, size: KeySize) -> usize {
        let inner = self.inner();
        let of_size = &inner.sizes[size as usize];
        of_size.fresh as usize - of_size.released.len()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeviceKey {
    /// Size of the modulus.
    pub fn size(&self) -> KeySize {
        self.size
    }

    /// Slot number of the key, if it belongs to that store.
    pub(crate) fn slot_in(&self, store: &Arc<KeyStore>) -> Option<u32> {
        Arc::ptr_eq(&self.store, store).then_some(self.slot)
    }
}

impl RsaKey for DeviceKey {
    fn modulus(&self) -> Modulus<'_> {
        Modulus { size: self.size, n: &self.n }
    }
}

impl Drop for DeviceKey {
    /// A slot that could not be wiped is not reused; its device is lost, and its memory with it.
    fn drop(&mut self) {
        if self.store.device.enter().is_err() {
            return;
        }
        let mut guard = self.store.inner();
        let Inner { stream, sizes, .. } = &mut *guard;
        let of_size = &mut sizes[self.size as usize];
        let words = self.size.key_words();
        let start = self.slot as usize * words;
        if stream.clear(&of_size.memory, start..start + words).and(stream.wait()).is_ok() {
            of_size.released.push(self.slot);
        }
    }
}

impl fmt::Debug for DeviceKey {
    /// Shows the size, but not the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceKey").field("size", &self.size).finish_non_exhaustive()
    }
}

impl fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyStore").field("slots", &self.slots).finish_non_exhaustive()
    }
}
