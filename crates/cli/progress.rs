//! Progress bars on standard error; where that is no terminal, a line now and then.

use std::collections::HashMap;

use indicatif::{ProgressBar, ProgressStyle};
use memory::Progress;
use models::fetch;

/// Bars for the files of a download.
#[derive(Default)]
pub struct Downloads {
    bars: HashMap<String, ProgressBar>,
}

impl Downloads {
    /// Shows how far a file has come.
    pub fn report(&mut self, progress: fetch::Progress<'_>) {
        let bar = self.bars.entry(progress.file.to_owned()).or_insert_with(|| {
            let bar = ProgressBar::new(progress.total_bytes.unwrap_or(0));
            bar.set_style(style("{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}"));
            bar.set_message(progress.file.to_owned());
            bar
        });
        if let Some(total) = progress.total_bytes {
            bar.set_length(total);
        }
        bar.set_position(progress.done_bytes);
        if progress.total_bytes == Some(progress.done_bytes) {
            bar.finish_and_clear();
        }
    }
}

/// A bar for memorising and one for embedding.
#[derive(Default)]
pub struct Pages {
    bar: Option<(&'static str, ProgressBar)>,
}

impl Pages {
    /// Shows how far the work has come.
    pub fn report(&mut self, progress: Progress) {
        let (what, done, of) = match progress {
            Progress::Memorised { done, of } => ("memorising", done, of),
            Progress::Embedded { done, of } => ("embedding", done, of),
        };
        if self.bar.as_ref().is_none_or(|(shown, _)| *shown != what) {
            let bar = ProgressBar::new(of as u64);
            bar.set_style(style("{msg} {bar:30} {pos}/{len} pages, {elapsed} so far, {eta} left"));
            bar.set_message(what);
            bar.enable_steady_tick(std::time::Duration::from_millis(200));
            bar.reset_elapsed();
            self.bar = Some((what, bar));
        }
        let Some((_, bar)) = &self.bar else { return };
        bar.set_position(done as u64);
        if done == of {
            bar.finish_and_clear();
            eprintln!(
                "{what}: {of} {} done in {:.1} s",
                if of == 1 { "page" } else { "pages" },
                bar.elapsed().as_secs_f32()
            );
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
