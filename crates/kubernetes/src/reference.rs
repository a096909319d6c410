//! Generator of the page `docs/reference/ingress-nginx.md`, from the table of annotations.

use crate::annotation::table::{ALL, Support};
use std::fmt::Write;

const HEAD: &str = "# Reference: annotations of ingress-nginx

<!-- Made from crates/kubernetes/src/annotation/table.rs. After a change there:
     QUADRILLE_BLESS=1 cargo test -p quadrille-kubernetes reference -->

`quadrille ingress report FILE` reads Ingress objects, and lists the outcome of each annotation; `--config FILE` writes the
configuration that serves them. [The guide](../guide/ingress-nginx.md) describes the migration.

An annotation

- **works**, within the limits noted;
- **works differently**: it has another effect, or needs none;
- **does not work**: it has no effect, and the report says what to do. One that guards closes its paths: they respond with
  503 until it is removed or replaced.

Every annotation begins with `nginx.ingress.kubernetes.io/`. The list is that of ingress-nginx's documentation, without
annotations that its last versions no longer had (InfluxDB, OpenTracing, global rate limits): those are reported as unknown.
`whitelist-source-range` and `limit-whitelist` are read as other names of `allowlist-source-range` and `limit-allowlist`.

";

/// Returns the text of the page.
pub fn reference() -> String {
    let mut text = HEAD.to_owned();
    let count = |wanted: fn(Support) -> bool| ALL.iter().filter(|entry| wanted(entry.support)).count();
    let works = count(|support| support == Support::Works);
    let differs = count(|support| matches!(support, Support::Differs(_)));
    let _ = writeln!(
        text,
        "Of {} annotations, {works} work, {differs} work differently, and {} do not work.\n\n| Annotation | | | Shown by |\n|---|---|---|---|",
        ALL.len(),
        ALL.len() - works - differs,
    );
    for entry in ALL {
        let state = match entry.support {
            Support::Works => "works",
            Support::Differs(_) => "works differently",
            Support::Refused(_) => "does not work",
        };
        let _ = writeln!(text, "| `{}` | {state} | {} | `{}` |", entry.name, entry.limits, entry.test);
    }
    text.push_str(
        "\nThe tests are in `crates/cli/tests/gateway/ingress` and `crates/kubernetes/src/tests`.\n",
    );
    text
}
