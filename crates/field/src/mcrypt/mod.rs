//! Fields encrypted by PHP's mcrypt extension, for migration: read once, never written.
//!
//! They are not authenticated: a wrong key yields wrong bytes instead of an error. Unless fields are declared binary,
//! only UTF-8 text is therefore accepted.

mod rijndael;

use crate::Error;
use base64ct::{Base64, Base64Unpadded, Encoding as _};
use rijndael::Rijndael;
use zeroize::Zeroizing;

/// Parameters with which an application called mcrypt, and its encoding of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct McryptForm {
    /// Block length in bytes: 16 for MCRYPT_RIJNDAEL_128, 24 for 192, 32 for 256. It is independent of the key's
    /// length.
    pub block: usize,
    /// Mode of operation.
    pub mode: McryptMode,
    /// Padding of the last block.
    pub padding: McryptPadding,
    /// Encoding of the bytes.
    pub encoding: McryptEncoding,
    /// Whether fields may contain other data than UTF-8 text.
    pub is_binary: bool,
}

/// Mode of operation, by mcrypt's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McryptMode {
    /// MCRYPT_MODE_ECB.
    Ecb,
    /// MCRYPT_MODE_CBC.
    Cbc,
    /// MCRYPT_MODE_CFB, which is CFB with 8 bits.
    Cfb,
    /// `ncfb`: CFB with whole blocks.
    Ncfb,
}

/// Padding of the last block in ECB and CBC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McryptPadding {
    /// Zero bytes, as added by mcrypt itself; zero bytes at the end of a field are lost.
    Zero,
    /// PKCS#7 padding, added by the application: each byte is the number of padding bytes.
    Pkcs7,
}

/// Encoding of the bytes in the column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McryptEncoding {
    /// base64_encode, with or without padding.
    Base64,
    /// bin2hex.
    Hex,
    /// Raw bytes.
    Raw,
}

/// Location of the initialisation vector.
pub enum McryptVector {
    /// Before the ciphertext.
    Front,
    /// One vector for all fields; empty for zeros, which PHP before 5.6 used for a missing vector.
    Fixed(Vec<u8>),
}

/// Reads fields encrypted by mcrypt; the key is erased on drop.
pub struct Mcrypt {
    cipher: Rijndael,
    form: McryptForm,
    vector: McryptVector,
}

impl Mcrypt {
    /// Creates a reader. `key` has 1 to 32 bytes; it is padded with zeros to 16, 24 or 32, as PHP before 5.6 did.
    /// Returns [`Error::Mcrypt`] for other lengths, and for a vector that is not as long as a block.
    pub fn new(key: &[u8], form: McryptForm, vector: McryptVector) -> Result<Self, Error> {
        let length = match key.len() {
            1..=16 => 16,
            17..=24 => 24,
            25..=32 => 32,
            _ => return Err(Error::Mcrypt),
        };
        let vector = match vector {
            McryptVector::Fixed(bytes) if bytes.is_empty() => McryptVector::Fixed(vec![0; form.block]),
            McryptVector::Fixed(bytes) if bytes.len() != form.block => return Err(Error::Mcrypt),
            vector => vector,
        };
        if !matches!(form.block, 16 | 24 | 32) {
            return Err(Error::Mcrypt);
        }
        let mut padded = Zeroizing::new(vec![0; length]);
        padded[..key.len()].copy_from_slice(key);
        Ok(Self { cipher: Rijndael::new(&padded, form.block), form, vector })
    }

    /// Decrypts a field; returns [`Error::Unreadable`] for any defect.
    pub fn decrypt(&self, field: &[u8]) -> Result<Vec<u8>, Error> {
        self.open(field).ok_or(Error::Unreadable)
    }

    /// Returns whether it detects a wrong key, by whether the result is text.
    pub fn reads_only_text(&self) -> bool {
        !self.form.is_binary
    }

    fn open(&self, field: &[u8]) -> Option<Vec<u8>> {
        let bytes = decode(field, self.form.encoding)?;
        let (vector, ciphertext) = match &self.vector {
            // ECB has no vector.
            _ if self.form.mode == McryptMode::Ecb => (&[][..], &bytes[..]),
            McryptVector::Front => bytes.split_at_checked(self.form.block)?,
            McryptVector::Fixed(vector) => (&vector[..], &bytes[..]),
        };
        let mut plain = Zeroizing::new(ciphertext.to_vec());
        match self.form.mode {
            McryptMode::Ecb | McryptMode::Cbc => {
                self.open_blocks(&mut plain, vector)?;
                let length = self.unpadded(&plain)?;
                plain.truncate(length);
            }
            McryptMode::Cfb => self.open_cfb(&mut plain, vector, 1),
            McryptMode::Ncfb => self.open_cfb(&mut plain, vector, self.form.block),
        }
        let is_read =
            self.form.is_binary || std::str::from_utf8(&plain).is_ok_and(|text| !text.contains('\0'));
        is_read.then(|| plain.to_vec())
    }

    /// Decrypts whole blocks; `vector` is empty in ECB.
    fn open_blocks(&self, blocks: &mut [u8], vector: &[u8]) -> Option<()> {
        if blocks.is_empty() || !blocks.len().is_multiple_of(self.form.block) {
            return None;
        }
        let mut before = vector.to_vec();
        for block in blocks.chunks_exact_mut(self.cipher.block()) {
            let ciphertext = block.to_vec();
            self.cipher.decrypt(block);
            block.iter_mut().zip(&before).for_each(|(byte, before)| *byte ^= before);
            if self.form.mode == McryptMode::Cbc {
                before = ciphertext;
            }
        }
        Some(())
    }

    /// Decrypts CFB: `width` bytes with each encryption of the preceding bytes.
    fn open_cfb(&self, bytes: &mut [u8], vector: &[u8], width: usize) {
        let mut register = vector.to_vec();
        for part in bytes.chunks_mut(width) {
            let mut stream = Zeroizing::new(register.clone());
            self.cipher.encrypt(&mut stream);
            register.extend_from_slice(part);
            register.drain(..part.len());
            part.iter_mut().zip(stream.iter()).for_each(|(byte, stream)| *byte ^= stream);
        }
    }

    fn unpadded(&self, plain: &[u8]) -> Option<usize> {
        match self.form.padding {
            McryptPadding::Zero => Some(plain.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)),
            McryptPadding::Pkcs7 => {
                let padding = *plain.last()?;
                let length = plain.len().checked_sub(usize::from(padding))?;
                let is_whole = (1..=self.form.block).contains(&usize::from(padding));
                (is_whole && plain[length..].iter().all(|&byte| byte == padding)).then_some(length)
            }
        }
    }
}

fn decode(field: &[u8], encoding: McryptEncoding) -> Option<Vec<u8>> {
    let text = || std::str::from_utf8(field).ok().map(str::trim);
    match encoding {
        McryptEncoding::Raw => Some(field.to_vec()),
        McryptEncoding::Hex => base16ct::mixed::decode_vec(text()?).ok(),
        McryptEncoding::Base64 => {
            let text = text()?;
            Base64::decode_vec(text).or_else(|_| Base64Unpadded::decode_vec(text)).ok()
        }
    }
}
