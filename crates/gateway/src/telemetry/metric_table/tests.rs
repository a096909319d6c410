//! Test that the metrics reference matches the table.

use super::*;

const PAGE: &str = "../../docs/reference/metrics.md";
const HEAD: &str = "| metric | type | labels | description |\n|---|---|---|---|\n";

#[test]
fn the_reference_is_made_from_the_table() {
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let made = GROUPS.iter().fold(page.clone(), |page, group| with_table(&page, group));
    if std::env::var_os("QUADRILLE_BLESS").is_some() {
        std::fs::write(PAGE, &made).expect("writing the page");
    } else {
        assert!(page == made, "run: QUADRILLE_BLESS=1 cargo test -p quadrille-gateway metric_table");
    }
    assert_eq!(made.matches(HEAD).count(), GROUPS.len(), "the page has a table without a group");
}

/// Returns the page with a regenerated table below the group's heading.
fn with_table(page: &str, group: &Group) -> String {
    let begin = format!("### {}\n\n{HEAD}", group.heading);
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("the page lacks {begin}"));
    let (_, after) = rest.split_once("\n\n").unwrap_or_default();
    let rows: String = group.metrics.iter().map(row).collect();
    let after = if after.is_empty() { String::new() } else { format!("\n{after}") };
    format!("{before}{begin}{rows}{after}")
}

fn row(Metric { kind, name, labels, help }: &Metric) -> String {
    let kind = match kind {
        MetricType::Counter => "counter",
        MetricType::Gauge => "gauge",
        MetricType::Histogram => "histogram",
    };
    let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
    let labels = labels.join(", ");
    let space = if labels.is_empty() { "" } else { " " };
    format!("| `{name}` | {kind} | {labels}{space}| {help} |\n")
}
