//! Just enough of pickle to find the tensors of a checkpoint, under limits: a file of a kilobyte may otherwise take all
//! memory (a value put into itself again and again) or the stack (a value nested a million deep).

use std::collections::HashMap;
use std::rc::Rc;

/// A tensor as a checkpoint describes it; offset, sizes and strides count elements.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tensor {
    pub name: String,
    /// PyTorch's class of its storage: `FloatStorage`.
    pub storage: String,
    /// The entry of the archive that holds the storage.
    pub entry: String,
    pub offset: usize,
    pub shape: Vec<usize>,
    pub strides: Vec<usize>,
}

/// The tensors of a pickled dictionary; other values are skipped.
///
/// # Errors
/// What is wrong with it.
pub(super) fn tensors(pickle: &[u8]) -> Result<Vec<Tensor>, String> {
    let mut machine = Machine { rest: pickle, stack: Vec::new(), memo: HashMap::new(), size: 0 };
    while machine.step()? {}
    let root = machine.pop()?;
    let Value::Dict(entries) = root.kind() else { return Err("its pickle is no dictionary".into()) };
    entries.iter().filter_map(|(name, value)| tensor(name, value).transpose()).collect()
}

/// Maximum values within one another.
const MAX_DEPTH: usize = 200;
/// Maximum values of a pickle, each copy of a list counted.
const MAX_VALUES: usize = 4_000_000;

/// A value with its depth. What is shared is not copied.
#[derive(Clone)]
struct Node {
    value: Rc<Value>,
    depth: usize,
}

enum Value {
    Number(i64),
    Text(String),
    Class(String, String),
    Sequence(Vec<Node>),
    Dict(Vec<(Node, Node)>),
    /// A call with its arguments.
    Call(Node, Node),
    /// A reference to a storage.
    Persistent(Node),
    Mark,
    /// Nothing, truth values and floats, which say nothing about tensors.
    Other,
}

impl Node {
    fn kind(&self) -> &Value {
        &self.value
    }

    fn sequence(&self) -> Option<&[Node]> {
        match self.kind() {
            Value::Sequence(items) => Some(items),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self.kind() {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self) -> Option<usize> {
        match self.kind() {
            Value::Number(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    fn numbers(&self) -> Option<Vec<usize>> {
        self.sequence()?.iter().map(Node::number).collect()
    }

    fn is_class(&self, module: &str, name: &str) -> bool {
        matches!(self.kind(), Value::Class(of, class) if of == module && class == name)
    }
}

struct Machine<'a> {
    rest: &'a [u8],
    stack: Vec<Node>,
    memo: HashMap<u32, Node>,
    /// Values made so far.
    size: usize,
}

impl<'a> Machine<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or("its pickle is cut off")?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    /// A number of up to eight bytes, the lowest first.
    fn unsigned(&mut self, bytes: usize) -> Result<u64, String> {
        Ok(self.take(bytes)?.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn index(&mut self, bytes: usize) -> Result<u32, String> {
        u32::try_from(self.unsigned(bytes)?).map_err(|error| error.to_string())
    }

    fn line(&mut self) -> Result<String, String> {
        let end = self.rest.iter().position(|byte| *byte == b'\n').ok_or("its pickle is cut off")?;
        let line = self.take(end + 1)?;
        Ok(String::from_utf8_lossy(&line[..end]).trim_end_matches('\r').to_owned())
    }

    fn count(&mut self, values: usize) -> Result<(), String> {
        self.size += values;
        if self.size > MAX_VALUES { Err(format!("its pickle has more than {MAX_VALUES} values")) } else { Ok(()) }
    }

    fn push(&mut self, value: Value) -> Result<(), String> {
        let depth = match &value {
            Value::Sequence(items) => items.iter().map(|item| item.depth).max(),
            Value::Dict(entries) => entries.iter().map(|(key, value)| key.depth.max(value.depth)).max(),
            Value::Call(callable, arguments) => Some(callable.depth.max(arguments.depth)),
            Value::Persistent(id) => Some(id.depth),
            _ => None,
        };
        let depth = depth.map_or(0, |within| within + 1);
        if depth > MAX_DEPTH {
            return Err(format!("its pickle is nested deeper than {MAX_DEPTH}"));
        }
        self.count(1)?;
        self.stack.push(Node { value: Rc::new(value), depth });
        Ok(())
    }

    fn pop(&mut self) -> Result<Node, String> {
        self.stack.pop().ok_or_else(|| "its pickle takes from an empty stack".into())
    }

    fn pop_some(&mut self, number: usize) -> Result<Vec<Node>, String> {
        let first = self.stack.len().checked_sub(number).ok_or("its pickle takes from an empty stack")?;
        Ok(self.stack.split_off(first))
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Node>, String> {
        let mark = self.stack.iter().rposition(|node| matches!(node.kind(), Value::Mark));
        let items = self.stack.split_off(mark.ok_or("its pickle lacks a mark")? + 1);
        self.stack.pop();
        Ok(items)
    }

    /// Adds to the list or dictionary on the stack.
    fn extend(&mut self, items: Vec<Node>) -> Result<(), String> {
        let target = self.pop()?;
        let added = items.len();
        // A target that the memo shares is copied.
        let (value, copied) = match Rc::try_unwrap(target.value) {
            Ok(value) => (value, 0),
            Err(shared) => match &*shared {
                Value::Sequence(items) => (Value::Sequence(items.clone()), items.len()),
                Value::Dict(entries) => (Value::Dict(entries.clone()), entries.len()),
                _ => (Value::Other, 0),
            },
        };
        self.count(added + copied)?;
        match value {
            Value::Sequence(mut list) => {
                list.extend(items);
                self.push(Value::Sequence(list))
            }
            Value::Dict(mut entries) => {
                let (pairs, []) = items.as_chunks::<2>() else {
                    return Err("its pickle has a key without value".into());
                };
                entries.extend(pairs.iter().map(|[key, value]| (key.clone(), value.clone())));
                self.push(Value::Dict(entries))
            }
            _ => Err("its pickle adds to what is neither list nor dictionary".into()),
        }
    }

    /// One instruction (Python's `pickletools`); false after the last.
    fn step(&mut self) -> Result<bool, String> {
        match self.byte()? {
            0x80 => {
                self.byte()?;
            }
            b'.' => return Ok(false),
            b'(' => self.push(Value::Mark)?,
            b'N' | 0x88 | 0x89 => self.push(Value::Other)?,
            b'G' => {
                self.take(8)?;
                self.push(Value::Other)?;
            }
            b'K' => {
                let number = i64::from(self.byte()?);
                self.push(Value::Number(number))?;
            }
            b'M' => {
                let number = i64::from(self.index(2)?);
                self.push(Value::Number(number))?;
            }
            b'J' => {
                let number = i64::from(self.index(4)?.cast_signed());
                self.push(Value::Number(number))?;
            }
            0x8a => {
                let bytes = usize::from(self.byte()?);
                let value = match bytes {
                    0 => 0,
                    1..=8 => (self.unsigned(bytes)? << (64 - 8 * bytes)).cast_signed() >> (64 - 8 * bytes),
                    _ => return Err("its pickle has a number of more than 64 bits".into()),
                };
                self.push(Value::Number(value))?;
            }
            b'X' => {
                let bytes = usize::try_from(self.unsigned(4)?).map_err(|error| error.to_string())?;
                let text = String::from_utf8(self.take(bytes)?.to_vec()).map_err(|error| error.to_string())?;
                self.push(Value::Text(text))?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.push(Value::Class(module, name))?;
            }
            b'q' => self.remember(1)?,
            b'r' => self.remember(4)?,
            b'h' => self.recall(1)?,
            b'j' => self.recall(4)?,
            b')' | b']' => self.push(Value::Sequence(Vec::new()))?,
            b'}' => self.push(Value::Dict(Vec::new()))?,
            b't' => {
                let items = self.pop_to_mark()?;
                self.count(items.len())?;
                self.push(Value::Sequence(items))?;
            }
            number @ 0x85..=0x87 => {
                let items = self.pop_some(usize::from(number - 0x84))?;
                self.push(Value::Sequence(items))?;
            }
            b'd' => {
                let items = self.pop_to_mark()?;
                self.push(Value::Dict(Vec::new()))?;
                self.extend(items)?;
            }
            b'a' => {
                let items = self.pop_some(1)?;
                self.extend(items)?;
            }
            b's' => {
                let items = self.pop_some(2)?;
                self.extend(items)?;
            }
            b'e' | b'u' => {
                let items = self.pop_to_mark()?;
                self.extend(items)?;
            }
            b'Q' => {
                let id = self.pop()?;
                self.push(Value::Persistent(id))?;
            }
            b'R' | 0x81 => {
                let (arguments, callable) = (self.pop()?, self.pop()?);
                let is_dict =
                    callable.is_class("collections", "OrderedDict") || callable.is_class("collections", "defaultdict");
                self.push(if is_dict { Value::Dict(Vec::new()) } else { Value::Call(callable, arguments) })?;
            }
            b'b' => {
                // The state of an object: PyTorch keeps versions of modules in that of the dictionary.
                self.pop()?;
                if self.stack.is_empty() {
                    return Err("its pickle takes from an empty stack".into());
                }
            }
            other => return Err(format!("its pickle has the instruction {other:#04x}, which is not read")),
        }
        Ok(true)
    }

    fn remember(&mut self, bytes: usize) -> Result<(), String> {
        let index = self.index(bytes)?;
        let last = self.stack.last().ok_or("its pickle takes from an empty stack")?.clone();
        self.memo.insert(index, last);
        Ok(())
    }

    fn recall(&mut self, bytes: usize) -> Result<(), String> {
        let index = self.index(bytes)?;
        let node = self.memo.get(&index).ok_or("its pickle recalls what it has not kept")?.clone();
        self.count(1)?;
        self.stack.push(node);
        Ok(())
    }
}

/// The tensor that a value describes; none for another value.
fn tensor(name: &Node, value: &Node) -> Result<Option<Tensor>, String> {
    let (Some(name), Some(arguments)) = (name.text(), rebuilt(value)) else { return Ok(None) };
    let read = || {
        let [storage, offset, shape, strides, ..] = arguments.sequence()? else { return None };
        let Value::Persistent(id) = storage.kind() else { return None };
        let [_, class, entry, ..] = id.sequence()? else { return None };
        let Value::Class(_, storage) = class.kind() else { return None };
        Some(Tensor {
            name: name.to_owned(),
            storage: storage.clone(),
            entry: entry.text()?.to_owned(),
            offset: offset.number()?,
            shape: shape.numbers()?,
            strides: strides.numbers()?,
        })
    };
    let tensor = read().ok_or_else(|| format!("its pickle describes tensor `{name}` in an unknown way"))?;
    if tensor.shape.len() != tensor.strides.len() {
        return Err(format!(
            "tensor `{name}` has {} dimensions and {} strides",
            tensor.shape.len(),
            tensor.strides.len()
        ));
    }
    Ok(Some(tensor))
}

/// The arguments of the call that rebuilds a tensor, out of the calls around it.
fn rebuilt(value: &Node) -> Option<&Node> {
    let Value::Call(callable, arguments) = value.kind() else { return None };
    if callable.is_class("torch._utils", "_rebuild_tensor_v2") {
        return Some(arguments);
    }
    if callable.is_class("torch._utils", "_rebuild_parameter") {
        return rebuilt(arguments.sequence()?.first()?);
    }
    if callable.is_class("torch._tensor", "_rebuild_from_type_v2") {
        let [callable, _, arguments, ..] = arguments.sequence()? else { return None };
        return callable.is_class("torch._utils", "_rebuild_tensor_v2").then_some(arguments);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_longer_than_the_file_is_refused_before_memory_is_taken_for_it() {
        assert_eq!(tensors(b"\x80\x02X\xff\xff\xff\xffabc.").unwrap_err(), "its pickle is cut off");
    }

    #[test]
    fn a_value_nested_without_end_is_refused() {
        let nested = [b"N".as_slice(), &vec![0x85; 1_000_000], b"."].concat();
        assert_eq!(tensors(&nested).unwrap_err(), "its pickle is nested deeper than 200");
        let nested = [b"N".as_slice(), &b"Q".repeat(1_000_000), b"."].concat();
        assert_eq!(tensors(&nested).unwrap_err(), "its pickle is nested deeper than 200");
    }

    #[test]
    fn a_list_doubled_again_and_again_shares_its_memory_or_is_refused() {
        // A list with two of the list before, a hundred times; then a list that is copied with each addition.
        let doubled =
            b"]q\x00".iter().chain(b"](h\x00h\x00eq\x00".repeat(100).iter()).copied().chain(*b".").collect::<Vec<u8>>();
        assert_eq!(tensors(&doubled).unwrap_err(), "its pickle is no dictionary");
        let copied = [b"]".as_slice(), &b"q\x00Na".repeat(100_000), b"."].concat();
        assert_eq!(tensors(&copied).unwrap_err(), "its pickle has more than 4000000 values");
    }

    #[test]
    fn a_tensor_described_with_too_few_arguments_is_refused() {
        let text = |text: &str| [b"X", &u32::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes()].concat();
        let short = [b"}".as_slice(), &text("a"), b"ctorch._utils\n_rebuild_tensor_v2\n)Rs."].concat();
        assert_eq!(tensors(&short).unwrap_err(), "its pickle describes tensor `a` in an unknown way");
    }
}
