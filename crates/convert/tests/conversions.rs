//! Conversions of configurations in the shape of public ones, each with its expectations.
//!
//! A configuration `NAME.conf` has its expectations in `NAME.expect`, one a line, in which only words
//! count, not the punctuation of YAML: `+ text` is in the result, `- text` is not, `! text` is in the remark of a statement that is not converted, `~ text`
//! in one that differs, and `= 26/33` is the least number of converted statements and that of all statements.

use quadrille_convert::{Conversion, Language, Source, convert};
use std::path::{Path, PathBuf};

#[test]
fn nginx() {
    assert_conversions(Language::Nginx, "tests/nginx", "conf", 30);
}

#[test]
fn haproxy() {
    assert_conversions(Language::Haproxy, "tests/haproxy", "cfg", 30);
}

#[test]
fn caddy() {
    assert_conversions(Language::Caddy, "tests/caddy", "json", 30);
}

#[test]
fn a_caddyfile_is_refused_with_the_command_that_adapts_it() {
    let text = "example.com {\n  reverse_proxy localhost:8080\n}\n".to_owned();
    let source = Source { name: "Caddyfile".into(), directory: "/etc/site".into(), text };
    let problem = convert(Language::Caddy, &source).expect_err("not JSON");
    assert!(problem.contains("caddy adapt --config Caddyfile > caddy.json"), "{problem}");
}

/// A configuration without one of its lines is an error of its own, or has a valid conversion.
#[test]
fn every_conversion_is_valid() {
    let languages = [
        (Language::Nginx, "tests/nginx", "conf"),
        (Language::Haproxy, "tests/haproxy", "cfg"),
        (Language::Caddy, "tests/caddy", "json"),
    ];
    for (language, folder, ending) in languages {
        for entry in std::fs::read_dir(folder).expect("the folder") {
            let file = entry.expect("an entry").path();
            if file.extension().is_none_or(|found| found != ending) {
                continue;
            }
            let text = std::fs::read_to_string(&file).expect("the configuration");
            let lines: Vec<_> = text.lines().collect();
            for left_out in 0..lines.len() {
                let rest = [&lines[..left_out], &lines[left_out + 1..]].concat().join("\n");
                let name = format!("{} without line {}", file.display(), left_out + 1);
                let source = Source { name: name.into(), directory: "/etc/site".into(), text: rest };
                if let Err(problem) = convert(language, &source) {
                    assert!(!problem.contains("defect of the converter"), "{problem}");
                }
            }
        }
    }
}

/// Converts all configurations of a folder, and compares them with their expectations. Reports all differences at once.
fn assert_conversions(language: Language, folder: &str, ending: &str, least: usize) {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect();
    files.sort();
    assert!(files.len() >= least, "only {} configurations in {folder}", files.len());
    let problems: Vec<_> = files.iter().flat_map(|file| problems(language, file)).collect();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

fn problems(language: Language, file: &Path) -> Vec<String> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).expect("the configuration");
    // A fixed directory, so that expectations can name paths.
    let source = Source { name: name.as_str().into(), directory: "/etc/site".into(), text };
    let conversion = match convert(language, &source) {
        Ok(conversion) => conversion,
        Err(problem) => return vec![format!("{name}: {problem}")],
    };
    let expectations = std::fs::read_to_string(file.with_extension("expect")).expect("the expectations");
    let failed =
        expectations.lines().filter(|line| !line.trim().is_empty()).filter(|line| !holds(line, &conversion));
    let failed: Vec<_> = failed.map(|line| format!("  {line}")).collect();
    if failed.is_empty() {
        return Vec::new();
    }
    let converted = conversion.statements - conversion.not_converted.len();
    vec![format!(
        "{name}: {converted}/{} converted; these do not hold:\n{}\n{}",
        conversion.statements,
        failed.join("\n"),
        conversion.yaml
    )]
}

fn holds(expectation: &str, conversion: &Conversion) -> bool {
    let Some((kind, text)) = expectation.split_once(' ') else { return false };
    let text = spaced(text);
    let result: Vec<_> = conversion.yaml.lines().filter(|line| !line.starts_with('#')).collect();
    let result = spaced(&result.join(" "));
    match kind {
        "+" => result.contains(&text),
        "-" => !result.contains(&text),
        "!" => conversion.not_converted.iter().any(|remark| spaced(&remark.to_string()).contains(&text)),
        "~" => conversion.differing.iter().any(|remark| spaced(&remark.to_string()).contains(&text)),
        "=" => {
            let (least, all) = text.split_once('/').expect("two numbers");
            let (least, all): (usize, usize) =
                (least.parse().expect("a number"), all.parse().expect("a number"));
            all == conversion.statements && conversion.statements - conversion.not_converted.len() >= least
        }
        _ => false,
    }
}

/// Returns the words of a text: block style and flow style have the same.
fn spaced(text: &str) -> String {
    let text = text.replace([',', '{', '}', '[', ']'], " ");
    text.split_whitespace().filter(|word| *word != "-").collect::<Vec<_>>().join(" ")
}
