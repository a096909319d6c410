//! The older form, for migration: AES-256-CBC with its initialisation vector encrypted under a key of its own.
//!
//! `base64(ciphertext) # base64(encrypted vector)`: PKCS#7 padding, a random vector of 16 bytes, and AES-256 in ECB
//! mode for the vector, either the bare block or with a block of padding as openssl_encrypt leaves it. Nothing
//! authenticates it: whoever can write to the table can change what it decrypts to, and learns something from every
//! answer to a changed one. It is here to be read once more and replaced.

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

/// The two keys of the older form; erased when dropped.
pub struct Legacy {
    data: Zeroizing<[u8; 32]>,
    /// Erases itself.
    vector: Aes256,
}

const SEPARATOR: char = '#';

impl Legacy {
    /// From the key for the data and the key for the vectors, 32 bytes each.
    pub fn new(data: &[u8], vector: &[u8]) -> Result<Self, Error> {
        let data: &[u8; 32] = data.try_into().map_err(|_| Error::LegacyKey)?;
        let vector: &[u8; 32] = vector.try_into().map_err(|_| Error::LegacyKey)?;
        Ok(Self { data: Zeroizing::new(*data), vector: Aes256::new(vector.into()) })
    }

    /// The plaintext of an older field; [`Error::Unreadable`] for whatever is wrong with it.
    pub fn decrypt(&self, field: &[u8]) -> Result<Vec<u8>, Error> {
        self.open(field).ok_or(Error::Unreadable)
    }

    /// A field in the older form, for software that reads nothing else yet.
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
