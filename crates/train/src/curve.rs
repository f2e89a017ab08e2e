//! The record of a run: a CSV file, and its loss as an SVG drawing.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use crate::error::{Result, io};

/// The record of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Steps done.
    pub step: usize,
    /// Mean of `-log p` over the answer tokens of the step.
    pub loss: f32,
    pub rate: f32,
    /// Norm of the gradient before clipping.
    pub norm: f32,
    /// Tokens of all steps so far.
    pub tokens: u64,
    pub seconds: f64,
    /// For held-out examples, if they were scored: mean loss, and the share of answers that greedy decoding reproduces.
    pub held_out: Option<(f32, f32)>,
    /// Of sampled replies: mean reward, and divergence from the adapter that training started from, in nats a token.
    pub rewarded: Option<(f32, f32)>,
}

/// Name of the CSV file in a run's folder.
pub const CSV: &str = "curve.csv";
const SVG: &str = "curve.svg";
const HEAD: &str = "step,loss,rate,norm,tokens,seconds,held_out_loss,held_out_exact,reward,divergence";

/// Reads the rows of a folder up to a step; none if there is no file.
pub fn read(folder: &Path, up_to: usize) -> Vec<Row> {
    let text = std::fs::read_to_string(folder.join(CSV)).unwrap_or_default();
    text.lines().skip(1).filter_map(row).filter(|row| row.step <= up_to).collect()
}

fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').collect();
    let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
    let pair = |at: usize| Some((number(at)? as f32, number(at + 1)? as f32));
    Some(Row {
        step: fields.first()?.parse().ok()?,
        loss: number(1)? as f32,
        rate: number(2)? as f32,
        norm: number(3)? as f32,
        tokens: fields.get(4)?.parse().ok()?,
        seconds: number(5)?,
        held_out: pair(6),
        rewarded: pair(8),
    })
}

/// Writes both files durably; each is replaced at once or not at all.
///
/// # Errors
/// If one cannot be written.
pub fn write(folder: &Path, rows: &[Row]) -> Result<()> {
    let mut csv = format!("{HEAD}\n");
    for row in rows {
        let Row { step, loss, rate, norm, tokens, seconds, .. } = row;
        let pair = |values: Option<(f32, f32)>| values.map_or(",".to_owned(), |(a, b)| format!("{a:.4},{b:.4}"));
        let (held_out, rewarded) = (pair(row.held_out), pair(row.rewarded));
        let _ = writeln!(csv, "{step},{loss:.5},{rate:.3e},{norm:.4},{tokens},{seconds:.1},{held_out},{rewarded}");
    }
    for (name, text) in [(CSV, csv), (SVG, drawing(rows))] {
        let path = folder.join(name);
        models::replace_file(&path, |file| file.write_all(text.as_bytes())).map_err(io(&path))?;
    }
    Ok(())
}

/// The loss by step, or the reward where replies are rewarded: every step as a faint line, its running mean, and the held-out loss
/// (or share of exact answers) as points.
fn drawing(rows: &[Row]) -> String {
    const WIDTH: f64 = 760.0;
    const HEIGHT: f64 = 360.0;
    const MARGIN: f64 = 48.0;
    let last = rows.last().map_or(1, |row| row.step).max(1) as f64;
    let is_rewarded = rows.iter().any(|row| row.rewarded.is_some());
    let of_held_out = |(loss, exact): (f32, f32)| f64::from(if is_rewarded { exact } else { loss });
    let of_step = |row: &Row| row.rewarded.map_or(row.loss, |(reward, _)| reward);
    let held_out = || rows.iter().filter_map(|row| Some((row.step as f64, of_held_out(row.held_out?))));
    let losses = || rows.iter().map(|row| (row.step as f64, f64::from(of_step(row))));
    let most = losses().chain(held_out()).map(|(_, loss)| loss).filter(|loss| loss.is_finite()).fold(0.1, f64::max);
    let x = |step: f64| MARGIN + step / last * (WIDTH - 2.0 * MARGIN);
    let y = |loss: f64| HEIGHT - MARGIN - loss / most * (HEIGHT - 2.0 * MARGIN);
    let mut mean = None;
    let smooth = losses().map(|(step, loss)| {
        let value = mean.map_or(loss, |mean: f64| 0.95 * mean + 0.05 * loss);
        mean = Some(value);
        (step, value)
    });
    let line = |points: &mut dyn Iterator<Item = (f64, f64)>, style: &str| {
        let points: Vec<String> = points.map(|(step, loss)| format!("{:.1},{:.1}", x(step), y(loss))).collect();
        format!("<polyline fill=\"none\" {style} points=\"{}\"/>\n", points.join(" "))
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for part in 0..=4 {
        let (loss, step) = (most * f64::from(part) / 4.0, last * f64::from(part) / 4.0);
        let _ = writeln!(
            svg,
            "<line x1=\"{MARGIN}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{loss:.2}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{step:.0}</text>",
            WIDTH - MARGIN,
            MARGIN - 6.0,
            y(loss) + 4.0,
            x(step),
            HEIGHT - MARGIN + 18.0,
            at = y(loss)
        );
    }
    svg += &line(&mut losses(), "stroke=\"#9bb8d9\" stroke-width=\"0.7\"");
    svg += &line(&mut { smooth }, "stroke=\"#1f5fa8\" stroke-width=\"1.8\"");
    for (step, loss) in held_out() {
        let _ = writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"#c4541c\"/>", x(step), y(loss));
    }
    let title = if is_rewarded {
        "mean reward of sampled replies: steps, running mean; exact answers of held-out examples (dots)"
    } else {
        "loss of answer tokens (nats): steps, running mean, held out (dots)"
    };
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">step</text>\
         <text x=\"{MARGIN}\" y=\"24\">{title}</text>\n</svg>",
        WIDTH / 2.0,
        HEIGHT - 8.0
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_back_up_to_a_step() {
        let folder = tempfile::tempdir().unwrap();
        let row = |step: usize| Row {
            step,
            loss: 2.5 / step as f32,
            rate: 1e-3,
            norm: 0.5,
            tokens: step as u64 * 100,
            seconds: 1.5,
            held_out: step.is_multiple_of(2).then_some((1.25, 0.5)),
            rewarded: (step > 3).then_some((0.75, 0.25)),
        };
        let rows: Vec<Row> = (1..=6).map(row).collect();
        write(folder.path(), &rows).unwrap();
        let back = read(folder.path(), 4);
        assert_eq!(back.len(), 4);
        assert_eq!((back[3].step, back[3].tokens, back[3].held_out), (4, 400, Some((1.25, 0.5))));
        assert_eq!((back[2].held_out, back[2].rewarded, back[3].rewarded), (None, None, Some((0.75, 0.25))));
        let svg = std::fs::read_to_string(folder.path().join(SVG)).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && svg.matches("<circle").count() == 3);
    }
}
