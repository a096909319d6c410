//! Configurations from pages of the guide.

/// Returns the first configuration of a page, with these texts replaced; each must be present.
pub fn configuration_of(page: &str, replaced: &[(&str, &str)]) -> String {
    let block =
        page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a configuration");
    replaced.iter().fold(block.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from} is not on the page");
        text.replace(from, to)
    })
}
