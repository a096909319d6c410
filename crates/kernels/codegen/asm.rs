//! Assembly writer shared by the generators: lines of Intel-syntax assembly, labels and functions.

use std::fmt::Display;
use std::fmt::Write as _;

/// Assembly text under construction. All names share one prefix, so that two generated files never clash.
pub(crate) struct Assembly {
    prefix: String,
    text: String,
    labels: usize,
}

impl Assembly {
    /// Starts an empty text with symbols that all begin with `prefix`.
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), text: String::from(".text\n"), labels: 0 }
    }

    /// Appends one instruction or directive.
    pub(crate) fn line(&mut self, line: impl Display) {
        writeln!(self.text, "    {line}").expect("writing to a String cannot fail");
    }

    /// Appends several lines, one per element.
    pub(crate) fn lines<L: Display>(&mut self, lines: impl IntoIterator<Item = L>) {
        for line in lines {
            self.line(line);
        }
    }

    /// Appends two independent sequences, merged in proportion to their lengths.
    pub(crate) fn merged(&mut self, one: Vec<String>, two: Vec<String>) {
        let (longer, shorter) = if one.len() < two.len() { (two, one) } else { (one, two) };
        let mut written = 0;
        for (i, line) in longer.iter().enumerate() {
            self.line(line);
            let due = (i + 1) * shorter.len() / longer.len();
            self.lines(&shorter[written..due]);
            written = due;
        }
    }

    /// Returns a new label; place it with [`Self::place`].
    pub(crate) fn label(&mut self) -> String {
        self.labels += 1;
        format!(".L{}_{}", self.prefix, self.labels)
    }

    /// Places `label` at the current position.
    pub(crate) fn place(&mut self, label: &str) {
        writeln!(self.text, "{label}:").expect("writing to a String cannot fail");
    }

    /// Returns the full symbol of the function `name`.
    pub(crate) fn symbol(&self, name: &str) -> String {
        format!("{}_{name}", self.prefix)
    }

    /// Emits a function that Rust may call: hidden from other objects, aligned to a cache line.
    pub(crate) fn export(&mut self, name: &str, body: impl FnOnce(&mut Self)) {
        self.begin_export(name);
        body(self);
        self.end_export(name);
    }

    /// Begins an exported function, for generators with bodies that need more than the text.
    pub(crate) fn begin_export(&mut self, name: &str) {
        let symbol = self.symbol(name);
        self.lines([
            format!(".globl {symbol}"),
            format!(".hidden {symbol}"),
            format!(".type {symbol},@function"),
        ]);
        self.begin_subroutine(name);
    }

    /// Ends an exported function.
    pub(crate) fn end_export(&mut self, name: &str) {
        let symbol = self.symbol(name);
        self.line(format!(".size {symbol}, .-{symbol}"));
    }

    /// Begins a subroutine that is only called within this text.
    pub(crate) fn begin_subroutine(&mut self, name: &str) {
        self.line(".p2align 6");
        self.entry_point(name);
    }

    /// Adds a second entry point to the subroutine under construction.
    pub(crate) fn entry_point(&mut self, name: &str) {
        let symbol = self.symbol(name);
        self.place(&symbol);
    }

    /// Calls the subroutine `name` of this text.
    pub(crate) fn call(&mut self, name: &str) {
        self.line(format!("call {}", self.symbol(name)));
    }

    /// Returns the finished text.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// Appends 64-bit numbers to a table.
pub(crate) fn write_quads(text: &mut String, values: impl IntoIterator<Item = u64>) {
    for value in values {
        writeln!(text, ".quad {value}").expect("writing to a String cannot fail");
    }
}

/// Appends 32-bit numbers to a table.
pub(crate) fn write_longs(text: &mut String, values: impl IntoIterator<Item = u64>) {
    for value in values {
        writeln!(text, ".long {value}").expect("writing to a String cannot fail");
    }
}
