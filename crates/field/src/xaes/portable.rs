//! XAES-256-GCM by RustCrypto: AES-NI and VAES, ARMv8, or constant-time software, chosen at run time.

use aes::{Aes256Enc, cipher::BlockCipherEncrypt};
use aes_gcm::{
    AesGcm,
    aead::{AeadInOut, KeyInit, consts::U12},
};
use zeroize::{Zeroize, Zeroizing};

// Only the encrypting half of AES: the decrypting key schedule would take 70 ns, and GCM never uses it.
type Aes256Gcm = AesGcm<Aes256Enc, U12>;

/// Key from which message keys are derived, expanded.
pub(super) struct Root {
    /// Erases itself on drop.
    cipher: Aes256Enc,
    k1: [u8; 16],
}

impl Root {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let cipher = Aes256Enc::new(key.into());
        let mut l = [0; 16];
        cipher.encrypt_block((&mut l).into());
        let k1 = doubled(l);
        l.zeroize();
        Self { cipher, k1 }
    }

    /// Returns CMAC's subkey K1.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn k1(&self) -> &[u8; 16] {
        &self.k1
    }

    /// Encrypts `text` in place and returns the tag.
    pub(super) fn seal(&self, nonce: &[u8; 24], aad: &[u8], text: &mut [u8]) -> [u8; 16] {
        let (cipher, nonce) = self.derive(nonce);
        let tag = cipher.encrypt_inout_detached(nonce.into(), aad, text.into());
        tag.expect("the text is shorter than GCM's limit of 64 GiB").into()
    }

    /// Decrypts `text` in place if `tag` is right; otherwise leaves it unchanged and returns false.
    #[must_use]
    pub(super) fn open(&self, nonce: &[u8; 24], aad: &[u8], text: &mut [u8], tag: &[u8; 16]) -> bool {
        let (cipher, nonce) = self.derive(nonce);
        cipher.decrypt_inout_detached(nonce.into(), aad, text.into(), tag.into()).is_ok()
    }

    /// Derives AES-256-GCM's key, and its nonce.
    fn derive<'a>(&self, nonce: &'a [u8; 24]) -> (Aes256Gcm, &'a [u8; 12]) {
        let (context, gcm_nonce) = nonce.split_at(12);
        let mut key = Zeroizing::new([0; 32]);
        for (half, counter) in key.as_chunks_mut::<16>().0.iter_mut().zip([1, 2]) {
            half[..4].copy_from_slice(&[0, counter, b'X', 0]);
            half[4..].copy_from_slice(context);
            for (byte, subkey) in half.iter_mut().zip(self.k1) {
                *byte ^= subkey;
            }
            self.cipher.encrypt_block(half.into());
        }
        (Aes256Gcm::new((&*key).into()), gcm_nonce.try_into().expect("24 - 12 = 12"))
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.k1.zeroize();
    }
}

/// Doubles `block` in CMAC's field (SP 800-38B, section 6.1), without a branch.
fn doubled(block: [u8; 16]) -> [u8; 16] {
    let number = u128::from_be_bytes(block);
    let carry = (number >> 127) * 0x87;
    ((number << 1) ^ carry).to_be_bytes()
}

#[cfg(test)]
pub(super) fn gcm_seal(key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> [u8; 16] {
    let cipher = Aes256Gcm::new(key.into());
    cipher.encrypt_inout_detached(nonce.into(), aad, text.into()).expect("a short text").into()
}

#[cfg(test)]
pub(super) fn gcm_open(
    key: &[u8; 32],
    nonce: &[u8; 12],
    aad: &[u8],
    text: &mut [u8],
    tag: &[u8; 16],
) -> bool {
    let cipher = Aes256Gcm::new(key.into());
    cipher.decrypt_inout_detached(nonce.into(), aad, text.into(), tag.into()).is_ok()
}
