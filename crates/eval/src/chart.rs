//! Charts, each as SVG and as PNG. The font is part of the program, so that machines without fonts draw the same. The
//! legend is below the plot, so that it covers nothing.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::{Error, Result};

/// The minimum width of a chart, and the height above the legend.
const WIDTH: u32 = 960;
const HEIGHT: u32 = 440;
const MARGIN: u32 = 14;
/// The width of the value labels and their axis' name on the left.
const LEFT: u32 = 84;
const LINE: u32 = 18;
const FONT: (&str, u32) = ("sans-serif", 14);
const TITLE: (&str, u32) = ("sans-serif", 20);
const SMALL: (&str, u32) = ("sans-serif", 12);
/// Pixels of a bar with its number above it.
const NUMBERED: u32 = 34;
/// Okabe and Ito's colours without yellow, which has too little contrast on white, and two more.
const COLORS: [RGBColor; 9] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(110, 110, 110),
    RGBColor(120, 70, 40),
    RGBColor(90, 60, 150),
];

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

    fn paint<B: DrawingBackend>(&self, root: &DrawingArea<B, Shift>) -> Drawn<B> {
        root.fill(&WHITE)?;
        let (width, _) = root.dim_in_pixel();
        let lines = self.name_lines(width);
        let (plot, _) = root.split_vertically(HEIGHT + lines * LINE);
        let points = || self.series.iter().flat_map(|series| &series.points);
        let most = points().map(|(_, value)| *value).fold(0.0, f64::max);
        let (from, to) = self.ends();
        let mut chart = ChartBuilder::on(&plot)
            .caption(&self.title, TITLE)
            .margin(MARGIN)
            .x_label_area_size(lines * LINE + 30)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(from..to, 0.0..if most > 0.0 { most * 1.1 } else { 1.0 })?;
        let label = |value: &f64| number(*value);
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh()
            .max_light_lines(0)
            .x_label_formatter(&label)
            .y_label_formatter(&label)
            .label_style(FONT)
            .y_desc(&self.values);
        match &self.axis {
            Axis::Names(what, _) => mesh.x_labels(0).x_desc(what),
            Axis::Numbers(what) => mesh.x_desc(what),
        };
        mesh.draw()?;
        if let Axis::Names(_, names) = &self.axis {
            for (place, name) in names.iter().enumerate() {
                let (x, y) = chart.backend_coord(&(place as f64, 0.0));
                for (line, part) in (0..).zip(wrapped(name, self.place_width(width) - 8)) {
                    root.draw(&Text::new(part, (x, y + 8 + line * LINE.cast_signed()), centred(FONT, VPos::Top)))?;
                }
            }
        }
        match self.kind {
            Kind::Bars => self.paint_bars(&chart, root)?,
            Kind::Lines | Kind::Points => {
                (0..self.series.len()).try_for_each(|place| self.paint_series(place, &chart, root))?;
            }
        }
        self.paint_legend(root)?;
        root.present()
    }

    fn paint_series<B: DrawingBackend>(
        &self,
        place: usize,
        chart: &Plane<'_, B>,
        root: &DrawingArea<B, Shift>,
    ) -> Drawn<B> {
        let at: Vec<(i32, i32)> = self.series[place].points.iter().map(|point| chart.backend_coord(point)).collect();
        if self.kind == Kind::Lines {
            root.draw(&PathElement::new(at.clone(), self.color(place).stroke_width(2)))?;
        }
        at.into_iter().try_for_each(|at| self.mark(place, at, root))
    }

    /// For each name the existing bars, side by side and centred.
    fn paint_bars<B: DrawingBackend>(&self, chart: &Plane<'_, B>, root: &DrawingArea<B, Shift>) -> Drawn<B> {
        let names = 0..self.places();
        let at = |name: u32| {
            let point = |series: &Series| series.points.iter().find(|point| point.0 == f64::from(name)).copied();
            let bars = self.series.iter().enumerate().filter_map(|(place, series)| Some((place, point(series)?.1)));
            (f64::from(name), bars.collect::<Vec<_>>())
        };
        let groups: Vec<(f64, Vec<(usize, f64)>)> = names.map(at).collect();
        let most = groups.iter().map(|(_, bars)| bars.len()).max().unwrap_or(1);
        let width = 0.8 / most.max(1) as f64;
        for (name, bars) in groups {
            let first = name - width * bars.len() as f64 / 2.0;
            for (rank, (place, value)) in bars.into_iter().enumerate() {
                let left = first + rank as f64 * width;
                let (x0, base) = chart.backend_coord(&(left, 0.0));
                let (x1, top) = chart.backend_coord(&(left + width * 0.95, value));
                self.block(place, [(x0, top), (x1, base)], root)?;
                if u32::try_from(x1 - x0).is_ok_and(|width| width >= NUMBERED) {
                    root.draw(&Text::new(number(value), (x0.midpoint(x1), top - 3), centred(SMALL, VPos::Bottom)))?;
                }
            }
        }
        Ok(())
    }

    /// The names of the series, each with its symbol, in columns.
    fn paint_legend<B: DrawingBackend>(&self, root: &DrawingArea<B, Shift>) -> Drawn<B> {
        let (width, height) = root.dim_in_pixel();
        let columns = self.legend_columns(width);
        let top = height - MARGIN - self.legend_rows(width) * LINE;
        for (place, series) in self.series.iter().enumerate() {
            let number = u32::try_from(place).unwrap_or(u32::MAX);
            let x = (MARGIN + number % columns * self.entry_width()).cast_signed();
            let y = (top + number / columns * LINE + LINE / 2).cast_signed();
            match self.kind {
                Kind::Bars => self.block(place, [(x + 4, y - 5), (x + 22, y + 5)], root)?,
                Kind::Lines => {
                    root.draw(&PathElement::new([(x, y), (x + 26, y)], self.color(place).stroke_width(2)))?;
                    self.mark(place, (x + 13, y), root)?;
                }
                Kind::Points => self.mark(place, (x + 13, y), root)?,
            }
            let style = FONT.into_text_style(root).pos(Pos::new(HPos::Left, VPos::Center));
            root.draw(&Text::new(series.name.as_str(), (x + 32, y), style))?;
        }
        Ok(())
    }

    /// A colour by index among the series of its kind; after the last one they repeat, lighter.
    fn color(&self, place: usize) -> RGBAColor {
        let of_kind = |series: &&Series| series.is_published == self.series[place].is_published;
        let number = self.series[..place].iter().filter(of_kind).count();
        COLORS[number % COLORS.len()].mix(if number < COLORS.len() { 1.0 } else { 0.5 })
    }

    fn block<B: DrawingBackend>(
        &self,
        place: usize,
        corners: [(i32, i32); 2],
        root: &DrawingArea<B, Shift>,
    ) -> Drawn<B> {
        let color = self.color(place);
        if self.series[place].is_published {
            root.draw(&Rectangle::new(corners, color.mix(0.25).filled()))?;
            return root.draw(&Rectangle::new(corners, color.stroke_width(1)));
        }
        root.draw(&Rectangle::new(corners, color.filled()))
    }

    fn mark<B: DrawingBackend>(&self, place: usize, at: (i32, i32), root: &DrawingArea<B, Shift>) -> Drawn<B> {
        let (x, y) = at;
        let color = self.color(place);
        match (self.series[place].is_published, place % 2) {
            (true, 0) => root.draw(&Circle::new(at, 5, color.stroke_width(2))),
            (true, _) => root.draw(&Rectangle::new([(x - 5, y - 5), (x + 5, y + 5)], color.stroke_width(2))),
            (false, 0) => root.draw(&Circle::new(at, 5, color.filled())),
            (false, _) => root.draw(&TriangleMarker::new(at, 7, color.filled())),
        }
    }

    /// The range of the axis.
    fn ends(&self) -> (f64, f64) {
        let points = self.series.iter().flat_map(|series| &series.points);
        match &self.axis {
            Axis::Names(_, names) => (-0.5, names.len() as f64 - 0.5),
            Axis::Numbers(_) => (0.0, points.map(|(place, _)| place * 1.1).fold(1e-9, f64::max)),
        }
    }
}

/// A number with at most two decimals and with thousands separators.
fn number(value: f64) -> String {
    let digits = if value.abs() < 1.0 { 4 } else { 2 };
    let written = format!("{value:.digits$}");
    let (whole, fraction) = written.split_once('.').unwrap_or((&written, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut grouped = String::new();
    for (place, digit) in whole.char_indices() {
        if place > 0 && (whole.len() - place) % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if fraction.is_empty() { grouped } else { format!("{grouped}.{fraction}") }
}

/// The parts of a name between which a line may break.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split_inclusive([' ', '-', '_', '.', ','])
}

/// Wraps a name into lines of at most this many pixels, as far as its parts allow.
fn wrapped(name: &str, width: u32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts(name) {
        match lines.last_mut() {
            Some(line) if width_of(&format!("{line}{part}"), FONT) <= width => line.push_str(part),
            _ => lines.push(part.to_owned()),
        }
    }
    lines
}

/// The width of a text in pixels; none if the font cannot be loaded.
fn width_of(text: &str, font: (&str, u32)) -> u32 {
    LETTERS
        .then(|| font.into_font().box_size(text.trim_end()))
        .and_then(std::result::Result::ok)
        .map_or(0, |size| size.0)
}

/// Text centred at its position.
fn centred(font: (&'static str, u32), vertical: VPos) -> TextStyle<'static> {
    TextStyle::from(font.into_font()).pos(Pos::new(HPos::Center, vertical))
}

type Plane<'a, B> = ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn<B> = std::result::Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

fn undrawn<E: std::fmt::Display>(path: &Path) -> impl FnOnce(E) -> Error {
    let path: PathBuf = path.to_owned();
    move |error| Error::Draw { path, problem: error.to_string() }
}

/// Whether the font could be loaded; it is part of the program, so it can.
static LETTERS: LazyLock<bool> =
    LazyLock::new(|| register_font(FONT.0, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT).is_ok());

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

    #[test]
    fn numbers_are_written_short() {
        let check = |value: f64, expect: &str| assert_eq!(number(value), expect);
        check(0.0, "0");
        check(0.25, "0.25");
        check(12.346, "12.35");
        check(100.0, "100");
        check(1_234_567.0, "1,234,567");
        check(-1234.5, "-1,234.5");
    }
}
