//! Words of nginx's configuration, by the rules of nginx's own reader (`ngx_conf_file.c`).

/// A token with the line at which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) line: usize,
}

/// Kinds of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word(String),
    /// A semicolon.
    End,
    Open,
    Close,
}

/// Splits a text into tokens. The content of blocks of Lua code is left out.
///
/// # Errors
/// If a quoted word or a block of Lua code does not end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut lexer = Lexer { chars: text.chars().peekable(), line: 1, tokens: Vec::new() };
    while let Some(&next) = lexer.chars.peek() {
        let line = lexer.line;
        let kind = match next {
            '\u{feff}' => {
                lexer.next();
                continue;
            }
            _ if next.is_ascii_whitespace() => {
                lexer.next();
                continue;
            }
            '#' => {
                while lexer.chars.peek().is_some_and(|c| *c != '\n') {
                    lexer.next();
                }
                continue;
            }
            ';' => lexer.single(Kind::End),
            '}' => lexer.single(Kind::Close),
            '{' => {
                let is_code = lexer.begins_code();
                let open = lexer.single(Kind::Open);
                if is_code {
                    lexer.tokens.push(Token { kind: open, line });
                    lexer.skip_code(line)?;
                    continue;
                }
                open
            }
            '"' | '\'' => Kind::Word(lexer.quoted(next)?),
            _ => Kind::Word(lexer.word()),
        };
        lexer.tokens.push(Token { kind, line });
    }
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.chars.next();
        if next == Some('\n') {
            self.line += 1;
        }
        next
    }

    fn single(&mut self, kind: Kind) -> Kind {
        self.next();
        kind
    }

    /// Reads a word without quotes: until white space, `;` or `{`, except the brace of `${name}`.
    fn word(&mut self) -> String {
        let (mut word, mut before) = (String::new(), ' ');
        while let Some(&next) = self.chars.peek() {
            if next.is_ascii_whitespace() || next == ';' || (next == '{' && before != '$') {
                break;
            }
            self.next();
            before = next;
            if next == '\\' {
                self.escape(&mut word);
                before = ' ';
            } else {
                word.push(next);
            }
        }
        word
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let line = self.line;
        self.next();
        let mut word = String::new();
        loop {
            match self.next() {
                None => return Err(format!("{line}: a quoted text does not end; add {quote}")),
                Some(c) if c == quote => return Ok(word),
                Some('\\') => self.escape(&mut word),
                Some(c) => word.push(c),
            }
        }
    }

    /// Reads the character after a backslash, which remains before characters without a meaning.
    fn escape(&mut self, word: &mut String) {
        match self.next() {
            Some(c @ ('"' | '\'' | '\\')) => word.push(c),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(c) => {
                word.push('\\');
                word.push(c);
            }
            None => word.push('\\'),
        }
    }

    fn begins_code(&self) -> bool {
        let words = self.tokens.iter().rev().take_while(|token| matches!(token.kind, Kind::Word(_)));
        words.last().is_some_and(|token| match &token.kind {
            Kind::Word(name) => name.ends_with("_by_lua_block"),
            _ => false,
        })
    }

    /// Skips Lua code up to its closing brace, which is left.
    fn skip_code(&mut self, line: usize) -> Result<(), String> {
        let mut depth = 0;
        loop {
            match self.chars.peek() {
                None => return Err(format!("{line}: a block of Lua code does not end; add }}")),
                Some('}') if depth == 0 => return Ok(()),
                Some('}') => depth -= 1,
                Some('{') => depth += 1,
                Some(_) => {}
            }
            self.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let shown = |token: Token| match token.kind {
            Kind::Word(word) => word,
            Kind::End => ";".into(),
            Kind::Open => "{".into(),
            Kind::Close => "}".into(),
        };
        tokens(text).expect("tokens").into_iter().map(shown).collect()
    }

    #[test]
    fn words_are_split_as_nginx_does() {
        for (text, expected) in [
            ("listen 80;", &["listen", "80", ";"][..]),
            ("a{b;}", &["a", "{", "b", ";", "}"]),
            ("set $a ${b}c;", &["set", "$a", "${b}c", ";"]),
            ("x \"a b\\\"c\" 'd;e';", &["x", "a b\"c", "d;e", ";"]),
            ("~ \\.php$ {", &["~", "\\.php$", "{"]),
            ("a # b;\nc#d;", &["a", "c#d", ";"]),
            ("a\\ b;", &["a\\ b", ";"]),
            ("access_by_lua_block { if x { } } b;", &["access_by_lua_block", "{", "}", "b", ";"]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn lines_are_counted() {
        let lines: Vec<_> =
            tokens("a\n\"b\nc\" d\n;").expect("tokens").iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 3, 4]);
        assert!(tokens("a \"b").is_err());
    }
}
