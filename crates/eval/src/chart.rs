//! Charts, each as SVG and as PNG. Their letters come with the program: a machine without fonts draws the same.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::register_font;

use crate::{Error, Result};

const SIZE: (u32, u32) = (960, 480);
const FONT: (&str, u32) = ("sans-serif", 14);

/// A name and its values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub name: String,
    /// By where they stand on the axis.
    pub points: Vec<(f64, f64)>,
}

/// What is drawn of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bars side by side.
    Bars,
    /// A line from point to point.
    Lines,
    /// The points alone.
    Points,
}

/// What stands along the axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Axis {
    /// A name at 0, 1, 2 and so on.
    Names(Vec<String>),
    /// Numbers from 0, and what they count.
    Numbers(String),
}

/// A picture of some series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chart {
    pub title: String,
    pub kind: Kind,
    pub axis: Axis,
    pub series: Vec<Series>,
}

impl Series {
    /// Values for names in their order; a name without a value has no point.
    pub fn named(name: impl Into<String>, values: impl IntoIterator<Item = Option<f64>>) -> Series {
        let points = values.into_iter().enumerate().filter_map(|(place, value)| Some((place as f64, value?)));
        Series { name: name.into(), points: points.collect() }
    }
}

impl Chart {
    /// Writes `folder/name.svg` and `folder/name.png`, if there is anything to draw.
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
        let path = folder.join(format!("{name}.svg"));
        self.paint(&SVGBackend::new(&path, SIZE).into_drawing_area()).map_err(undrawn(&path))?;
        let path = folder.join(format!("{name}.png"));
        let mut pixels = vec![0; (SIZE.0 * SIZE.1 * 3) as usize];
        self.paint(&BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area()).map_err(undrawn(&path))?;
        let file = BufWriter::new(File::create(&path).map_err(Error::writing(&path))?);
        let mut encoder = png::Encoder::new(file, SIZE.0, SIZE.1);
        encoder.set_color(png::ColorType::Rgb);
        let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
        written.map_err(|error| Error::Draw { path, problem: error.to_string() })
    }

    fn paint<B: DrawingBackend>(&self, root: &DrawingArea<B, Shift>) -> Drawn<B> {
        root.fill(&WHITE)?;
        let (from, to) = self.width();
        let points = || self.series.iter().flat_map(|series| &series.points);
        let most = points().map(|(_, value)| *value).fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(root)
            .caption(&self.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d(from..to, 0.0..(most * 1.1).max(1e-9))?;
        let label = |place: &f64| self.label(*place);
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh().x_label_formatter(&label).label_style(FONT);
        match &self.axis {
            Axis::Names(names) => mesh.x_labels(names.len() * 2 + 1),
            Axis::Numbers(what) => mesh.x_desc(what),
        };
        mesh.draw()?;
        for number in 0..self.series.len() {
            self.paint_series(number, &mut chart)?;
        }
        chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).label_font(FONT).draw()?;
        root.present()
    }

    fn paint_series<B: DrawingBackend>(&self, number: usize, chart: &mut Plane<'_, B>) -> Drawn<B> {
        let Series { name, points } = &self.series[number];
        let color = Palette99::pick(number).to_rgba();
        let width = 0.8 / self.series.len() as f64;
        let drawn = match self.kind {
            Kind::Bars => chart.draw_series(points.iter().map(|(place, value)| {
                let left = place - 0.4 + number as f64 * width;
                Rectangle::new([(left, 0.0), (left + width * 0.95, *value)], color.filled())
            }))?,
            Kind::Lines => chart.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?,
            Kind::Points => chart.draw_series(points.iter().map(|point| Circle::new(*point, 5, color.filled())))?,
        };
        drawn.label(name).legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
        Ok(())
    }

    /// From where to where the axis goes.
    fn width(&self) -> (f64, f64) {
        let points = self.series.iter().flat_map(|series| &series.points);
        match &self.axis {
            Axis::Names(names) => (-0.5, names.len() as f64 - 0.5),
            Axis::Numbers(_) => (0.0, points.map(|(place, _)| place * 1.1).fold(1e-9, f64::max)),
        }
    }

    fn label(&self, place: f64) -> String {
        match &self.axis {
            Axis::Names(names) => {
                let here = names.iter().enumerate().find(|(number, _)| (place - *number as f64).abs() < 1e-6);
                here.map_or_else(String::new, |(_, name)| name.clone())
            }
            Axis::Numbers(_) => format!("{place:.4}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        }
    }
}

type Plane<'a, B> = ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn<B> = std::result::Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

fn undrawn<E: std::fmt::Display>(path: &Path) -> impl FnOnce(E) -> Error {
    let path: PathBuf = path.to_owned();
    move |error| Error::Draw { path, problem: error.to_string() }
}

/// Whether the letters could be read; they are the program's own, so they can.
static LETTERS: LazyLock<bool> =
    LazyLock::new(|| register_font(FONT.0, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT).is_ok());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_drawn_twice_with_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let check = |name: &str, kind: Kind, axis: Axis| {
            let series = vec![
                Series::named("first", [Some(1.0), None, Some(3.0)]),
                Series::named("second", [Some(2.0), Some(2.5), Some(0.5)]),
            ];
            Chart { title: "Some numbers".into(), kind, axis, series }.draw(folder.path(), name).unwrap();
            let svg = fs::read_to_string(folder.path().join(format!("{name}.svg"))).unwrap();
            assert!(
                svg.starts_with("<svg") && ["Some numbers", "first", "second"].iter().all(|text| svg.contains(text))
            );
            let file = File::open(folder.path().join(format!("{name}.png"))).unwrap();
            let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().unwrap();
            let mut pixels = vec![0; (SIZE.0 * SIZE.1 * 3) as usize];
            let info = reader.next_frame(&mut pixels).unwrap();
            assert_eq!((info.width, info.height), SIZE);
            // The caption's letters are dark on white.
            let caption = &pixels[..(SIZE.0 * 36 * 3) as usize];
            assert!(caption.chunks(3).filter(|pixel| pixel.iter().all(|part| *part < 96)).count() > 50, "{name}");
        };
        check("bars", Kind::Bars, Axis::Names(vec!["a".into(), "b".into(), "c".into()]));
        check("lines", Kind::Lines, Axis::Names(vec!["a".into(), "b".into(), "c".into()]));
        check("points", Kind::Points, Axis::Numbers("of something".into()));
        let empty =
            Chart { title: String::new(), kind: Kind::Lines, axis: Axis::Names(Vec::new()), series: Vec::new() };
        empty.draw(folder.path(), "empty").unwrap();
        assert!(!folder.path().join("empty.svg").exists());
    }
}
