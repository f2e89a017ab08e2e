//! Paints a chart: its axes, its series as bars, lines or points, and its legend.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::letters::{FONT, number, wrapped};
use super::{Axis, Chart, HEIGHT, Kind, LEFT, LINE, MARGIN, Series};

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

type Plane<'a, B> = ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

impl Chart {
    pub(super) fn paint<B: DrawingBackend>(&self, root: &DrawingArea<B, Shift>) -> Drawn<B> {
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

/// Text centred at its position.
fn centred(font: (&'static str, u32), vertical: VPos) -> TextStyle<'static> {
    TextStyle::from(font.into_font()).pos(Pos::new(HPos::Center, vertical))
}
