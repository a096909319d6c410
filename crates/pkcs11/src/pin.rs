//! Sources of PINs.

use crate::TokenError;
use quadrille_config::model::PinSource;
use zeroize::Zeroizing;

/// Reads the current PIN. The last line break of a file is not part of it.
pub(crate) fn read(source: &PinSource) -> Result<Zeroizing<Vec<u8>>, TokenError> {
    let unreadable =
        |place: String, reason: &str| TokenError::PinUnreadable { place, reason: reason.to_owned() };
    let (place, mut pin) = match source {
        PinSource::File(source) => {
            let place = source.to_string();
            let read = source.read().map_err(|error| unreadable(place.clone(), &error.to_string()))?;
            (place, read)
        }
        PinSource::Environment(name) => {
            let place = format!("the environment variable {name}");
            let value = std::env::var_os(name).ok_or_else(|| unreadable(place.clone(), "it is not set"))?;
            (place, Zeroizing::new(value.into_encoded_bytes()))
        }
    };
    for end in *b"\n\r" {
        if pin.last() == Some(&end) {
            pin.pop();
        }
    }
    if pin.is_empty() { Err(unreadable(place, "it is empty")) } else { Ok(pin) }
}

#[cfg(test)]
mod tests {
    use super::read;
    use quadrille_config::model::{PinSource, Source};

    #[test]
    fn line_breaks_at_the_end_are_removed() {
        let pin = |text: &str| read(&PinSource::File(Source::inline(text))).map(|pin| pin.to_vec());
        assert_eq!(pin("1234\n").unwrap(), b"1234");
        assert_eq!(pin("12 34\r\n").unwrap(), b"12 34");
        assert!(pin("\n").unwrap_err().to_string().contains("empty"));
        let missing = read(&PinSource::Environment("QUADRILLE_NO_SUCH_PIN".into())).unwrap_err();
        assert!(missing.to_string().contains("QUADRILLE_NO_SUCH_PIN"), "{missing}");
    }
}
