//! Formulas of Office documents (Office Math; ECMA-376, 22.1) and web pages (MathML) as linear text: `(a+b)/2`, `x^2`,
//! `x_1`, `sqrt(x)`, `∑_(i=1)^n i`.

use crate::Limit;
use crate::limit::FORMULA_BYTES;
use crate::prose::{Gap, Prose};
use crate::xml::{Node, Tag};

/// The formula that is being read, if any.
#[derive(Default)]
pub(crate) struct Formula {
    /// The open elements, outermost first.
    open: Vec<Element>,
    in_text: bool,
    /// Whether formulas have lines of their own.
    is_display: bool,
    /// The length of all parts that were read.
    bytes: usize,
}

/// What an element of a formula is.
#[derive(Clone, Copy)]
enum Role {
    /// An operand of the element around it, by its place among the operands.
    Operand(usize),
    Plain,
    Accent,
    Fraction,
    Scripts,
    Root,
    /// A sum, an integral.
    Operator,
    Brackets,
    Function,
    /// What is below (`_`) or above (`^`) a name such as `lim`.
    Limit(char),
    Row,
    Rows,
}

/// The places of operands: what an element is about, a denominator or what is below, what is above.
const BASE: usize = 0;
const BELOW: usize = 1;
const ABOVE: usize = 2;

fn role(name: &[u8]) -> Option<Role> {
    Some(match name {
        b"e" | b"num" => Role::Operand(BASE),
        b"sub" | b"den" | b"deg" | b"lim" | b"fName" => Role::Operand(BELOW),
        b"sup" => Role::Operand(ABOVE),
        b"oMath" | b"bar" | b"box" | b"borderBox" | b"groupChr" | b"phant" => Role::Plain,
        b"acc" => Role::Accent,
        b"f" => Role::Fraction,
        b"sSup" | b"sSub" | b"sSubSup" | b"sPre" => Role::Scripts,
        b"rad" => Role::Root,
        b"nary" => Role::Operator,
        b"d" => Role::Brackets,
        b"func" => Role::Function,
        b"limLow" => Role::Limit('_'),
        b"limUpp" => Role::Limit('^'),
        b"mr" => Role::Row,
        b"m" | b"eqArr" => Role::Rows,
        _ => return None,
    })
}

impl Formula {
    /// Whether a formula is being read.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Opens an element of MathML, in which operands have no names but an order.
    pub fn enter(&mut self, name: &str) {
        let (role, places): (Role, &'static [usize]) = match name {
            "mfrac" => (Role::Fraction, &[BASE, BELOW]),
            "msub" | "munder" => (Role::Scripts, &[BASE, BELOW]),
            "msup" | "mover" => (Role::Scripts, &[BASE, ABOVE]),
            "msubsup" | "munderover" => (Role::Scripts, &[BASE, BELOW, ABOVE]),
            "msqrt" => (Role::Root, &[BASE]),
            "mroot" => (Role::Root, &[BASE, BELOW]),
            "mfenced" => (Role::Brackets, &[BASE]),
            "mtr" | "mlabeledtr" => (Role::Row, &[BASE]),
            "mtable" => (Role::Rows, &[BASE]),
            _ => (Role::Plain, &[]),
        };
        if self.open.is_empty() {
            self.bytes = 0;
        }
        self.open.push(Element { places, separator: Some(','), ..Element::new(role) });
    }

    /// Adds text of MathML, without the operators that are not shown.
    ///
    /// # Errors
    /// [`Limit::FormulaBytes`].
    pub fn token(&mut self, text: &str) -> Result<(), Limit> {
        let shown = text.trim_ascii().replace('\u{2061}', " ");
        self.write(&shown.replace(['\u{2062}', '\u{2063}', '\u{2064}'], ""))
    }

    /// Whether a node is part of a formula, which is written where it ends.
    ///
    /// # Errors
    /// [`Limit::FormulaBytes`].
    pub fn takes(&mut self, node: &Node<'_>, prose: &mut Prose) -> Result<bool, Limit> {
        if self.open.is_empty() {
            return Ok(self.starts(node, prose));
        }
        match node {
            Node::Open(tag) => match role(tag.name()) {
                Some(role) => self.open.push(Element::new(role)),
                None => self.property(tag)?,
            },
            Node::Text(text) if self.in_text => self.write(text)?,
            Node::Text(_) => {}
            Node::Close(name) => {
                self.in_text = false;
                if role(name).is_some() {
                    self.close(prose)?;
                }
            }
        }
        Ok(true)
    }

    fn starts(&mut self, node: &Node<'_>, prose: &mut Prose) -> bool {
        match node {
            Node::Open(tag) if tag.name() == b"oMath" => {
                self.open.push(Element::new(Role::Plain));
                self.bytes = 0;
            }
            Node::Open(tag) if tag.name() == b"oMathPara" => self.is_display = true,
            Node::Close(b"oMathPara") => self.is_display = false,
            _ => return false,
        }
        prose.gap(if self.is_display || matches!(node, Node::Close(_)) { Gap::Line } else { Gap::None });
        true
    }

    fn property(&mut self, tag: &Tag<'_>) -> Result<(), Limit> {
        let Some(element) = self.open.last_mut() else { return Ok(()) };
        let sign = || tag.attribute("val").and_then(|value| value.chars().next());
        match tag.name() {
            b"t" => self.in_text = true,
            b"br" => self.write(" ")?,
            b"chr" => element.sign = sign(),
            b"begChr" => element.brackets[0] = sign(),
            b"endChr" => element.brackets[1] = sign(),
            b"sepChr" => element.separator = sign(),
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), Limit> {
        self.count(text.len())?;
        if let Some(element) = self.open.last_mut() {
            element.push(text, false);
        }
        Ok(())
    }

    /// Ends the innermost element; the formula is written where the outermost ends.
    ///
    /// # Errors
    /// [`Limit::FormulaBytes`].
    pub fn close(&mut self, prose: &mut Prose) -> Result<(), Limit> {
        let Some(element) = self.open.pop() else { return Ok(()) };
        let role = element.role;
        let is_part = element.is_after_part || !matches!(role, Role::Plain);
        let text = element.linear();
        // With what separates operands.
        self.count(text.len() + ", ".len())?;
        match (self.open.last_mut(), role) {
            (None, _) => prose.text(&text),
            (Some(around), _) if !around.places.is_empty() => around.child(&text),
            (Some(around), Role::Operand(place)) => around.operand(place, &text),
            (Some(around), Role::Row) => around.operand(BASE, &text),
            (Some(around), _) => around.push(&text, is_part),
        }
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), Limit> {
        self.bytes += bytes;
        if self.bytes > FORMULA_BYTES { Err(Limit::FormulaBytes(FORMULA_BYTES)) } else { Ok(()) }
    }
}

/// An open element.
struct Element {
    role: Role,
    text: String,
    /// Whether the text ends with a fraction, a power or another element.
    is_after_part: bool,
    operands: [Option<String>; 3],
    /// The places of the elements within, in order; the last is that of all others. Empty if they have names or are text.
    places: &'static [usize],
    /// The number of elements within that have ended.
    children: usize,
    /// The sign of an operator or accent, the brackets, and what separates operands in them.
    sign: Option<char>,
    brackets: [Option<char>; 2],
    separator: Option<char>,
}

impl Element {
    fn new(role: Role) -> Self {
        let sign = match role {
            Role::Operator => Some('∫'),
            Role::Accent => Some('\u{302}'),
            _ => None,
        };
        Element {
            role,
            text: String::new(),
            is_after_part: false,
            operands: [const { None }; 3],
            places: &[],
            children: 0,
            sign,
            brackets: [Some('('), Some(')')],
            separator: Some('|'),
        }
    }

    /// Adds text or a part, after a space if it would join what precedes: `1/2 x`, `2 1/2`.
    fn push(&mut self, text: &str, is_part: bool) {
        if text.is_empty() {
            return;
        }
        let is_after_part = self.is_after_part;
        let joins = |c: char| if is_after_part { c.is_alphanumeric() } else { is_part && c.is_ascii_digit() };
        if self.text.ends_with(char::is_alphanumeric) && text.starts_with(joins) {
            self.text.push(' ');
        }
        self.text.push_str(text);
        self.is_after_part = is_part;
    }

    fn child(&mut self, text: &str) {
        let last = self.places.len().saturating_sub(1);
        let place = self.places.get(self.children.min(last)).copied().unwrap_or(BASE);
        self.children += 1;
        self.operand(place, text);
    }

    fn operand(&mut self, place: usize, text: &str) {
        let Some(operand) = &mut self.operands[place] else {
            self.operands[place] = Some(text.to_owned());
            return;
        };
        match self.role {
            Role::Brackets => operand.extend(self.separator),
            Role::Row => operand.push_str(", "),
            Role::Rows => operand.push_str("; "),
            _ => {}
        }
        operand.push_str(text);
    }

    fn linear(self) -> String {
        let [base, below, above] = self.operands.map(Option::unwrap_or_default);
        let script = |mark: char, text: &str| {
            // A sign needs no brackets: `10^-6`.
            let is_plain = is_atom(text.trim_start_matches(['+', '-', '−']));
            let text = if is_plain { text.to_owned() } else { grouped(text) };
            if text.is_empty() { text } else { format!("{mark}{text}") }
        };
        let scripts = || script('_', &below) + &script('^', &above);
        let sign = |sign: Option<char>| sign.map(String::from).unwrap_or_default();
        let linear = match self.role {
            Role::Operand(_) | Role::Plain | Role::Row | Role::Rows => base,
            Role::Accent => base + &sign(self.sign),
            Role::Fraction => format!("{}/{}", grouped(&base), grouped(&below)),
            Role::Scripts => grouped(&base) + &scripts(),
            Role::Root if below.is_empty() => format!("sqrt({base})"),
            Role::Root => format!("root({below}, {base})"),
            Role::Operator => format!("{}{} {base}", sign(self.sign), scripts()),
            Role::Brackets => sign(self.brackets[0]) + &base + &sign(self.brackets[1]),
            Role::Function if base.starts_with('(') => below + &base,
            Role::Function => format!("{below} {base}"),
            Role::Limit(mark) => base + &script(mark, &below),
        };
        linear + &self.text
    }
}

/// A part in brackets, unless it is a number, a word or a bracket already.
fn grouped(text: &str) -> String {
    if is_atom(text) { text.to_owned() } else { format!("({text})") }
}

fn is_atom(text: &str) -> bool {
    let is_number = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
    text.chars().nth(1).is_none() || is_number || text.chars().all(char::is_alphabetic) || is_bracketed(text)
}

/// Whether a bracket that opens at the start closes at the end.
fn is_bracketed(text: &str) -> bool {
    let mut depth = 0_usize;
    let end = text.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at + c.len_utf8())
    });
    text.starts_with('(') && end == Some(text.len())
}
