//! Jupyter notebooks (format 4): Markdown cells as they are, code cells and their textual output between fences.

use crate::encoding::Decoded;
use crate::limit::check_text;
use crate::records::{Record, records};
use crate::source::first_heading;
use crate::{Cause, Kind, Limit, Source};

/// A `.ipynb` file.
pub(crate) fn source(path: &str, file: &Decoded) -> Result<Source, Cause> {
    let records = match records(file.text.trim_start_matches('\u{feff}'), Kind::Notebook) {
        Err(Cause::UnknownConversation { .. }) => Vec::new(),
        records => records?,
    };
    let [notebook] = &records[..] else { return Err(Cause::damaged(Kind::Notebook, "it is not one JSON object")) };
    if notebook.has("worksheets") {
        let detail = "its format is older than 4; open it in Jupyter and save it again";
        return Err(Cause::damaged(Kind::Notebook, detail));
    }
    let language = language(notebook).unwrap_or_default();
    let (mut cells, mut length) = (Vec::new(), 0);
    let mut add = |cell: String| {
        length += cell.len();
        cells.push(cell);
        check_text(length)
    };
    for cell in notebook.objects("cells")? {
        let source = cell.texts("source")?.concat();
        let source = source.trim_end();
        if cell.text("cell_type")? != "code" {
            add(source.to_owned())?;
        } else if !source.trim().is_empty() {
            add(fenced(&language, source)?)?;
            let outputs = if cell.has("outputs") { cell.objects("outputs")? } else { Vec::new() };
            for output in outputs {
                let text = output_text(&output)?;
                if !text.trim().is_empty() {
                    add(format!("Output:\n{}", fenced("", text.trim_end())?))?;
                }
            }
        }
    }
    let cells: Vec<String> = cells.into_iter().filter(|cell| !cell.trim().is_empty()).collect();
    let text = cells.join("\n\n");
    Source::whole(path, Kind::Notebook, first_heading(&text), text)
}

/// The language of the code.
fn language(notebook: &Record<'_>) -> Option<String> {
    notebook.object("metadata").ok()?.object("kernelspec").ok()?.label("language").ok()?
}

/// What a cell has printed, its value, or its error; without pictures.
fn output_text(output: &Record<'_>) -> Result<String, Cause> {
    if output.has("text") {
        return Ok(as_shown(output.texts("text")?.concat()));
    }
    if let Some(error) = output.label("ename")? {
        return Ok(format!("{error}: {}", output.label("evalue")?.unwrap_or_default()));
    }
    let Ok(data) = output.object("data") else { return Ok(String::new()) };
    // Beside Markdown the plain text only names the Python object that shows it.
    match ["text/markdown", "text/plain"].into_iter().find(|kind| data.has(kind)) {
        Some(kind) => Ok(data.texts(kind)?.concat()),
        None => Ok(String::new()),
    }
}

/// What a terminal shows of an output: no colours, and of a line that is written again, such as a progress bar, the last state.
fn as_shown(output: String) -> String {
    if !output.contains(['\u{1b}', '\r']) {
        return output;
    }
    let mut shown = String::with_capacity(output.len());
    for line in output.split_inclusive('\n') {
        let mut rest = line.trim_end_matches(['\r', '\n']).rsplit('\r').next().unwrap_or_default();
        // A control sequence ends with a letter or a sign of these.
        while let Some((before, after)) = rest.split_once("\u{1b}[") {
            shown.push_str(before);
            rest = after.trim_start_matches(|c: char| (' '..'@').contains(&c));
            rest = rest.strip_prefix(|c: char| ('@'..='~').contains(&c)).unwrap_or(rest);
        }
        shown.extend([rest, if line.ends_with('\n') { "\n" } else { "" }]);
    }
    shown
}

/// A block with a fence longer than any in it.
fn fenced(language: &str, text: &str) -> Result<String, Limit> {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    check_text(2 * longest + text.len())?;
    let fence = "`".repeat(longest.max(2) + 1);
    Ok(format!("{fence}{language}\n{text}\n{fence}"))
}
