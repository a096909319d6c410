//! Criteria of access lists: `path_beg /api`, `hdr(host) -i example.com`.

use crate::{expression, ways::PathTest, yaml::Map};

/// A criterion: its name, argument, flags and values.
pub(super) struct Criterion<'l> {
    pub(super) name: &'l str,
    pub(super) argument: &'l str,
    pub(super) ignore_case: bool,
    pub(super) matching: &'l str,
    pub(super) values: Vec<&'l str>,
    pub(super) has_file: bool,
}

pub(super) fn criterion(line: &[String]) -> Criterion<'_> {
    let first = line.first().map_or("", String::as_str);
    let first = first.split(',').next().unwrap_or_default();
    let is_lower = line.first().is_some_and(|word| word.contains(",lower"));
    let (name, argument) = match first.split_once('(') {
        Some((name, argument)) => (name, argument.trim_end_matches(')')),
        None => (first, ""),
    };
    let mut criterion = Criterion {
        name,
        argument,
        ignore_case: is_lower,
        matching: "",
        values: Vec::new(),
        has_file: false,
    };
    // Converters other than these change the value.
    let known = line
        .first()
        .is_none_or(|word| word.split(',').skip(1).all(|one| one == "lower" || one == "field(1,:)"));
    let mut words = line.iter().skip(1).map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-i" => criterion.ignore_case = true,
            "-m" => criterion.matching = words.next().unwrap_or_default(),
            "-f" | "-M" => {
                criterion.has_file = true;
                words.next();
            }
            "-n" | "-u" => {}
            "--" => criterion.values.extend(words.by_ref()),
            value => criterion.values.push(value),
        }
    }
    if !known {
        criterion.name = "";
    }
    criterion
}

/// Returns the conditions on the path that the values of a criterion mean.
pub(super) fn paths(criterion: &Criterion<'_>) -> Option<Vec<PathTest>> {
    let kind = match (criterion.name, criterion.matching) {
        ("path" | "url", "" | "str") => "exact",
        ("path" | "url", "beg") | ("path_beg" | "url_beg", _) => "begins",
        ("path" | "url", "end") | ("path_end" | "url_end", _) => "ends",
        ("path" | "url", "sub") | ("path_sub" | "url_sub", _) => "contains",
        ("path" | "url", "reg") | ("path_reg" | "url_reg", _) => "regex",
        ("path" | "url", "dir") | ("path_dir" | "url_dir", _) => "segment",
        _ => return None,
    };
    let case = if criterion.ignore_case { "(?i)" } else { "" };
    let one = |value: &&str| {
        let literal = expression::literal(value);
        let plain = !criterion.ignore_case && value.starts_with('/');
        match kind {
            "exact" if plain && quadrille_config::values::path(value).is_ok() => {
                Some(PathTest::Exact((*value).to_owned()))
            }
            "exact" => Some(PathTest::Regex(format!("{case}{literal}"))),
            "begins" if plain => Some(PathTest::Begins((*value).to_owned())),
            "begins" => Some(PathTest::Regex(format!("{case}{literal}.*"))),
            "ends" if !criterion.ignore_case => Some(PathTest::Ends((*value).to_owned())),
            "ends" => Some(PathTest::Regex(format!("{case}.*{literal}"))),
            "contains" => Some(PathTest::Regex(format!("{case}.*{literal}.*"))),
            "segment" => {
                let inner = expression::literal(value.trim_matches('/'));
                Some(PathTest::Regex(format!("{case}(?:.*/)?{inner}(?:/.*)?")))
            }
            _ => expression::whole(value, criterion.ignore_case).ok().map(PathTest::Regex),
        }
    };
    criterion.values.iter().map(one).collect()
}

/// Returns conditions on headers, parameters and cookies, with the lists that they belong to. `host` is a list of its own.
pub(super) fn texts(criterion: &Criterion<'_>) -> Option<Vec<(&'static str, Map)>> {
    let (base, suffix) = match criterion.name.rsplit_once('_') {
        Some((base, suffix @ ("beg" | "end" | "sub" | "reg" | "cnt" | "dom"))) => (base, suffix),
        _ => (criterion.name, criterion.matching),
    };
    let (list, name) = match base {
        "hdr" | "req.hdr" | "req.fhdr" | "shdr" => ("headers", criterion.argument),
        "url_param" | "urlp" => ("queries", criterion.argument),
        "cook" | "req.cook" => ("cookies", criterion.argument),
        _ => return None,
    };
    let name = name.split(',').next().unwrap_or_default();
    let is_host = list == "headers" && name.eq_ignore_ascii_case("host");
    if suffix == "found" || (suffix == "cnt" && matches!(criterion.values[..], ["gt", "0"] | ["ge", "1"])) {
        return Some(vec![(list, Map::of("name", name))]);
    }
    let one = |value: &&str| {
        if is_host && matches!(suffix, "" | "str") {
            let host = value.split(':').next().unwrap_or_default();
            return quadrille_config::values::host(host).ok().map(|host| ("host", Map::of("host", host)));
        }
        if is_host && suffix == "end" && value.starts_with('.') {
            let expression = format!("(?i).*{}(?::[0-9]+)?", expression::literal(value));
            return Some((list, Map::of("name", "host").with("regex", expression)));
        }
        let (key, text) = match suffix {
            "" | "str" => ("exact", (*value).to_owned()),
            "beg" => ("prefix", (*value).to_owned()),
            "end" => ("suffix", (*value).to_owned()),
            "sub" => ("contains", (*value).to_owned()),
            "reg" => ("regex", expression::whole(value, criterion.ignore_case).ok()?),
            _ => return None,
        };
        let mut condition = Map::of("name", name).with(key, text);
        if criterion.ignore_case && key != "regex" {
            condition.set("ignore_case", "on");
        }
        Some((list, condition))
    };
    if criterion.values.is_empty() {
        return None;
    }
    criterion.values.iter().map(one).collect()
}

/// Returns whether a condition has no requirement on the value.
pub(super) fn is_presence(condition: &Map) -> bool {
    ["exact", "prefix", "suffix", "contains", "regex"].iter().all(|key| condition.get(key).is_none())
}

/// Returns whether a text is an address or a network.
pub(super) fn is_network(text: &str) -> bool {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    address.parse::<std::net::IpAddr>().is_ok() && bits.is_none_or(|bits| bits.parse::<u8>().is_ok())
}
