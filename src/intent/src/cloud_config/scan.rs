//! The scanner of the gcfg dialect, one item (a header, an assignment, an empty line) at a time.

use super::Refused;
use super::ini::{Item, What};

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    pub fn item(&mut self) -> Result<Option<Item>, Refused> {
        let (start, line) = (self.at, self.line);
        if self.peek().is_none() {
            return Ok(None);
        }
        self.skip_blanks();
        let what = match self.peek() {
            None | Some('\n' | ';' | '#') => What::Nothing,
            Some('[') => self.header()?,
            Some(letter) if letter.is_alphabetic() => self.assignment()?,
            Some(_) => return Err(self.refused("expected a section header or a key")),
        };
        self.skip_blanks();
        let comment = match self.peek() {
            Some(';' | '#') => Some(self.comment()),
            _ => None,
        };
        match self.bump() {
            None | Some('\n') => Ok(Some(Item { span: start..self.at, line, what, comment })),
            Some(_) => Err(Refused::at(line, "expected the end of the line or a comment")),
        }
    }

    fn header(&mut self) -> Result<What, Refused> {
        self.bump();
        self.skip_blanks();
        let section = self.word();
        if section.is_empty() {
            return Err(self.refused("expected the name of a section"));
        }
        self.skip_blanks();
        let name = if self.peek() == Some('"') { Some(self.name()?) } else { None };
        self.skip_blanks();
        if self.peek() != Some(']') {
            return Err(self.refused("expected ] after the name of the section"));
        }
        self.bump();
        Ok(What::Header { section, name })
    }

    /// In the name of a block, unlike in values, only `\\` and `\"` are escapes.
    fn name(&mut self) -> Result<String, Refused> {
        self.bump();
        let mut name = String::new();
        loop {
            match self.peek() {
                None | Some('\n') => return Err(self.refused("the quotes do not end on this line")),
                Some('"') => break,
                Some('\\') => {
                    self.bump();
                    match self.peek() {
                        Some(letter @ ('\\' | '"')) => name.push(letter),
                        _ => return Err(self.refused("unknown escape in quotes; a backslash is written twice")),
                    }
                }
                Some(letter) => name.push(letter),
            }
            self.bump();
        }
        self.bump();
        if name.is_empty() {
            return Err(self.refused("the name in quotes is empty"));
        }
        Ok(name)
    }

    fn assignment(&mut self) -> Result<What, Refused> {
        let key = self.word();
        self.skip_blanks();
        match self.peek() {
            None | Some('\n' | ';' | '#') => return Ok(What::Assignment { key, value: None }),
            Some('=') => self.bump(),
            Some(_) => return Err(self.refused(format!("expected = after {key}"))),
        };
        self.skip_blanks();
        Ok(What::Assignment { key, value: Some(self.value()?) })
    }

    fn value(&mut self) -> Result<String, Refused> {
        let mut value = String::new();
        // Blanks at the end count only in quotes.
        let mut kept = 0;
        let mut quoted = false;
        while let Some(letter) = self.peek() {
            match letter {
                '\n' if !quoted => break,
                ';' | '#' if !quoted => break,
                '\n' => return Err(self.refused("the quotes do not end on this line")),
                '\\' => {
                    self.bump();
                    if !quoted && self.peek() == Some('\r') {
                        self.bump();
                    }
                    match (quoted, self.peek()) {
                        (true, Some('n')) => value.push('\n'),
                        (true, Some('t')) => value.push('\t'),
                        (true, Some('\\')) => value.push('\\'),
                        (_, Some('"')) => value.push('"'),
                        (false, Some('\n')) => {}
                        (true, _) => return Err(self.refused("unknown escape in quotes; a backslash is written twice")),
                        (false, _) => return Err(self.refused("a backslash outside quotes must end the line or stand before a quote")),
                    }
                    kept = value.len();
                }
                '"' => {
                    quoted = !quoted;
                    kept = value.len();
                }
                '\r' => {}
                letter => {
                    value.push(letter);
                    if quoted || !matches!(letter, ' ' | '\t') {
                        kept = value.len();
                    }
                }
            }
            self.bump();
        }
        if quoted {
            return Err(self.refused("the quotes do not end on this line"));
        }
        value.truncate(kept);
        Ok(value)
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(letter) = self.peek().filter(|letter| letter.is_alphanumeric() || *letter == '-') {
            word.push(letter);
            self.bump();
        }
        word
    }

    fn comment(&mut self) -> String {
        self.bump();
        let mut comment = String::new();
        while let Some(letter) = self.peek().filter(|letter| *letter != '\n') {
            comment.push(letter);
            self.bump();
        }
        comment.trim_end().to_owned()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\r')) {
            self.bump();
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        if letter == '\n' {
            self.line += 1;
        }
        Some(letter)
    }

    fn refused(&self, reason: impl Into<String>) -> Refused {
        Refused::at(self.line, reason)
    }
}
