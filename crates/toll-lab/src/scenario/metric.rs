// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of goals and tables: arithmetic on counters.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = factor { ("*" | "/") factor }
//! factor  = NUMBER | NAME | "max" "(" sum "," sum ")" | "(" sum ")"
//! ```
//!
//! A NAME is a counter, `PREFIX_*` (the sum of all counters with this prefix), or
//! `process.NAME.COUNTER` (what the virtual PMU counted of a process in the last run).

use std::fmt;
use std::iter::Peekable;
use std::vec;

use serde::Deserialize;

use crate::counters;

/// A parsed metric.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Metric {
    text: String,
    root: Node,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Number(f64),
    Value(Name),
    Binary(Box<Node>, Operator, Box<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Max,
}

/// A value that a metric uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    Counter(String),
    /// The sum of all counters with this prefix.
    Prefix(String),
    Process {
        process: String,
        counter: String,
    },
}

impl Name {
    /// Whether it is a count of this process.
    pub fn is_of(&self, name: &str) -> bool {
        matches!(self, Name::Process { process, .. } if process == name)
    }
}

impl Metric {
    /// Computes the metric; `of` returns the value of a name.
    pub fn value(&self, of: &dyn Fn(&Name) -> f64) -> f64 {
        self.root.value(of)
    }

    /// Lists the values that the metric uses.
    pub fn names(&self) -> Vec<&Name> {
        let mut found = Vec::new();
        self.root.names(&mut found);
        found
    }

    /// Whether it uses the counts of a process, which only the last run has.
    pub fn is_of_a_process(&self) -> bool {
        let is_process = |name: &&Name| matches!(name, Name::Process { .. });
        self.names().iter().any(is_process)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Metric {
    type Error = String;

    fn try_from(text: String) -> Result<Metric, String> {
        let bad = |why: String| format!("metric {text:?}: {why}");
        let mut tokens = tokens(&text).map_err(bad)?.into_iter().peekable();
        let root = sum(&mut tokens).map_err(bad)?;
        if let Some(token) = tokens.next() {
            return Err(bad(format!("{token} is not expected here")));
        }
        Ok(Metric { text, root })
    }
}

impl Node {
    fn value(&self, of: &dyn Fn(&Name) -> f64) -> f64 {
        match self {
            Node::Number(number) => *number,
            Node::Value(name) => of(name),
            Node::Binary(left, operator, right) => operator.apply(left.value(of), right.value(of)),
        }
    }

    fn names<'a>(&'a self, found: &mut Vec<&'a Name>) {
        match self {
            Node::Number(_) => {}
            Node::Value(name) => found.push(name),
            Node::Binary(left, _, right) => {
                left.names(found);
                right.names(found);
            }
        }
    }
}

impl Operator {
    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Multiply => left * right,
            Operator::Divide => left / right,
            Operator::Max => left.max(right),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Sign(char),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Number(number) => write!(f, "{number}"),
            Token::Name(name) => write!(f, "{name:?}"),
            Token::Sign(sign) => write!(f, "{:?}", sign.to_string()),
        }
    }
}

type Tokens = Peekable<vec::IntoIter<Token>>;

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let is_of_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let mut length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        if "+-*/(),".contains(first) {
            found.push(Token::Sign(first));
            length = first.len_utf8();
        } else if length == 0 {
            return Err(format!("{:?} is not expected here", first.to_string()));
        } else if let Ok(number) = rest[..length].parse() {
            found.push(Token::Number(number));
        } else {
            // A star that follows an underscore is part of a prefix.
            let is_prefix = rest[..length].ends_with('_') && rest[length..].starts_with('*');
            length += usize::from(is_prefix);
            found.push(Token::Name(rest[..length].to_owned()));
        }
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

fn sum(tokens: &mut Tokens) -> Result<Node, String> {
    let operator = |sign| match sign {
        '+' => Some(Operator::Add),
        '-' => Some(Operator::Subtract),
        _ => None,
    };
    chain(tokens, product, operator)
}

fn product(tokens: &mut Tokens) -> Result<Node, String> {
    let operator = |sign| match sign {
        '*' => Some(Operator::Multiply),
        '/' => Some(Operator::Divide),
        _ => None,
    };
    chain(tokens, factor, operator)
}

/// Parses operands that operators of one rank connect, from left to right.
fn chain(
    tokens: &mut Tokens,
    operand: fn(&mut Tokens) -> Result<Node, String>,
    operator: impl Fn(char) -> Option<Operator>,
) -> Result<Node, String> {
    let mut left = operand(tokens)?;
    loop {
        let found = match tokens.peek() {
            Some(Token::Sign(sign)) => operator(*sign),
            _ => None,
        };
        let Some(found) = found else {
            return Ok(left);
        };
        tokens.next();
        left = Node::Binary(Box::new(left), found, Box::new(operand(tokens)?));
    }
}

fn factor(tokens: &mut Tokens) -> Result<Node, String> {
    match tokens.next() {
        Some(Token::Number(number)) => Ok(Node::Number(number)),
        Some(Token::Name(name)) if name == "max" => maximum(tokens),
        Some(Token::Name(name)) => Ok(Node::Value(value_name(&name)?)),
        Some(Token::Sign('(')) => {
            let inner = sum(tokens)?;
            expect(tokens, ')')?;
            Ok(inner)
        }
        Some(token) => Err(format!("{token} is not expected here")),
        None => Err("ends too early".to_owned()),
    }
}

fn maximum(tokens: &mut Tokens) -> Result<Node, String> {
    expect(tokens, '(')?;
    let left = sum(tokens)?;
    expect(tokens, ',')?;
    let right = sum(tokens)?;
    expect(tokens, ')')?;
    Ok(Node::Binary(Box::new(left), Operator::Max, Box::new(right)))
}

fn expect(tokens: &mut Tokens, sign: char) -> Result<(), String> {
    match tokens.next() {
        Some(Token::Sign(found)) if found == sign => Ok(()),
        _ => Err(format!("{:?} is missing", sign.to_string())),
    }
}

fn value_name(name: &str) -> Result<Name, String> {
    let known = |counter: &str| match counters::is_known(counter) {
        true => Ok(counter.to_owned()),
        false => Err(format!("{counter}: no such counter")),
    };
    if let Some(prefix) = name.strip_suffix('*') {
        return Ok(Name::Prefix(known(prefix)?));
    }
    let Some(rest) = name.strip_prefix("process.") else {
        return Ok(Name::Counter(known(name)?));
    };
    match rest.split_once('.') {
        Some((process, counter)) if !process.is_empty() => Ok(Name::Process {
            process: process.to_owned(),
            counter: known(counter)?,
        }),
        _ => Err(format!("{name}: expected process.NAME.COUNTER")),
    }
}

#[cfg(test)]
mod tests;
