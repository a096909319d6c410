//! Legacy format, for migration: AES-256-CBC with an initialisation vector that is encrypted under a separate key.
//!
//! `base64(ciphertext) # base64(encrypted vector)`: PKCS#7 padding, a random vector of 16 bytes, and AES-256 in ECB
//! mode for the vector, either the bare block or with a block of padding as openssl_encrypt leaves it. The format is
//! not authenticated: an attacker with write access to the table can change the plaintext, and learns from each
//! response to a changed field. It exists to be read once more and replaced.

use crate::{Error, random};
use aes::{Aes256, Block};
use base64ct::{Base64, Encoding};
use cbc::{
    Decryptor, Encryptor,
    cipher::{
        BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, KeyInit, KeyIvInit,
        block_padding::Pkcs7,
    },
};
use zeroize::{Zeroize, Zeroizing};

/// Two keys of the legacy format; erased on drop.
pub struct Legacy {
    data: Zeroizing<[u8; 32]>,
    /// Erases itself on drop.
    vector: Aes256,
}

const SEPARATOR: char = '#';

impl Legacy {
    /// Creates it from the data key and the vector key, 32 bytes each.
    pub fn new(data: &[u8], vector: &[u8]) -> Result<Self, Error> {
        let data: &[u8; 32] = data.try_into().map_err(|_| Error::LegacyKey)?;
        let vector: &[u8; 32] = vector.try_into().map_err(|_| Error::LegacyKey)?;
        Ok(Self { data: Zeroizing::new(*data), vector: Aes256::new(vector.into()) })
    }

    /// Decrypts a legacy field; returns [`Error::Unreadable`] for any defect.
    pub fn decrypt(&self, field: &[u8]) -> Result<Vec<u8>, Error> {
        self.open(field).ok_or(Error::Unreadable)
    }

    /// Encrypts a field in the legacy format, for software that cannot read any other yet.
    pub fn encrypt(&self, plain: &[u8]) -> Result<String, Error> {
        let mut vector = random::array::<16>()?;
        let ciphertext = Encryptor::<Aes256>::new((&*self.data).into(), (&*vector).into())
            .encrypt_padded_vec::<Pkcs7>(plain);
        self.vector.encrypt_block((&mut *vector).into());
        Ok(format!("{}{SEPARATOR}{}", Base64::encode_string(&ciphertext), Base64::encode_string(&*vector)))
    }

    fn open(&self, field: &[u8]) -> Option<Vec<u8>> {
        let (ciphertext, vector) = std::str::from_utf8(field).ok()?.split_once(SEPARATOR)?;
        let mut buffer = Base64::decode_vec(ciphertext).ok()?;
        let vector = self.open_vector(Base64::decode_vec(vector).ok()?)?;
        let plain =
            Decryptor::<Aes256>::new((&*self.data).into(), &vector).decrypt_padded_vec::<Pkcs7>(&buffer);
        buffer.zeroize();
        plain.ok()
    }

    fn open_vector(&self, encrypted: Vec<u8>) -> Option<Block> {
        let (blocks, []) = encrypted.as_chunks::<16>() else { return None };
        let mut blocks: Vec<Block> = blocks.iter().map(|&block| block.into()).collect();
        self.vector.decrypt_blocks(&mut blocks);
        match blocks[..] {
            [vector] => Some(vector),
            [vector, padding] => (padding == Block::from([16; 16])).then_some(vector),
            _ => None,
        }
    }
}
