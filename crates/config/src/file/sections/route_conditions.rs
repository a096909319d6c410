//! Which requests a route is for, beyond its host and path: headers.

use crate::{
    Field,
    file::{
        mapping::Mapping,
        schema::{Key, Preset, Section},
    },
    model::{HeaderMatch, HeaderRule, TextMatch, TextRule},
    values,
    words::switch,
};

pub(super) const HEADER: Section = Section {
    path: "listeners[].routes[].headers[]",
    about: "A condition on a header of the request. Several values of a header count as one, joined by commas. Without \
            any of the conditions, the header must be there.",
    keys: &[
        Key { name: "name", value: "name of a header", preset: Preset::Required, about: "In any case." },
        Key {
            name: "exact",
            value: "text",
            preset: Preset::Means("none"),
            about: "The value is exactly this.",
        },
        Key {
            name: "prefix",
            value: "text",
            preset: Preset::Means("none"),
            about: "The value begins with this.",
        },
        Key {
            name: "suffix",
            value: "text",
            preset: Preset::Means("none"),
            about: "The value ends with this.",
        },
        Key {
            name: "contains",
            value: "text",
            preset: Preset::Means("none"),
            about: "The value has this in it.",
        },
        Key {
            name: "regex",
            value: "regular expression",
            preset: Preset::Means("none"),
            about: "The whole value matches; as in RE2, without look-around.",
        },
        Key {
            name: "present",
            value: "`on` or `off`",
            preset: Preset::Means("`on`"),
            about: "Whether the header must be there, or must not.",
        },
        Key {
            name: "ignore_case",
            value: "`on` or `off`",
            preset: Preset::Is("off"),
            about: "ASCII letters match in either case.",
        },
        Key {
            name: "invert",
            value: "`on` or `off`",
            preset: Preset::Is("off"),
            about: "The header is there and its value is otherwise.",
        },
    ],
};

/// The conditions of a route.
pub(super) fn headers(field: &Field<'_>) -> Vec<HeaderMatch> {
    field.items().iter().filter_map(header).collect()
}

fn header(field: &Field<'_>) -> Option<HeaderMatch> {
    let keys = field.mapping(&HEADER)?;
    let name = keys.require("name").and_then(|field| field.parse(values::header_name));
    let mut ignore_case = false;
    let mut invert = false;
    keys.update("ignore_case", &mut ignore_case, switch);
    keys.update("invert", &mut invert, switch);
    let present = keys.read("present", switch);
    let rules = text_rules(&keys);
    if rules.len() + usize::from(keys.get("present").is_some()) > 1 {
        field.error("there are several conditions here; write one in each item of the list");
    }
    let rule = match rules.into_iter().next() {
        Some(rule) => HeaderRule::Text(TextMatch { rule: rule?, ignore_case }),
        None => HeaderRule::Present(present.unwrap_or(true)),
    };
    Some(HeaderMatch { name: name?.as_str().to_owned(), rule, invert, missing_is_empty: false })
}

/// Those that are written; `None` for one that is a mistake.
fn text_rules(keys: &Mapping<'_>) -> Vec<Option<TextRule>> {
    type Kind = (&'static str, fn(String) -> TextRule);
    const KINDS: [Kind; 4] = [
        ("exact", TextRule::Exact),
        ("prefix", TextRule::Prefix),
        ("suffix", TextRule::Suffix),
        ("contains", TextRule::Contains),
    ];
    let texts = KINDS.into_iter().filter_map(|(key, rule)| {
        let field = keys.get(key)?;
        Some(field.text().map(|text| rule(text.to_owned())))
    });
    let regex = keys.get("regex").map(|field| field.parse(values::whole_regex).map(TextRule::Regex));
    texts.chain(regex).collect()
}
