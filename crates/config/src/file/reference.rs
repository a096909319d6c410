//! Generator of `docs/reference/configuration.md` from the schema.

use super::{
    schema::{Described, KeyDescription, Preset},
    sections::{POLICY_SECTIONS, SECTIONS},
};

/// Returns the reference of the configuration file, in Markdown: every key with its values, unit, default and cost.
pub fn reference() -> String {
    document(INTRODUCTION, SECTIONS)
}

/// Returns the reference of a key server's policy file.
pub fn key_policy_reference() -> String {
    document(POLICY_INTRODUCTION, POLICY_SECTIONS)
}

fn document(introduction: &str, sections: &[&dyn Described]) -> String {
    let rendered: Vec<_> = sections.iter().map(|section| render(*section, sections)).collect();
    format!("{introduction}\n{}", rendered.join("\n"))
}

const POLICY_INTRODUCTION: &str = r#"# Reference of a key server's policy

<!-- Made from the schema in crates/config/src/file/sections/key_policy.rs. After a change there:
     QUADRILLE_BLESS=1 cargo test -p quadrille-config reference -->

`quadrille keyserver --policy policy.yaml` serves the clients that this file names, within their permissions. The file is read
again when it changes, and on SIGHUP; a mistake in it leaves the old policy in force. Without a policy, every client with a
certificate of the client CA may sign with every key, and none may decrypt.
[`examples/key-policy.yaml`](../../examples/key-policy.yaml) shows every key in use. How values are written:
[configuration.md](configuration.md#values).
"#;

const INTRODUCTION: &str = r#"# Configuration reference

<!-- Made from the schema in crates/config/src/file/sections. After a change there:
     QUADRILLE_BLESS=1 cargo test -p quadrille-config reference -->

`quadrille serve quadrille.yaml` serves the listeners in this file; `quadrille check quadrille.yaml` reads it and reports
every mistake with its line. [`examples/quadrille.yaml`](../../examples/quadrille.yaml) shows every key in use.
[Configuration files](../guide/configuration-files.md) describes included files, variables, and the schema for editors.

```yaml
listeners:
  - address: 0.0.0.0:8443
    certificates:
      - { chain: chain.pem, key: key.pem }
    upstream: app
upstreams:
  app:
    servers: ["127.0.0.1:8080"]
```

## Values

| Kind | Format |
|---|---|
| duration | A number and a unit: `10ms`, `1.5s`, `2m`, `12h`, `7d`, also `1h30m`; `0` where zero makes sense. |
| count | A whole number of at least 1, in digits. |
| switch | `on` or `off`; `true`, `false`, `yes` and `no` too. |
| path | A file, relative to the directory of the file that names it. |
| PKCS#11 URI | `pkcs11:` and the attributes of a token and a private key ([guide](../guide/key-storage.md#pkcs11-tokens)). |
| PEM text | The content of a PEM file, in a block that begins with a vertical bar after the key. |
| address and port | `0.0.0.0:8443`, `localhost:8443`, a port alone, or `"[::]:8443"`: YAML requires quotes around IPv6 addresses. |

A key that is not listed here is refused, as is a duplicate key or one without a value; blocks of the top level whose
names begin with `x-` are ignored. In every single value, `${NAME}` and `${NAME:-default}` are environment variables,
`$file{path}` is the content of a file, and `$${` is the text `${`.
"#;

fn render(section: &dyn Described, all: &[&dyn Described]) -> String {
    let title = match section.path() {
        "" => "The file".to_owned(),
        path => format!("`{path}`"),
    };
    let rows: String = section.keys().iter().map(|key| row(section, key, all)).collect();
    let (about, head) = (section.about(), "| Key | Value | Default | Effect and cost |\n|---|---|---|---|");
    format!("## {title}\n\n{about}\n\n{head}\n{rows}")
}

fn row(section: &dyn Described, key: &KeyDescription, all: &[&dyn Described]) -> String {
    let value = match described_at(section, key, all) {
        Some(path) => format!("[{}](#{})", key.value, anchor(path)),
        None => key.value.to_owned(),
    };
    let restart = if key.needs_restart { " *Takes effect at the next start.*" } else { "" };
    let preset = match key.preset {
        Preset::Required => "required".to_owned(),
        Preset::Is(value) => format!("`{value}`"),
        Preset::Means(meaning) => meaning.to_owned(),
    };
    format!("| `{}` | {value} | {preset} | {}{restart} |\n", key.name, key.about)
}

pub(super) fn path_of(section: &dyn Described, key: &KeyDescription) -> String {
    if section.path().is_empty() { key.name.to_owned() } else { format!("{}.{}", section.path(), key.name) }
}

/// Returns the path of the section that describes the value of `key`, or its items.
pub(super) fn described_at(
    section: &dyn Described,
    key: &KeyDescription,
    all: &[&dyn Described],
) -> Option<&'static str> {
    let prefix = path_of(section, key);
    let below =
        |path: &str| path.strip_prefix(&prefix).is_some_and(|rest| ["", "[]", ".<name>"].contains(&rest));
    all.iter().map(|section| section.path()).find(|path| below(path))
}

/// Returns the anchor that Markdown renderers assign to a heading.
pub(super) fn anchor(path: &str) -> String {
    path.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect()
}
