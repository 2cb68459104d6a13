//! The INI dialect of the Go library gcfg: `[section "subsection"]`, `name = value`, a name alone, `;` and `#` comments, quotes
//! that may begin anywhere in a value, and few escapes.

/// A section header (no name), or a variable under the latest one.
pub struct Line<'l> {
    pub section: &'l str,
    pub subsection: &'l str,
    pub name: Option<&'l str>,
    /// Absent where the name stands alone.
    pub value: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("{line}:{column}: {message}{more}")]
pub struct Syntax {
    line: usize,
    column: usize,
    message: String,
    more: String,
}

#[derive(Debug, PartialEq)]
enum Token {
    End,
    EndOfLine,
    Open,
    Close,
    Assign,
    Name(String),
    Text(String),
    Illegal,
}

/// Hands every line of `text` to `each`, until either finds fault.
pub fn read<E: From<Syntax>>(text: &str, mut each: impl FnMut(&Line<'_>) -> Result<(), E>) -> Result<(), E> {
    let mut scanner = Scanner { text, offset: 0, token_at: 0, value_is_next: false, faults: Vec::new() };
    let (mut section, mut subsection) = (String::new(), String::new());
    let mut token = scanner.token()?;
    loop {
        match token {
            Token::End => return Ok(()),
            Token::EndOfLine => token = scanner.token()?,
            Token::Open => {
                let Token::Name(name) = scanner.token()? else { return Err(scanner.expected("section name").into()) };
                (section, subsection) = (name, String::new());
                let mut next = scanner.token()?;
                if let Token::Text(quoted) = next {
                    if quoted.is_empty() {
                        return Err(scanner.fault("empty subsection name").into());
                    }
                    subsection = quoted;
                    next = scanner.token()?;
                }
                if next != Token::Close {
                    let wanted = if subsection.is_empty() { "subsection name or right bracket" } else { "right bracket" };
                    return Err(scanner.expected(wanted).into());
                }
                token = scanner.end_of_line()?;
                each(&Line { section: &section, subsection: &subsection, name: None, value: None })?;
            }
            Token::Name(name) if !section.is_empty() => {
                let mut value = None;
                token = scanner.token()?;
                if !matches!(token, Token::End | Token::EndOfLine) {
                    if token != Token::Assign {
                        return Err(scanner.expected("'='").into());
                    }
                    let Token::Text(text) = scanner.token()? else { return Err(scanner.expected("value").into()) };
                    value = Some(text);
                    token = scanner.end_of_line()?;
                }
                each(&Line { section: &section, subsection: &subsection, name: Some(&name), value })?;
            }
            _ if section.is_empty() => return Err(scanner.expected("section header").into()),
            _ => return Err(scanner.expected("section header or variable declaration").into()),
        }
    }
}

struct Scanner<'t> {
    text: &'t str,
    offset: usize,
    token_at: usize,
    value_is_next: bool,
    faults: Vec<(usize, String)>,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.offset..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.offset += next.map_or(0, char::len_utf8);
        next
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.next();
        }
    }

    fn token(&mut self) -> Result<Token, Syntax> {
        let token = self.scan();
        let Some((offset, message)) = self.faults.first() else { return Ok(token) };
        let more = match self.faults.len() - 1 {
            0 => String::new(),
            others => format!(" (and {others} more errors)"),
        };
        Err(Syntax { more, ..self.at(*offset, message) })
    }

    fn scan(&mut self) -> Token {
        loop {
            self.skip_while(|next| matches!(next, ' ' | '\t' | '\r'));
            self.token_at = self.offset;
            if std::mem::take(&mut self.value_is_next) {
                return Token::Text(self.value());
            }
            match self.next() {
                None => return Token::End,
                Some('\n') => return Token::EndOfLine,
                Some('"') => return Token::Text(self.subsection()),
                Some('[') => return Token::Open,
                Some(']') => return Token::Close,
                Some('=') => {
                    self.value_is_next = true;
                    return Token::Assign;
                }
                Some(';' | '#') => self.skip_while(|next| next != '\n'),
                Some(letter) if letter.is_alphabetic() => {
                    self.skip_while(|next| next.is_alphanumeric() || next == '-');
                    return Token::Name(self.text[self.token_at..self.offset].to_owned());
                }
                Some(other) => {
                    self.faults.push((self.token_at, format!("illegal character U+{:04X} '{other}'", u32::from(other))));
                    return Token::Illegal;
                }
            }
        }
    }

    fn end_of_line(&mut self) -> Result<Token, Syntax> {
        let token = self.token()?;
        match token {
            Token::End | Token::EndOfLine => Ok(token),
            _ => Err(self.expected("EOL, EOF, or comment")),
        }
    }

    /// A subsection's name, after its opening quote.
    fn subsection(&mut self) -> String {
        let begin = self.offset;
        let mut name = String::new();
        loop {
            match self.next() {
                Some('"') => return name,
                Some('\\') => match self.peek() {
                    Some(escaped @ ('\\' | '"')) => {
                        self.next();
                        name.push(escaped);
                    }
                    _ => {
                        self.faults.push((self.offset, "unknown escape sequence".to_owned()));
                        self.next();
                    }
                },
                None | Some('\n') => {
                    self.faults.push((begin - 1, "string not terminated".to_owned()));
                    return name;
                }
                Some(other) => name.push(other),
            }
        }
    }

    /// A variable's value up to the end of the line or a comment, unquoted. Blanks around it do not count unless quoted.
    fn value(&mut self) -> String {
        let begin = self.offset;
        let mut value = String::new();
        let mut significant = 0;
        let mut quoted = false;
        while quoted || self.peek().is_some_and(|next| !matches!(next, '\n' | ';' | '#')) {
            match self.next() {
                Some('\\') if quoted => {
                    let at = self.offset;
                    match self.next() {
                        Some(escaped @ ('\\' | '"')) => value.push(escaped),
                        Some('n') => value.push('\n'),
                        Some('t') => value.push('\t'),
                        _ => self.faults.push((at, "unknown escape sequence".to_owned())),
                    }
                }
                Some('\\') => {
                    if self.peek() == Some('\r') {
                        self.next();
                    }
                    match self.peek() {
                        Some('\n') => {}
                        Some('"') => value.push('"'),
                        _ => {
                            self.faults.push((begin, "unquoted '\\' must be followed by new line or double quote".to_owned()));
                            break;
                        }
                    }
                    self.next();
                }
                Some('"') => quoted = !quoted,
                Some('\r') => continue,
                Some(blank @ (' ' | '\t')) if !quoted => {
                    value.push(blank);
                    continue;
                }
                Some(other) if !(quoted && other == '\n') => value.push(other),
                _ => {
                    self.faults.push((begin, "string not terminated".to_owned()));
                    break;
                }
            }
            significant = value.len();
        }
        value.truncate(significant);
        value
    }

    fn expected(&self, what: &str) -> Syntax {
        self.fault(&format!("expected {what}"))
    }

    fn fault(&self, message: &str) -> Syntax {
        self.at(self.token_at, message)
    }

    fn at(&self, offset: usize, message: &str) -> Syntax {
        let before = &self.text.as_bytes()[..offset];
        let line_begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Syntax { line, column: offset - line_begin + 1, message: message.to_owned(), more: String::new() }
    }
}
