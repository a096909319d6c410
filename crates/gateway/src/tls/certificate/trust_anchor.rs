//! Trust anchor identifiers (draft-ietf-tls-trust-anchor-ids-06): those of a chain, and those that a client requests.

use boring::ssl::{ClientHello, ExtensionType};
use boring_sys as ffi;
use quadrille_config::model::{TrustAnchor, TrustAnchorId};
use std::{fmt, iter};

/// Label of the PEM block with the certificate properties of a chain (section 7).
const PROPERTIES: &str = "CERTIFICATE PROPERTIES";

/// Types of certificate properties (section 7).
const ID: u16 = 0;
const GROUPS: u16 = 1;
const NEGOTIATION: u16 = 2;

/// Component in a pattern that stands for no upper bound.
const UNBOUNDED: u8 = 0x80;

/// The trust anchor of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ChainAnchor {
    id: Option<TrustAnchorId>,
    /// Patterns of the identifiers of groups that the anchor belongs to.
    groups: Vec<Box<[u8]>>,
    /// Whether the chain is only for clients that request the anchor.
    negotiated: bool,
}

impl ChainAnchor {
    /// Returns the configured anchor of a chain; `pem` is the file of the chain. `None` without a setting.
    ///
    /// # Errors
    /// If the file has no properties, invalid ones, or ones by which no client can request the chain.
    pub(super) fn new(setting: Option<&TrustAnchor>, pem: &[u8]) -> Result<Option<Self>, String> {
        let anchor = match setting {
            None => return Ok(None),
            Some(TrustAnchor::Id(id)) => Self { id: Some(id.clone()), groups: Vec::new(), negotiated: true },
            Some(TrustAnchor::Properties) => Self::read(&properties(pem)?)?,
        };
        match anchor.negotiated && anchor.id.is_none() && anchor.groups.is_empty() {
            true => {
                Err("the certificate properties require a trust anchor, and have no identifier".to_owned())
            }
            false => Ok(Some(anchor)),
        }
    }

    /// Returns the identifier.
    pub(crate) fn id(&self) -> Option<&TrustAnchorId> {
        self.id.as_ref()
    }

    /// Returns the patterns of groups.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[u8]> {
        self.groups.iter().map(AsRef::as_ref)
    }

    /// Returns whether the chain is only for clients that request the anchor.
    pub(crate) fn is_negotiated(&self) -> bool {
        self.negotiated
    }

    /// Reads a list of certificate properties. Unknown properties are skipped.
    fn read(list: &[u8]) -> Result<Self, String> {
        let invalid = || "the certificate properties are invalid".to_owned();
        let mut anchor = Self::default();
        let (mut rest, after) = prefixed(list).ok_or_else(invalid)?;
        let mut last = None;
        if !after.is_empty() {
            return Err(invalid());
        }
        while let Some((kind, tail)) = rest.split_first_chunk::<2>() {
            let kind = u16::from_be_bytes(*kind);
            let (data, tail) = prefixed(tail).ok_or_else(invalid)?;
            if last.is_some_and(|last| kind <= last) {
                return Err(invalid());
            }
            match kind {
                ID => anchor.id = Some(TrustAnchorId::from_bytes(data).ok_or_else(invalid)?),
                GROUPS => anchor.groups = patterns(data).ok_or_else(invalid)?,
                NEGOTIATION if data.is_empty() => anchor.negotiated = true,
                NEGOTIATION => return Err(invalid()),
                _ => {}
            }
            (last, rest) = (Some(kind), tail);
        }
        if rest.is_empty() { Ok(anchor) } else { Err(invalid()) }
    }

    /// Returns whether the identifier in a request stands for the anchor, or for a group that has it.
    fn is_requested_by(&self, id: &[u8]) -> bool {
        self.id.as_ref().is_some_and(|own| own.as_bytes() == id)
            || self.groups.iter().any(|pattern| matches(pattern, id))
    }
}

/// Writes the identifier.
impl fmt::Display for ChainAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "{id}"),
            None => f.write_str("of its groups"),
        }
    }
}

/// Returns whether the file of a chain has certificate properties.
pub(super) fn has_properties(pem: &[u8]) -> bool {
    properties(pem).is_ok()
}

fn properties(pem: &[u8]) -> Result<Vec<u8>, String> {
    let blocks = quadrille_pem::blocks(pem).map_err(|damage| damage.to_string())?;
    let found = blocks.iter().find(|block| block.label == PROPERTIES);
    let missing = || format!("there is no PEM block BEGIN {PROPERTIES}");
    found.map(|block| block.contents.to_vec()).ok_or_else(missing)
}

/// The trust anchors that a client requests in its ClientHello (section 5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestedAnchors<'a>(Option<&'a [u8]>);

impl<'a> RequestedAnchors<'a> {
    /// Reads the extension. BoringSSL rejects an invalid one later.
    pub(crate) fn read(hello: &'a ClientHello<'_>) -> Self {
        const EXTENSION: u16 = ffi::TLSEXT_TYPE_trust_anchors as u16;
        let extension = hello.get_extension(ExtensionType::from(EXTENSION));
        Self(extension.and_then(prefixed).map(|(list, _)| list))
    }

    /// Returns whether the client has sent the extension, which may be empty.
    pub(crate) fn is_sent(self) -> bool {
        self.0.is_some()
    }

    /// Returns whether the client requests the anchor.
    pub(super) fn include(self, anchor: &ChainAnchor) -> bool {
        short_items(self.0.unwrap_or_default()).any(|id| anchor.is_requested_by(id))
    }
}

/// Returns the items of a list, each with a length of one byte; those before the first invalid one.
fn short_items(mut list: &[u8]) -> impl Iterator<Item = &[u8]> {
    iter::from_fn(move || {
        let (length, tail) = list.split_first()?;
        let (item, tail) = tail.split_at_checked(usize::from(*length))?;
        list = tail;
        Some(item)
    })
}

/// Splits bytes with a length of two bytes before them from what follows.
fn prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// Reads the patterns of groups: one or more.
fn patterns(data: &[u8]) -> Option<Vec<Box<[u8]>>> {
    let (list, after) = prefixed(data)?;
    let patterns: Vec<Box<[u8]>> = short_items(list).map(Box::from).collect();
    let length: usize = patterns.iter().map(|pattern| pattern.len() + 1).sum();
    let is_whole = after.is_empty() && length == list.len() && !patterns.is_empty();
    (is_whole && patterns.iter().all(|pattern| is_pattern(pattern))).then_some(patterns)
}

fn is_pattern(mut pattern: &[u8]) -> bool {
    while !pattern.is_empty() {
        if bounds(&mut pattern).is_none() {
            return false;
        }
    }
    true
}

/// Returns whether an identifier has as many components as the pattern, each within its bounds.
fn matches(mut pattern: &[u8], mut id: &[u8]) -> bool {
    while !id.is_empty() {
        let Some((value, (least, most))) = component(&mut id).zip(bounds(&mut pattern)) else { return false };
        if is_less(value, least) || most.is_some_and(|most| is_less(most, value)) {
            return false;
        }
    }
    pattern.is_empty()
}

/// Splits the bounds of a component off a pattern; `None` in place of the upper one means unbounded.
fn bounds<'a>(pattern: &mut &'a [u8]) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let least = component(pattern)?;
    let most = match pattern.strip_prefix(&[UNBOUNDED]) {
        Some(tail) => {
            *pattern = tail;
            None
        }
        None => Some(component(pattern)?),
    };
    Some((least, most))
}

/// Splits a component of a relative object identifier off.
fn component<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let (first, tail) = bytes.split_at(end);
    *bytes = tail;
    (first[0] != 0x80).then_some(first)
}

/// Compares components: more bytes stand for a larger number.
fn is_less(one: &[u8], other: &[u8]) -> bool {
    (one.len(), one) < (other.len(), other)
}

#[cfg(test)]
mod tests {
    use super::{ChainAnchor, RequestedAnchors, TrustAnchor, matches};

    /// 32473.1, 32473.2, and the pattern `32473.{2-}`.
    const ONE: &[u8] = &[0x81, 0xfd, 0x59, 1];
    const TWO: &[u8] = &[0x81, 0xfd, 0x59, 2];
    const FROM_TWO: &[u8] = &[0x81, 0xfd, 0x59, 0x81, 0xfd, 0x59, 2, 0x80];

    fn list(items: &[&[u8]]) -> Vec<u8> {
        items
            .iter()
            .flat_map(|item| [&[u8::try_from(item.len()).expect("short")][..], *item].concat())
            .collect()
    }

    fn long(bytes: &[u8]) -> Vec<u8> {
        [&u16::try_from(bytes.len()).expect("short").to_be_bytes()[..], bytes].concat()
    }

    fn property(kind: u16, data: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &long(data)].concat()
    }

    fn read(properties: &[Vec<u8>]) -> Result<ChainAnchor, String> {
        ChainAnchor::read(&long(&properties.concat()))
    }

    #[test]
    fn properties_have_identifier_groups_and_negotiation() {
        let groups = property(1, &long(&list(&[FROM_TWO])));
        let anchor = read(&[property(0, ONE), groups.clone(), property(2, &[]), property(9, &[7])])
            .expect("properties");
        assert_eq!(anchor.id().expect("an identifier").to_string(), "32473.1");
        assert!(anchor.is_negotiated() && anchor.groups().eq([FROM_TWO]));
        assert!(!read(&[property(0, ONE)]).expect("properties").is_negotiated());
        for wrong in [
            vec![property(0, &[])],
            vec![property(0, &[0x80])],
            vec![property(1, &long(&[]))],
            vec![property(1, &list(&[FROM_TWO]))],
            vec![property(1, &long(&list(&[&FROM_TWO[..5]])))],
            vec![property(2, &[0])],
            vec![groups, property(0, ONE)],
            vec![property(0, ONE), property(0, ONE)],
            vec![vec![0]],
        ] {
            assert!(read(&wrong).is_err(), "{wrong:x?}");
        }
        assert!(ChainAnchor::read(&[]).is_err() && ChainAnchor::read(&[0, 1]).is_err());
        assert!(ChainAnchor::read(&[0, 0, 0]).is_err());
    }

    #[test]
    fn a_file_needs_properties_by_which_a_client_can_request_the_chain() {
        use base64ct::{Base64, Encoding};
        let pem = |bytes: &[u8]| {
            let text = Base64::encode_string(bytes);
            format!("-----BEGIN CERTIFICATE PROPERTIES-----\n{text}\n-----END CERTIFICATE PROPERTIES-----\n")
        };
        let new = |text: &str| ChainAnchor::new(Some(&TrustAnchor::Properties), text.as_bytes());
        let good = pem(&long(&[property(0, ONE), property(2, &[])].concat()));
        assert_eq!(new(&good).expect("properties").expect("an anchor").to_string(), "32473.1");
        assert!(new(&pem(&long(&property(2, &[])))).expect_err("no identifier").contains("no identifier"));
        assert!(new("").expect_err("no block").contains("no PEM block"));
        assert_eq!(ChainAnchor::new(None, good.as_bytes()), Ok(None));
    }

    /// The cases of BoringSSL's test of patterns.
    #[test]
    fn patterns_have_bounds_for_each_component() {
        for (pattern, id, expected) in [
            (&[][..], &[][..], true),
            (&[], &[1], false),
            (&[1, 1], &[1], true),
            (&[1, 1], &[2], false),
            (&[1, 1], &[1, 1], false),
            (&[1, 1, 1, 1], &[1], false),
            (&[1, 3, 2, 0x80], &[2, 0x81, 0], true),
            (&[1, 3, 2, 0x80], &[2, 1], false),
            (&[1, 3, 2, 0x80], &[4, 2], false),
            (&[0x81, 0, 0x82, 0], &[0x81, 0x7f], true),
            (&[0x81, 0, 0x82, 0], &[0x7f], false),
            (&[0x81, 0, 0x82, 0], &[0x82, 1], false),
            (&[1], &[1], false),
            (&[1, 1], &[0x80, 1], false),
        ] {
            assert_eq!(matches(pattern, id), expected, "{pattern:x?} {id:x?}");
        }
    }

    #[test]
    fn a_client_requests_identifiers_and_groups() {
        let anchor = read(&[property(0, ONE), property(1, &long(&list(&[FROM_TWO]))), property(2, &[])]);
        let anchor = anchor.expect("properties");
        let requests = |items: &[&[u8]]| RequestedAnchors(Some(&list(items))).include(&anchor);
        assert!(requests(&[ONE]) && requests(&[&[5], TWO]));
        assert!(!requests(&[]) && !requests(&[&[5], &ONE[..3]]));
        assert!(!RequestedAnchors(Some(&[4, 0x81])).include(&anchor));
        assert!(!RequestedAnchors::default().include(&anchor) && !RequestedAnchors::default().is_sent());
    }
}
