//! Conditions of HAProxy: access lists, and the conjunctions that they make.

use super::{
    criterion::{Criterion, criterion, is_network, is_presence, paths, texts},
    section::Line,
};
use crate::{
    ways::{Conjunction, PathTest, both},
    yaml::{Map, Value},
};
use std::collections::BTreeMap;

/// Named access lists: the lines of each name.
pub(super) type Lists<'a> = BTreeMap<&'a str, Vec<&'a Line>>;

/// Returns the alternatives of a condition, of which one must hold, on connections with or without TLS.
pub(super) fn alternatives(
    words: &[String],
    negated: bool,
    lists: &Lists<'_>,
    tls: bool,
) -> Vec<Conjunction> {
    let mut alternatives = Vec::new();
    for part in words.split(|word| word == "||" || word == "or") {
        alternatives.push(terms(part, lists));
    }
    if negated {
        // Not (a and b, or c): one term of each alternative does not hold.
        let mut made: Vec<Vec<Term>> = vec![Vec::new()];
        for terms in alternatives {
            let with = |term: &Term, chosen: &Vec<Term>| {
                let mut chosen = chosen.clone();
                chosen.push(Term { negated: !term.negated, ..term.clone() });
                chosen
            };
            made = terms
                .iter()
                .flat_map(|term| made.iter().map(move |chosen| with(term, chosen)))
                .take(64)
                .collect();
        }
        alternatives = made;
    }
    alternatives.iter().flat_map(|terms| conjunctions(terms, tls)).collect()
}

/// A criterion with its values, which are alternatives.
#[derive(Clone, Debug)]
struct Term {
    negated: bool,
    /// Lines of an access list: criterion and values of each.
    lines: Vec<Vec<String>>,
}

fn terms(words: &[String], lists: &Lists<'_>) -> Vec<Term> {
    let (mut terms, mut negated, mut at) = (Vec::new(), false, 0);
    while let Some(word) = words.get(at) {
        at += 1;
        if word == "!" {
            negated = !negated;
            continue;
        }
        let (name, is_negated) = match word.strip_prefix('!') {
            Some(name) => (name, !negated),
            None => (word.as_str(), negated),
        };
        let lines = if name == "{" {
            let end = words[at..].iter().position(|word| word == "}").unwrap_or(words.len() - at);
            let inside = words[at..at + end].to_vec();
            at += end + 1;
            vec![inside]
        } else {
            match lists.get(name) {
                Some(lines) => lines.iter().map(|line| line.words[2..].to_vec()).collect(),
                None => vec![vec![predefined(name).to_owned()]],
            }
        };
        terms.push(Term { negated: is_negated, lines });
        negated = false;
    }
    terms
}

fn predefined(name: &str) -> &str {
    match name {
        "TRUE" => "always_true",
        "FALSE" => "always_false",
        other => other,
    }
}

/// Returns the conjunctions of terms; several where an access list has alternatives of different kinds.
fn conjunctions(terms: &[Term], tls: bool) -> Vec<Conjunction> {
    let mut made = vec![Conjunction::default()];
    for term in terms {
        let mut next = Vec::new();
        for conjunction in &made {
            if term.negated {
                // None of the alternatives holds.
                let mut all = vec![conjunction.clone()];
                for line in &term.lines {
                    all = all.iter().flat_map(|one| one.without(line, tls)).collect();
                }
                next.extend(all);
            } else {
                for line in &term.lines {
                    next.extend(conjunction.with(line, tls));
                }
            }
        }
        made = next;
        made.truncate(64);
    }
    made
}

impl Conjunction {
    /// Adds a criterion; several results are alternatives, and none means that it never holds.
    fn with(&self, line: &[String], tls: bool) -> Vec<Self> {
        let mut one = self.clone();
        let criterion = criterion(line);
        let Criterion { name, values, .. } = &criterion;
        if criterion.has_file {
            return vec![self.unknown(line)];
        }
        if let Some(paths) = paths(&criterion) {
            let paths: Vec<_> = paths.into_iter().map(|path| self.with_path(path, line)).collect();
            return paths.into_iter().flatten().collect();
        }
        match *name {
            "always_true" => {}
            "always_false" => return Vec::new(),
            "ssl_fc" => return if tls { vec![one] } else { Vec::new() },
            "src" if values.iter().all(|value| is_network(value)) => {
                let networks = values.iter().map(|&value| value.to_owned()).collect();
                one.src = Some(networks);
            }
            "method" => one.others.set("methods", values.clone()),
            "METH_GET" => one.others.set("methods", vec!["GET", "HEAD"]),
            "METH_POST" | "METH_PUT" | "METH_DELETE" | "METH_HEAD" | "METH_OPTIONS" | "METH_PATCH" => {
                one.others.set("methods", vec![name.trim_start_matches("METH_")]);
            }
            "http_auth" | "http_auth_group" => one.users = Some((criterion.argument.to_owned(), true)),
            "ssl_c_used" | "ssl_fc_has_crt" => one.certificate = Some(true),
            "ssl_c_verify" if values[..] == ["0"] => one.certificate = Some(true),
            "sc_http_req_rate" | "sc0_http_req_rate" | "sc1_http_req_rate" | "src_http_req_rate"
                if matches!(values[..], ["gt" | "ge", _]) =>
            {
                match values[1].parse::<u64>() {
                    Ok(number) => one.above = Some(number),
                    Err(_) => return vec![self.unknown(line)],
                }
            }
            "req_ssl_sni" | "req.ssl_sni" | "ssl_fc_sni"
                if matches!(criterion.matching, "" | "str" | "end") =>
            {
                one.sni = match criterion.matching {
                    "end" => {
                        values.iter().map(|value| format!("*.{}", value.trim_start_matches('.'))).collect()
                    }
                    _ => values.iter().map(|&value| value.to_owned()).collect(),
                };
            }
            "req_ssl_hello_type" | "req.ssl_hello_type" | "req.ssl_ver" | "HTTP" | "req_len" | "req.len" => {}
            _ => match texts(&criterion) {
                Some(conditions) => return self.with_texts(conditions, line),
                None => return vec![self.unknown(line)],
            },
        }
        vec![one]
    }

    /// Adds the negation of a criterion; none means that it always holds.
    fn without(&self, line: &[String], tls: bool) -> Vec<Self> {
        let mut one = self.clone();
        let criterion = criterion(line);
        let values = &criterion.values;
        if criterion.has_file {
            return vec![self.unknown(line)];
        }
        match criterion.name {
            "always_true" => return Vec::new(),
            "always_false" => {}
            "ssl_fc" => return if tls { Vec::new() } else { vec![one] },
            "src" if values.iter().all(|value| is_network(value)) => {
                one.not_src.extend(values.iter().map(|&value| value.to_owned()));
            }
            "method" => one.not_methods.extend(values.iter().map(|&value| value.to_owned())),
            "METH_GET" => one.not_methods.extend(["GET".to_owned(), "HEAD".to_owned()]),
            "METH_POST" => one.not_methods.push("POST".to_owned()),
            "http_auth" | "http_auth_group" => one.users = Some((criterion.argument.to_owned(), false)),
            "ssl_c_used" | "ssl_fc_has_crt" => one.certificate = Some(false),
            "ssl_c_verify" if values[..] == ["0"] => one.certificate = Some(false),
            _ => return self.without_texts(&criterion, line),
        }
        vec![one]
    }

    /// Adds that a header, parameter or cookie is missing or has none of the values.
    fn without_texts(&self, criterion: &Criterion<'_>, line: &[String]) -> Vec<Self> {
        let Some(conditions) = texts(criterion).filter(|all| !all.iter().any(|(list, _)| *list == "host"))
        else {
            return vec![self.unknown(line)];
        };
        let mut all = vec![self.clone()];
        for (list, condition) in conditions {
            let mut next = Vec::new();
            for one in &all {
                let mut missing = one.clone();
                let name = condition.get("name").cloned().unwrap_or_else(|| "".into());
                missing.others.push(list, Map::of("name", name).with("present", "off"));
                next.push(missing);
                if !is_presence(&condition) {
                    let mut other = one.clone();
                    other.others.push(list, condition.clone().with("invert", "on"));
                    next.push(other);
                }
            }
            all = next;
        }
        all
    }

    fn unknown(&self, line: &[String]) -> Self {
        let mut one = self.clone();
        one.unknown.push(line.join(" "));
        one
    }

    fn with_path(&self, path: PathTest, line: &[String]) -> Option<Self> {
        let mut one = self.clone();
        match &self.path {
            None => one.path = Some(path),
            Some(known) => match both(known, &path) {
                Some(merged) => one.path = Some(merged?),
                None => return Some(self.unknown(line)),
            },
        }
        Some(one)
    }

    fn with_texts(&self, conditions: Vec<(&'static str, Map)>, line: &[String]) -> Vec<Self> {
        let hosts: Vec<_> = conditions.iter().filter(|(list, _)| *list == "host").collect();
        if hosts.len() == conditions.len() {
            let names = hosts.iter().filter_map(|(_, map)| match map.get("host") {
                Some(Value::Text(host)) => Some(host.clone()),
                _ => None,
            });
            let names: Vec<_> = names.collect();
            let mut one = self.clone();
            if !one.hosts.is_empty() {
                one.hosts.retain(|host| names.contains(host));
                return if one.hosts.is_empty() { vec![self.unknown(line)] } else { vec![one] };
            }
            one.hosts = names;
            return vec![one];
        }
        let with = |(list, condition): (&'static str, Map)| {
            let mut one = self.clone();
            one.others.push(list, condition);
            one
        };
        conditions.into_iter().map(with).collect()
    }
}
