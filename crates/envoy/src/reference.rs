//! Generator of `docs/reference/envoy.md` and its subpages, from the schema and the filter tables.

use crate::{
    features::features,
    filters::{HTTP_FILTERS, Known, LISTENER_FILTERS, NETWORK_FILTERS},
    schema::{ALL, FieldPolicy, Group, Schema},
};

/// A Markdown page; its file is relative to the reference folder.
pub struct Page {
    /// File name, with `/` between folders.
    pub file: String,
    /// Contents of the page.
    pub text: String,
}

/// Generates the reference of supported Envoy and Istio configuration: a contents page, a page for each group of
/// messages, and one for filters.
pub fn reference() -> Vec<Page> {
    let contents = Page { file: "envoy.md".to_owned(), text: contents() };
    let filters = Page { file: "envoy/filters.md".to_owned(), text: filters() };
    [contents].into_iter().chain(ALL.iter().map(group)).chain([filters]).collect()
}

fn contents() -> String {
    let mut text = format!("{INTRODUCTION}\n## Messages\n\n| Page | Messages |\n|---|---|\n");
    for Group { page, title, messages } in ALL {
        let links: Vec<_> = messages.iter().map(|message| link(page, message)).collect();
        text.push_str(&format!("| [{title}](envoy/{page}.md) | {} |\n", links.join(", ")));
    }
    text + "| [Filters](envoy/filters.md) | listener, network and HTTP filters |\n" + &features()
}

fn link(page: &str, message: &Schema) -> String {
    format!("[`{}`](envoy/{page}.md#{})", message.short_name(), anchor(message.name))
}

/// Returns the anchor that forges and mdBook generate for a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.to_lowercase().replace(' ', "-");
    heading.chars().filter(|&c| c.is_alphanumeric() || c == '-' || c == '_').collect()
}

fn group(group: &Group) -> Page {
    let messages: String = group.messages.iter().map(|schema| message(schema)).collect();
    let text = format!("# Envoy: {}\n\n{GENERATED}\n\n{WORDS}{messages}", group.title);
    Page { file: format!("envoy/{}.md", group.page), text }
}

const GENERATED: &str = "<!-- Made from the schema in crates/envoy/src/schema and crates/envoy/src/filters.rs. After a change there:
     QUADRILLE_BLESS=1 cargo test -p quadrille-envoy reference -->";

const WORDS: &str =
    "For the meaning of *read*, *accepted*, *ignored* and *refused* see [the contents](../envoy.md).\n";

const INTRODUCTION: &str = r#"# Reference: Envoy's configuration

<!-- Made from the schema in crates/envoy/src/schema and crates/envoy/src/filters.rs. After a change there:
     QUADRILLE_BLESS=1 cargo test -p quadrille-envoy reference -->

`quadrille serve --envoy-config bootstrap.yaml` serves Envoy's v3 bootstrap, in YAML or JSON; `quadrille check --envoy-config`
reads it and reports every mistake with file, line and field. [The guide](../guide/envoy.md) describes the migration from Envoy or Istio.

This page lists all fields of the supported messages. A field is

- **read**: it takes effect, within the limits noted;
- **accepted**: it requires no action;
- **ignored**: it has no effect, and one warning is issued, with the number of places;
- **refused**: it is an error, with its path, because ignoring it would weaken security or change the intended behavior.
  In a route from a control plane, it closes this route only ([xDS](xds.md#guarantees)).

Names may be written as in the protocol (`poll_delay`) or as in its JSON format (`pollDelay`); a single value may replace a list;
durations are `10ms` or `0.010s`. A field set to its default (`false`, an empty text or list) is treated as omitted. Relative
paths start at the working directory, as in Envoy.
"#;

const FILTERS: &str = "
Filters are identified by the type of their configuration, or by their name if they have none. The router
(`envoy.extensions.filters.http.router.v3.Router`), the HTTP connection manager, the TCP proxy, [RBAC](rbac.md),
[tokens](jwt.md), [authorization servers](ext-authz.md), [passwords](basic-auth.md), [local rate limits](local-rate-limit.md),
[rate limit services](rate-limit-service.md), [buffers](buffer.md), [compressors](compressor.md) and the PROXY protocol are
supported. A filter that is not listed is refused, unless it sets `is_optional: true`.
";

fn message(schema: &Schema) -> String {
    let rows: String = schema.fields.iter().map(|(name, policy)| row(name, *policy)).collect();
    let others = row_text("all others", schema.others);
    format!("\n## `{}`\n\n| Field | | |\n|---|---|---|\n{rows}{others}", schema.name)
}

fn filters() -> String {
    let tables = [
        ("Listener filters", LISTENER_FILTERS),
        ("Network filters", NETWORK_FILTERS),
        ("HTTP filters", HTTP_FILTERS),
    ];
    let tables: String = tables.into_iter().map(|(title, known)| table(title, known)).collect();
    format!("# Envoy: Filters\n\n{GENERATED}\n\n{WORDS}{FILTERS}{tables}")
}

fn table(title: &str, known: Known) -> String {
    let rows: String = known.iter().map(|(name, policy)| row(name, *policy)).collect();
    format!("\n## {title}\n\n| Filter | | |\n|---|---|---|\n{rows}")
}

fn row(name: &str, policy: FieldPolicy) -> String {
    row_text(&format!("`{name}`"), policy)
}

fn row_text(name: &str, policy: FieldPolicy) -> String {
    let (what, about) = match policy {
        FieldPolicy::Read(about) => ("read", about.to_owned()),
        FieldPolicy::Accepted(about) => ("accepted", about.to_owned()),
        FieldPolicy::Ignored(about) => ("ignored", about.to_owned()),
        FieldPolicy::Refused(why) => ("**refused**", why.to_owned()),
        FieldPolicy::RefusedWith(why, remedy) => ("**refused**", format!("{why}; {remedy}")),
    };
    format!("| {name} | {what} | {about} |\n")
}
