//! Figures in README.md match a comparison report in the repository.

use quadrille_structure::text;
use std::path::Path;

#[test]
fn the_tables_of_the_readme_are_in_a_report() {
    let [readme, first, second] = ["README.md", "bench/REPORT.md", "bench/REPORT-zen4.md"]
        .map(|page| text(Path::new(page)).expect("it is UTF-8"));
    let report = first + &second;
    let tables = readme.split("\n\n").filter(|block| block.starts_with('|'));
    let compared = tables.filter(|table| table.lines().next().is_some_and(|head| head.contains("| nginx")));
    let cells = compared.flat_map(|table| table.split(['|', '\n'])).map(|cell| cell.trim().trim_matches('*'));
    // Cells with microseconds and the ratio to nginx, as formatted in the report.
    let figures: Vec<_> = cells.filter(|cell| cell.ends_with(')') && cell.contains(" (")).collect();
    assert!(figures.len() >= 9, "{figures:?}");
    let absent: Vec<_> = figures.iter().filter(|figure| !report.contains(&format!("| {figure} |"))).collect();
    assert!(absent.is_empty(), "not in a bench/REPORT*.md: {absent:?}");
}

#[test]
fn no_other_ratio_stands_in_the_readme() {
    let readme = text(Path::new("README.md")).expect("it is UTF-8");
    for line in readme.lines().filter(|line| !line.starts_with('|')) {
        let ratio = line.split(|c: char| !c.is_ascii_digit() && c != '.').find(|word| is_ratio(word));
        assert!(ratio.is_none(), "{ratio:?} is outside the table: {line}");
    }
}

/// Returns whether the word has the form `0.42`: one digit, a point, two digits.
fn is_ratio(word: &str) -> bool {
    word.len() == 4 && word.as_bytes()[1] == b'.' && word.split('.').all(|part| !part.is_empty())
}
