//! The text that is extracted from an HTML page.

use crate::{complaint, read_one};

fn check(html: &str, expect: &str) {
    assert_eq!(read_one("a.html", html.as_bytes()).text, expect, "{html}");
}

#[test]
fn inline_elements_join_and_blocks_separate() {
    check("a <b>bold</b>  and\n<i>it</i>alic", "a bold and italic");
    check("<p>one<p>two<div>three</div><div>four</div>", "one\n\ntwo\n\nthree\nfour");
    check("one<br>two<hr>three", "one\ntwo\n\nthree");
    check("<h1>Top</h1>text<h3></h3><h2> <a href=x>Next</a> </h2>", "# Top\n\ntext\n\n## Next");
    check("a&nbsp;&amp;&#x20;b <_x_> [1] *y* so\u{ad}ft &lt;tag&gt;", "a & b <_x_> [1] *y* soft <tag>");
    check("see <a href='https://example.org/long'>the manual</a>.", "see the manual.");
    check("<pre>\n  if x:\n    y\n</pre>after", "  if x:\n    y\n\n\nafter");
    check("a<p>\u{200b} \u{ad}</p>\u{200b}b", "a\n\nb");
    check("日本<b>語</b>", "日本語");
    check("10<sup>−6</sup> m<sup>2</sup>, out<sup><a>12</a></sup>, 1<sup>st</sup>", "10^−6 m^2, out^12, 1st");
    check("101<sub>2</sub>, H<sub>2</sub>O, 10<sup>6</sup>5, 10<b>0</b>", "101_2, H2O, 10^6 5, 100");
}

#[test]
fn lists_keep_their_marks() {
    check("<ul><li>a<li>b<ol start=3><li>c<li>d</ol><li></ul>e", "- a\n- b\n  3. c\n  4. d\n\ne");
    check("<ul><li><p>a</p><li><ul><li>b</ul></ul>", "- a\n\n  - b");
    check("<li>stray", "- stray");
    check("<ol><li>a<li value=7>b<li>c</ol>", "1. a\n7. b\n8. c");
    check("<ol type=a><li>x<li value=27>y<ol type=I><li>z</ol></ol>", "a. x\naa. y\n  I. z");
}

#[test]
fn tables_keep_their_cells_apart() {
    let row = "<tr><td>1<td><td>3</tr>";
    check(&format!("x<table><tr><th>a<th>b<th>c</tr>{row}<tr><td><td></tr></table>y"), "x\n\na | b | c\n1 |  | 3\n\ny");
    check("<table><tr><td>a<td><table><tr><td>b<td>c</table></table>", "a | b | c");
}

#[test]
fn merged_cells_are_repeated_in_the_rows_below_and_those_of_headers_in_their_columns() {
    let header = "<tr><th rowspan=2>pier<th colspan=2>1921<th colspan=2>1922<tr><th>oil<th>wick<th>oil<th>wick";
    let rows = "<tr><td rowspan=0>north<td>1<td>2<td>3<td>4<tr><td>5<td colspan=2>none<td>6";
    let expect =
        "pier | 1921 | 1921 | 1922 | 1922\npier | oil | wick | oil | wick\nnorth | 1 | 2 | 3 | 4\nnorth | 5 | none | 6";
    check(&format!("<table>{header}{rows}</table>"), expect);
    check("<table><tr><th colspan=3>Lamps<tr><td>a<td>b<td>c</table>", "Lamps\na | b | c");
    let inner = "<table><tr><td>b</table>";
    check(&format!("<table><tr><td rowspan=2>a<td>{inner}<tr><td>c</table>"), "a | b\na | c");
    check("<table><tr><td rowspan=x>a<td>b<tr><td>c</table><table><tr><td>d</table>", "a | b\nc\n\nd");
}

#[test]
fn a_row_of_a_table_is_a_line_unless_it_is_a_layout() {
    check("<table><tr><td><p>left</p><p>more</p><td>right</table>", "left more | right");
    check("<table><tr><td>wick<br>(north)<td>12<td><ul><li>a<li>b</ul></table>", "wick (north) | 12 | - a - b");
    check("<table><tr><td><p>one</p><p>two</p><td></table>", "one\n\ntwo");
    check("<table><tr><td><h2>Top</h2>words<td>side</table>", "## Top\n\nwords\n\nside");
    check("<table><tr><td><pre>if x:\n  y</pre><td>side</table>", "if x:\n  y\n\nside");
    let inner = "<table><tr><td>b<td>c<tr><td>d<td>e</table>";
    check(&format!("<table><tr><td>a<td>{inner}</table>"), "a\n\nb | c\nd | e");
    let lines = |count: usize| vec!["x"; count];
    let row = |count| format!("<table><tr><td>{}<td>side</table>", lines(count).join("<br>"));
    check(&row(8), &format!("{} | side", lines(8).join(" ")));
    check(&row(9), &format!("{}\n\nside", lines(9).join("\n")));
    let long = "word ".repeat(120);
    check(&format!("<table><tr><td>a<br>b<td>{long}</table>"), &format!("a\nb\n\n{}", long.trim()));
}

#[test]
fn elements_that_browsers_do_not_show_are_left_out() {
    check(
        "<style>p{}</style><script>x()</script><template>t</template><p hidden>h</p><svg><text>s</text></svg>shown",
        "shown",
    );
    check("<div style='color:red; DISPLAY : none !important'>a<p>b</div><p style='display:none;display:block'>c", "c");
    check("<p hidden='until-found'>a<p style='background:url(display:none)'>b<p style=display:none-x>c", "a\n\nb\n\nc");
    check("<table><tr><td>a<td style=display:none>b<td>c<tr style=display:none><td>d</table>", "a | c");
    check("<noscript>plain</noscript> <img alt='a dog' src='data:...'> <!-- c -->", "plain a dog");
}

#[test]
fn what_a_page_has_in_several_forms_is_read_once() {
    check("<ruby>漢字<rp>(</rp><rt>かんじ</rt><rp>)</rp></ruby>の本", "漢字の本");
    let formula = "<math><semantics><mfrac><mn>1</mn><mn>2</mn></mfrac>\
        <annotation encoding='application/x-tex'>\\frac{1}{2}</annotation></semantics></math>";
    check(&format!("a {formula}<span aria-hidden='true'>12</span> b"), "a \\frac{1}{2} b");
    check(&format!("a {formula}<img aria-hidden='true' alt='12'> b"), "a \\frac{1}{2} b");
    check("<math><semantics><mi>x</mi><annotation encoding='StarMath'>y</annotation></semantics></math>", "x");
    check("<div aria-hidden='true'>behind a dialogue</div>", "behind a dialogue");
}

#[test]
fn formulas_are_written_on_a_line() {
    check("a <math><mfrac><mn>1</mn><mrow><mn>2</mn><mi>x</mi></mrow></mfrac></math> b", "a 1/(2x) b");
    let root = "<msqrt> <msup><mi>a</mi> <mn>2</mn></msup> <mo>+</mo> <mn>1</mn> </msqrt>";
    check(&format!("<math display=block><mi> x </mi><mo>=</mo>{root}</math>"), "x=sqrt(a^2+1)");
    let sum = "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>";
    check(&format!("<math>{sum}<msub><mi>x</mi><mi>i</mi></msub></math>."), "∑_(i=1)^n x_i.");
    let row = |one: &str, two: &str| format!("<mtr><mtd>{one}</mtd><mtd>{two}</mtd></mtr>");
    check(&format!("<math><mtable>{}{}</mtable></math>", row("1", "2"), row("3", "4")), "1, 2; 3, 4");
}

#[test]
fn the_title_is_the_title_element_or_the_first_heading() {
    fn check(html: &str, expect: Option<&str>) {
        assert_eq!(read_one("a.htm", html.as_bytes()).title.as_deref(), expect);
    }
    check("<title> Two\n words </title><h1>H</h1>", Some("Two words"));
    check("<title></title><p>x</p><h2>H</h2>", Some("H"));
    check("x", None);
}

#[test]
fn deep_nesting_is_refused_and_not_a_crash() {
    check(&format!("{}x", "<div>".repeat(400)), "x");
    let expect = "its elements are nested deeper than the limit of 512; save it as text";
    for tag in ["<div>", "<b>", "<table><tr><td>", "<ul><li>", "<svg>", "<math>"] {
        assert_eq!(complaint("a.html", tag.repeat(1_000_000).as_bytes()), expect, "{tag}");
    }
}

#[test]
fn a_page_of_more_bytes_than_allowed_is_refused() {
    let expect = "the HTML is larger than the limit of 32 MiB; split it or save it as text";
    assert_eq!(complaint("a.html", &vec![b'x'; (32 << 20) + 1]), expect);
}

#[test]
fn the_values_that_a_form_shows_are_read() {
    let born = "<label>Name<input value='Ann Orsini'></label> born <input TYPE=date value=1921-05-03>in Pell";
    check(born, "Name Ann Orsini born 1921-05-03 in Pell");
    let unseen = ["password", "hidden", "checkbox"].map(|kind| format!("<input type={kind} value=s3cret>"));
    check(&format!("Key: {}none", unseen.concat()), "Key: none");
    check("Notes<textarea>Cut the\nwick.</textarea>", "Notes Cut the wick.");
    let colours = "<option>red<optgroup><option selected><b>gr</b>een<option>blue</optgroup>";
    check(&format!("Lamp:<select>{colours}</select>is lit"), "Lamp: green is lit");
    check("Lamp: <select><option>red<option>green</select>", "Lamp: red");
    let boxed = "<option disabled>Choose</option><div><option>red</option><option>green</option></div>";
    check(&format!("Lamp: <select>{boxed}</select>"), "Lamp: red");
    check(&format!("Lamps <select multiple>{colours}</select>"), "Lamps\nred\ngreen\nblue");
    let struck = "<s>Was <input value=12> <select><option>days</select></s>";
    check(&format!("{struck}<datalist><option>x</datalist>12 hours"), "12 hours");
}
