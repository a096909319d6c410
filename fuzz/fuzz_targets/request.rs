//! Host and path of a request: one normal form for all spellings that a server may treat as equal.

#![no_main]
#![allow(dead_code, reason = "the gateway uses the rest")]

use http::{HeaderMap, HeaderValue, Uri, Version, header::HOST};
use libfuzzer_sys::fuzz_target;
use quadrille_config::model::{Ambiguous, Paths};

#[path = "../../crates/gateway/src/http/request/authority.rs"]
mod authority;
#[path = "../../crates/gateway/src/http/request/path_normalization.rs"]
mod path_normalization;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let split = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (host, target) = (&bytes[..split], bytes.get(split + 1..).unwrap_or_default());
    let Ok(uri) = Uri::try_from(target) else { return };
    check_authority(&uri, host, choice);
    let paths = Paths {
        normalize: choice & 4 == 0,
        merge_slashes: choice & 8 == 0,
        escaped_slashes: if choice & 16 == 0 { Ambiguous::Reject } else { Ambiguous::Keep },
        parameters: if choice & 32 == 0 { Ambiguous::Reject } else { Ambiguous::Keep },
        ..Paths::default()
    };
    if uri.path().starts_with('/') {
        check_path(uri.path(), &paths);
    }
});

fn check_authority(uri: &Uri, host: &[u8], choice: u8) {
    let mut headers = HeaderMap::new();
    if let Ok(host) = HeaderValue::from_bytes(host) {
        headers.insert(HOST, host);
    }
    let version = [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2][usize::from(choice & 3) % 3];
    if let Ok(Some(authority)) = authority::effective(uri, &headers, version) {
        let text = authority.as_str();
        assert!(!text.is_empty() && text.is_ascii(), "{text}");
        assert!(!text.contains(['@', '/', ' ', ',', '%', '\\']), "{text}");
        let name = text.split(':').next().unwrap_or_default();
        assert!(text.starts_with('[') || !name.ends_with('.'), "{text}");
        let header = authority.to_header().expect("a header");
        assert_eq!(header.as_bytes(), text.as_bytes());
    }
}

fn check_path(path: &str, paths: &Paths) {
    let Ok(normal) = path_normalization::normalized(path, paths) else { return };
    let normal = normal.as_deref().unwrap_or(path);
    assert!(normal.starts_with('/'), "{path} -> {normal}");
    if paths.normalize {
        assert!(normal.split('/').all(|segment| segment != "." && segment != ".."), "{path} -> {normal}");
    }
    if paths.merge_slashes {
        assert!(!normal.contains("//"), "{path} -> {normal}");
    }
    let again = path_normalization::normalized(normal, paths).expect("a normal path is accepted");
    assert!(again.is_none_or(|again| again == normal), "{path} -> {normal} is not normal");
}
