//! Charts, each as SVG and as PNG. The font is part of the program, so that machines without fonts draw the same. The
//! legend is below the plot, so that it covers nothing.

mod letters;
mod paint;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use plotters::prelude::*;

use letters::{FONT, LETTERS, parts, width_of, wrapped};

use crate::{Error, Result};

/// The minimum width of a chart, and the height above the legend.
const WIDTH: u32 = 960;
const HEIGHT: u32 = 440;
const MARGIN: u32 = 14;
/// The width of the value labels and their axis' name on the left.
const LEFT: u32 = 84;
const LINE: u32 = 18;

/// A name and its values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub name: String,
    /// By position on the axis.
    pub points: Vec<(f64, f64)>,
    /// A paper's own values, drawn pale or hollow.
    pub is_published: bool,
}

/// The form of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bars side by side.
    Bars,
    /// A line from point to point.
    Lines,
    /// Points without a line.
    Points,
}

/// The labels of the axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Axis {
    /// The meaning of the names, and a name at 0, 1, 2 and so on.
    Names(String, Vec<String>),
    /// Numbers from 0, and their meaning.
    Numbers(String),
}

/// A chart of some series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chart {
    pub title: String,
    pub kind: Kind,
    pub axis: Axis,
    /// The meaning of the values, with their unit.
    pub values: String,
    pub series: Vec<Series>,
}

impl Series {
    /// Values for names in their order; a name without a value has no point.
    pub fn named(name: impl Into<String>, values: impl IntoIterator<Item = Option<f64>>) -> Series {
        let points = values.into_iter().enumerate().filter_map(|(place, value)| Some((place as f64, value?)));
        Series { name: name.into(), points: points.collect(), is_published: false }
    }

    /// As above, for a paper's own values.
    pub fn published(self) -> Series {
        Series { is_published: true, ..self }
    }
}

impl Chart {
    /// Writes `folder/name.svg` and `folder/name.png`, if there is any value.
    ///
    /// # Errors
    /// [`Error::Write`], [`Error::Draw`].
    pub fn draw(&self, folder: &Path, name: &str) -> Result<()> {
        if self.series.iter().all(|series| series.points.is_empty()) {
            return Ok(());
        }
        if !*LETTERS {
            return Err(Error::Draw { path: folder.join(name), problem: "the letters cannot be read".into() });
        }
        fs::create_dir_all(folder).map_err(Error::writing(folder))?;
        let size = self.size();
        let path = folder.join(format!("{name}.svg"));
        self.paint(&SVGBackend::new(&path, size).into_drawing_area()).map_err(undrawn(&path))?;
        let path = folder.join(format!("{name}.png"));
        let mut pixels = vec![0; (size.0 * size.1 * 3) as usize];
        self.paint(&BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area()).map_err(undrawn(&path))?;
        let file = BufWriter::new(File::create(&path).map_err(Error::writing(&path))?);
        let mut encoder = png::Encoder::new(file, size.0, size.1);
        encoder.set_color(png::ColorType::Rgb);
        let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
        written.map_err(|error| Error::Draw { path, problem: error.to_string() })
    }

    /// Wide enough for every name on the axis and in the legend, with the height that the legend needs.
    fn size(&self) -> (u32, u32) {
        let names = match &self.axis {
            Axis::Names(_, names) => names.iter().flat_map(|name| parts(name)).map(|part| width_of(part, FONT)).max(),
            Axis::Numbers(_) => None,
        };
        let plot = LEFT + 2 * MARGIN + (names.unwrap_or(0) + 8) * self.places();
        let width = WIDTH.max(plot).max(self.entry_width() + 2 * MARGIN);
        (width, HEIGHT + self.name_lines(width) * LINE + self.legend_rows(width) * LINE + MARGIN)
    }

    /// Names on the axis.
    fn places(&self) -> u32 {
        match &self.axis {
            Axis::Names(_, names) => u32::try_from(names.len()).unwrap_or(u32::MAX).max(1),
            Axis::Numbers(_) => 1,
        }
    }

    /// Pixels of one name's share of the axis.
    fn place_width(&self, width: u32) -> u32 {
        (width - LEFT - 2 * MARGIN) / self.places()
    }

    /// The lines of the longest name on the axis.
    fn name_lines(&self, width: u32) -> u32 {
        let Axis::Names(_, names) = &self.axis else { return 1 };
        let lines = names.iter().map(|name| wrapped(name, self.place_width(width) - 8).len()).max();
        u32::try_from(lines.unwrap_or(1)).unwrap_or(1)
    }

    /// Pixels of an entry of the legend.
    fn entry_width(&self) -> u32 {
        self.series.iter().map(|series| width_of(&series.name, FONT)).max().unwrap_or(0) + 44
    }

    fn legend_columns(&self, width: u32) -> u32 {
        ((width - 2 * MARGIN) / self.entry_width()).max(1)
    }

    fn legend_rows(&self, width: u32) -> u32 {
        u32::try_from(self.series.len()).unwrap_or(1).div_ceil(self.legend_columns(width))
    }
}

fn undrawn<E: std::fmt::Display>(path: &Path) -> impl FnOnce(E) -> Error {
    let path: PathBuf = path.to_owned();
    move |error| Error::Draw { path, problem: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Axis {
        Axis::Names("letter".into(), names.iter().map(ToString::to_string).collect())
    }

    /// Width, height and pixels of a chart.
    fn pixels(folder: &Path, name: &str) -> (u32, u32, Vec<u8>) {
        let file = File::open(folder.join(format!("{name}.png"))).unwrap();
        let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info.width, info.height, pixels)
    }

    #[test]
    fn a_chart_is_drawn_twice_with_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let check = |name: &str, kind: Kind, axis: Axis, texts: &[&str]| {
            let series = vec![
                Series::named("first", [Some(1.0), None, Some(3.0)]),
                Series::named("second", [Some(2.0), Some(2.5), Some(0.5)]).published(),
            ];
            let chart = Chart { title: "Some numbers".into(), kind, axis, values: "length, m".into(), series };
            chart.draw(folder.path(), name).unwrap();
            let svg = fs::read_to_string(folder.path().join(format!("{name}.svg"))).unwrap();
            assert!(svg.starts_with("<svg"), "{name}");
            for text in ["Some numbers", "length, m", "first", "second"].iter().chain(texts) {
                assert!(svg.contains(text), "{name}: {text}");
            }
            let (width, height, pixels) = pixels(folder.path(), name);
            assert_eq!((width, height), chart.size());
            // The caption's letters are dark on white.
            let caption = &pixels[..(width * 36 * 3) as usize];
            assert!(caption.chunks(3).filter(|pixel| pixel.iter().all(|part| *part < 96)).count() > 50, "{name}");
            // Both colours are in the plot and in the legend beneath it.
            let (plot, legend) = pixels.split_at((width * (height - MARGIN - LINE) * 3) as usize);
            for (part, of) in [(plot, "plot"), (legend, "legend")] {
                let blue = part.chunks(3).filter(|pixel| **pixel == [0, 114, 178]).count();
                assert!(blue > 20, "{name}: {blue} in the {of}");
            }
        };
        check("bars", Kind::Bars, names(&["a", "b", "c"]), &["letter", "2.5"]);
        check("lines", Kind::Lines, names(&["a", "b", "c"]), &["letter"]);
        check("points", Kind::Points, Axis::Numbers("of something".into()), &["of something"]);
        let (title, values) = (String::new(), String::new());
        let empty = Chart { title, kind: Kind::Lines, axis: names(&[]), values, series: Vec::new() };
        empty.draw(folder.path(), "empty").unwrap();
        assert!(!folder.path().join("empty.svg").exists());
    }

    #[test]
    fn long_names_and_many_series_have_room() {
        let chart = |names: &[&str], series: usize| Chart {
            title: "Many".into(),
            kind: Kind::Bars,
            axis: self::names(names),
            values: "%".into(),
            series: (0..series).map(|_| Series::named("a series of some length", [Some(0.0)])).collect(),
        };
        assert_eq!(chart(&["a"; 3], 2).size(), (WIDTH, HEIGHT + 2 * LINE + MARGIN));
        let (width, height) = chart(&["single-session-preference"; 20], 9).size();
        assert!(width > WIDTH && height > HEIGHT + 4 * LINE, "{width} x {height}");
        let lines = wrapped("single-session-preference", width_of("preference", FONT));
        assert_eq!(lines, ["single-", "session-", "preference"]);
        let folder = tempfile::tempdir().unwrap();
        chart(&["nothing but zeros"], 1).draw(folder.path(), "zeros").unwrap();
        assert!(fs::read_to_string(folder.path().join("zeros.svg")).unwrap().contains("nothing but zeros"));
    }
}
