//! Formulas in documents of Word.

use crate::archives::{RELATIONS, archive};
use crate::read_one;

/// An element of Office Math.
fn element(name: &str, content: &str) -> String {
    format!("<m:{name}>{content}</m:{name}>")
}

/// A run of text.
fn run(text: &str) -> String {
    element("r", &element("t", text))
}

fn sup(base: &str, exponent: &str) -> String {
    element("sSup", &(element("e", &run(base)) + &element("sup", &run(exponent))))
}

fn fraction(numerator: &str, denominator: &str) -> String {
    element("f", &(element("num", numerator) + &element("den", denominator)))
}

fn text_of(body: &str) -> String {
    let body = format!("<w:document>{body}</w:document>");
    read_one("a.docx", &archive(&[RELATIONS, ("word/document2.xml", &body)])).text
}

#[test]
fn formulas_are_written_on_a_line() {
    let check = |formula: &str, expect: &str| {
        let (before, after) = ("<w:r><w:t>so </w:t></w:r>", "<w:r><w:t>.</w:t></w:r>");
        let body = format!("<w:p>{before}<m:oMath>{formula}</m:oMath>{after}</w:p>");
        assert_eq!(text_of(&body), format!("so {expect}."), "{formula}");
    };
    let operands = |names: [(&str, &str); 2]| names.map(|(name, text)| element(name, &run(text))).concat();
    let root = |degree: &str, base: &str| element("rad", &(element("deg", degree) + &element("e", base)));
    let discriminant = root("", &(sup("b", "2") + &run("−4ac")));
    check(&(run("x=") + &fraction(&(run("−b±") + &discriminant), &run("2a"))), "x=(−b±sqrt(b^2−4ac))/(2a)");
    check(&(run("2") + &fraction(&run("1"), &run("2")) + &run("x")), "2 1/2 x");
    check(&root(&run("3"), &run("x+1")), "root(3, x+1)");
    check(&(sup("10", "−6") + &sup("(a+b)", "n+1")), "10^−6(a+b)^(n+1)");
    let (low, high) = (element("sub", &run("i=1")), element("sup", &run("n")));
    let term = element("e", &element("sSub", &operands([("e", "x"), ("sub", "i")])));
    let sign = element("naryPr", "<m:chr m:val='∑'/>");
    check(&element("nary", &[sign, low, high, term].concat()), "∑_(i=1)^n x_i");
    check(&element("func", &operands([("fName", "sin"), ("e", "x")])), "sin x");
    let limit = element("fName", &element("limLow", &operands([("e", "lim"), ("lim", "x→0")])));
    let brackets = element("e", &element("d", &element("e", &run("x"))));
    check(&element("func", &(limit + &brackets)), "lim_(x→0)(x)");
    let row = |cells: [&str; 2]| element("mr", &cells.map(|cell| element("e", &run(cell))).concat());
    let rows = element("e", &element("m", &(row(["1", "2"]) + &row(["3", "4"]))));
    let square = element("dPr", "<m:begChr m:val='['/><m:endChr m:val=']'/>");
    check(&element("d", &(square + &rows)), "[1, 2; 3, 4]");
    check(&(run("x") + "<w:del><m:r><m:t>gone</m:t></m:r></w:del>"), "x");
}

#[test]
fn formulas_of_their_own_have_a_line_each() {
    let formulas = ["a=b", "c=d"].map(|text| element("oMath", &run(text))).concat();
    let (before, after) = ("<w:r><w:t>As</w:t></w:r>", "<w:r><w:t>holds</w:t></w:r>");
    let body = format!("<w:p>{before}{}{after}</w:p>", element("oMathPara", &formulas));
    assert_eq!(text_of(&body), "As\na=b\nc=d\nholds");
}
