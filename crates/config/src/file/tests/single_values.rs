//! Single values, as the file and the command line read them.

use crate::{
    enums::{Word, name, names, switch, word},
    model::{
        AccessLog, BackendChoice, Balance, Group, MemorySize, Mode, ProxyProtocolIn, ProxyProtocolOut,
        UpstreamProtocol, Version,
    },
    quote,
    size::{memory_limit, show_memory_limit, show_size, size},
    values::*,
};
use std::{fmt::Debug, num::NonZeroUsize, time::Duration};

#[test]
fn durations() {
    for (text, millis) in [
        ("0", 0.0),
        ("0s", 0.0),
        ("10ms", 10.0),
        ("0.010s", 10.0),
        ("1.5s", 1_500.0),
        ("2m", 120_000.0),
        ("12h", 43_200_000.0),
        ("7d", 604_800_000.0),
        ("1h30m", 5_400_000.0),
        ("250us", 0.25),
        ("250\u{b5}s", 0.25),
        ("1000000ns", 1.0),
    ] {
        assert_eq!(duration(text), Ok(Duration::from_secs_f64(millis / 1e3)), "{text}");
    }
    for text in [
        "", " ", "s", "1", "1.2.3s", "-1s", "+1s", "1e3s", "1 s", "1w", "1S", "inf", "NaN", "\u{661}s",
        "400d",
    ] {
        assert!(duration(text).is_err(), "{text}");
    }
    let forever = "9".repeat(400) + "d";
    assert_eq!(
        duration(&forever),
        Err(["(text of 401 bytes) is longer than a year", "write a shorter time"].into())
    );
    assert!(timeout("0ms").is_err());
}

#[test]
fn limits_of_memory() {
    let bytes = |bytes| MemorySize::Bytes(NonZeroUsize::new(bytes).unwrap());
    for (text, limit, shown) in [
        ("512MiB", bytes(512 << 20), "512MiB"),
        ("67108864", bytes(64 << 20), "64MiB"),
        ("80%", MemorySize::default(), "80%"),
        ("99.5%", MemorySize::Share(995_000), "99.5%"),
        ("off", MemorySize::Unlimited, "off"),
    ] {
        assert_eq!(memory_limit(text), Ok(limit), "{text}");
        assert_eq!(show_memory_limit(limit), shown);
    }
    for text in ["", "0", "0%", "101%", "-1%", "%", "50", "63MiB", "1Mi", "64 MiB", "half"] {
        assert!(memory_limit(text).is_err(), "{text}");
    }
}

#[test]
fn durations_are_shown_as_they_are_read() {
    for (nanos, text) in [
        (0, "0s"),
        (1, "1ns"),
        (10_000_000, "10ms"),
        (1_500_000_000, "1500ms"),
        (75_000_000_000, "75s"),
        (60_000_000_000, "1m"),
        (43_200_000_000_000, "12h"),
        (86_400_000_000_000, "1d"),
    ] {
        let value = Duration::from_nanos(nanos);
        assert_eq!(show_duration(value), text);
        assert_eq!(duration(text), Ok(value));
    }
}

#[test]
fn sizes() {
    for (bytes, text) in
        [(0, "0"), (1, "1"), (1500, "1500"), (65_536, "64KiB"), (3 << 20, "3MiB"), (1 << 30, "1GiB")]
    {
        assert_eq!(show_size(bytes), text);
        assert_eq!(size(text), Ok(bytes));
    }
    for text in ["", "KiB", "1kB", "64 KiB", "-1", "99999999999999999999", "99999999999999999GiB"] {
        assert!(size(text).is_err(), "{text}");
    }
}

#[test]
fn listen_addresses() {
    for (text, address) in [
        ("8443", "[::]:8443"),
        (":8443", "[::]:8443"),
        ("*:8443", "[::]:8443"),
        ("0.0.0.0:8443", "0.0.0.0:8443"),
        ("[::]:8443", "[::]:8443"),
        ("[::1]:0", "[::1]:0"),
        ("localhost:8443", "127.0.0.1:8443"),
    ] {
        assert_eq!(listen_address(text).map(|address| address.to_string()), Ok(address.into()), "{text}");
    }
    assert_eq!(admin_address("9901").map(|address| address.to_string()), Ok("127.0.0.1:9901".into()));
    for text in [
        "",
        ":",
        "65536",
        "host:1",
        "127.0.0.1",
        "::1",
        "[::1]",
        "0.0.0.0:",
        "0.0.0.0:+1",
        "1.2.3.4:1:2",
        "\u{664}",
    ] {
        assert!(listen_address(text).is_err(), "{text}");
    }
}

#[test]
fn server_addresses() {
    for text in ["127.0.0.1:80", "app:8080", "a-b.c_d.example:65535", "[::1]:1", "srv:_http._tcp.a.example"] {
        assert_eq!(server_address(text).as_deref(), Ok(text));
    }
    for text in [
        "",
        ":80",
        "app",
        "app:",
        "app:0",
        "app:65536",
        "::1",
        "[::1]",
        "[app]:1",
        "a b:1",
        "http://a:1",
        "a/b:1",
        "srv:_http._tcp",
    ] {
        assert!(server_address(text).is_err(), "{text}");
    }
}

#[test]
fn hosts_and_paths() {
    for (text, host) in [("*", None), ("Example.COM", Some("example.com")), ("*.a.b", Some("*.a.b"))] {
        assert_eq!(route_host(text), Ok(host.map(str::to_owned)));
    }
    for text in ["", "*.", "**.a", "a.*.b", "a..b", ".a", "a.", "a:1", "a/b", "http://a", "\u{e9}.fr", "a b"]
    {
        assert!(route_host(text).is_err(), "{text}");
    }
    assert_eq!(host("A.example"), Ok("a.example".into()));
    assert!(host("*").is_err() && host("*.a").is_err());
    assert_eq!(route_path("/"), Ok(None));
    assert_eq!(route_path("/a/b"), Ok(Some("/a/b".into())));
    for text in ["", "a", "/a?b", "/a#b", "/a*", "/a b", "/\u{e9}"] {
        assert!(route_path(text).is_err(), "{text}");
    }
}

#[test]
fn counts() {
    assert_eq!(count("20480").map(usize::from), Ok(20_480));
    assert_eq!(count_or_zero("0"), Ok(0));
    assert_eq!(threads("auto"), Ok(None));
    for text in ["", "0", "-1", "+1", "1.5", "1k", "1_000", " 1", "99999999999999999999", "\u{661}"] {
        assert!(count(text).is_err(), "{text}");
    }
    assert!(status("199").is_err() && status("600").is_err() && status("200") == Ok(200));
}

#[test]
fn access_logs() {
    assert_eq!(access_log("off"), Ok(AccessLog::Off));
    assert_eq!(access_log("stdout"), Ok(AccessLog::Stdout));
    assert_eq!(access_log("./off"), Ok(AccessLog::File("./off".into())));
    assert!(access_log("").is_err() && access_log("stderr").is_err());
}

/// Every name reads as its value, in any case, and the shown name is one of them.
#[test]
fn words_read_as_they_are_shown() {
    fn check<T: Word + Debug>() {
        for (text, value) in T::WORDS {
            assert_eq!(word(text), Ok(*value), "{text}");
            assert_eq!(word(&text.to_uppercase()), Ok(*value), "{text}");
            assert_eq!(word(name(*value)), Ok(*value));
        }
        assert!(word::<T>("").is_err());
    }
    check::<bool>();
    check::<Version>();
    check::<Group>();
    check::<Mode>();
    check::<Balance>();
    check::<BackendChoice>();
    check::<UpstreamProtocol>();
    check::<ProxyProtocolIn>();
    check::<ProxyProtocolOut>();
    assert_eq!(names::<Version>().collect::<Vec<_>>(), ["1.0", "1.1", "1.2", "1.3"]);
    assert_eq!(names::<bool>().collect::<Vec<_>>(), ["on", "off"]);
    assert_eq!(switch("maybe"), Err(["`maybe` is not a switch", "use on or off"].into()));
}

#[test]
fn what_may_be_a_key_is_not_quoted() {
    assert_eq!(quote("short\t"), "`short\\t`");
    assert_eq!(quote("-----BEGIN"), "(text of 10 bytes)");
    assert_eq!(quote("a\nb"), "(text of 3 bytes)");
    assert_eq!(quote(&"x".repeat(64)), "(text of 64 bytes)");
}
