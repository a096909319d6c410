//! Tables of SOUNDNESS.md: unsafe code, and the implementation of each operation.

use quadrille_structure::{
    files_with,
    markdown::{self, Cell},
    text, unsafe_code, variants,
};
use std::{collections::BTreeSet, path::Path};

const PAGE: &str = "SOUNDNESS.md";

/// Folders with sources of the product: `*` is one folder. Benchmarks, `admin/`, tests and fuzz targets
/// run on developers' machines only.
const PRODUCT: &[&str] = &["crates/*/src", "packages/php/extension/src"];

const UNSAFE_CODE: &str = "Unsafe code";
const IMPLEMENTATIONS: &str = "Implementations by instruction set";
const ON_EVERY_CPU: &str = "Implementations on every CPU";

/// Enums with a variant for each operation or algorithm of the engine.
const OPERATIONS: &[(&str, &str)] = &[
    ("crates/engine/src/operation.rs", "Operation"),
    ("crates/engine/src/key_type.rs", "KeyType"),
    ("crates/engine/src/key_agreement/report.rs", "ExchangeOperation"),
    ("crates/engine/src/key_agreement/share.rs", "Group"),
];

/// Enum of the instruction-set tiers; each has a column.
const TIERS: (&str, &str) = ("crates/kernels/src/cpu.rs", "Ceiling");

#[test]
fn every_file_with_unsafe_code_is_in_the_table() {
    let files: Vec<_> = files_with("rs")
        .into_iter()
        .filter(|file| is_product(file))
        .map(|file| {
            let source = text(&file).expect("sources are UTF-8");
            (file.to_str().expect("paths are UTF-8").to_owned(), unsafe_code::constructs(&source))
        })
        .filter(|(_, constructs)| !constructs.is_empty())
        .collect();
    assert!(files.len() > 50, "the walk missed sources: {files:?}");
    let entries: Vec<_> = table(UNSAFE_CODE)[1..]
        .iter()
        .flat_map(|row| row[0].code.iter().flat_map(|entry| unsafe_code::expand(entry)))
        .collect();
    report(unsafe_code::mismatches(&entries, &files));
}

#[test]
fn every_operation_has_its_implementations() {
    let named: BTreeSet<_> = table(IMPLEMENTATIONS)[1..]
        .iter()
        .flat_map(|row| row[0].code.iter().filter(|name| name.contains("::")).cloned())
        .collect();
    let each = |(file, name): &(&str, &str)| {
        read(file, name).into_iter().map(|variant| format!("{name}::{variant}")).collect::<Vec<_>>()
    };
    let known: BTreeSet<_> = OPERATIONS.iter().flat_map(each).collect();
    report(variants::mismatches(&named, &known));
}

#[test]
fn every_tier_has_a_column() {
    let head = table(IMPLEMENTATIONS).swap_remove(0);
    let columns: BTreeSet<_> = head.into_iter().flat_map(|cell| cell.code).collect();
    let tiers: BTreeSet<_> = read(TIERS.0, TIERS.1).iter().map(|tier| tier.to_lowercase()).collect();
    assert_eq!(columns, tiers, "{PAGE}: the columns of {IMPLEMENTATIONS:?} are not the tiers of {}", TIERS.0);
}

#[test]
fn no_cell_is_empty() {
    for heading in [UNSAFE_CODE, IMPLEMENTATIONS, ON_EVERY_CPU] {
        for row in table(heading) {
            assert!(
                row.iter().all(|cell| !cell.text.is_empty()),
                "{PAGE}: a cell of {heading:?} is empty: {row:?}"
            );
        }
    }
}

/// Returns whether the file is below a folder of the product.
fn is_product(file: &Path) -> bool {
    PRODUCT.iter().any(|folder| {
        let parts: Vec<_> = folder.split('/').collect();
        let names: Vec<_> = file.iter().collect();
        names.len() > parts.len()
            && parts.iter().zip(&names).all(|(part, name)| *part == "*" || *name == *part)
    })
}

fn table(heading: &str) -> Vec<Vec<Cell>> {
    let rows = markdown::table(&text(Path::new(PAGE)).expect("pages are UTF-8"), heading);
    assert!(rows.len() > 10, "{PAGE} has no table below {heading:?}");
    rows
}

fn read(file: &str, name: &str) -> Vec<String> {
    let found = variants::variants(&text(Path::new(file)).expect("sources are UTF-8"), name);
    assert!(!found.is_empty(), "{file} has no enum {name}: correct the path in this test");
    found
}

fn report(mismatches: Vec<String>) {
    assert!(mismatches.is_empty(), "{PAGE}:\n  {}\n", mismatches.join("\n  "));
}
