//! The progress bar of a call.

use crate::show::out::{shorten, stderr_is_terminal, tell_over};
use linchpin::client::Progress;

/// Width of the bar, in characters.
const WIDTH: usize = 24;

/// A progress bar on standard error, if that is a terminal; erased when dropped.
pub(crate) struct Bar {
    on: bool,
    drawn: bool,
}

impl Bar {
    pub(crate) fn new() -> Bar {
        Bar { on: stderr_is_terminal(), drawn: false }
    }

    pub(crate) fn show(&mut self, progress: &Progress) {
        if self.on {
            self.drawn = true;
            tell_over(&line(progress));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.drawn {
            tell_over("");
        }
    }
}

fn line(progress: &Progress) -> String {
    let message =
        progress.message.as_deref().map_or(String::new(), |m| format!(" {}", shorten(&m.replace('\n', " "), 60)));
    match progress.total.filter(|total| *total > 0.0) {
        Some(total) => {
            let part = (progress.progress / total).clamp(0.0, 1.0);
            let full = (part * WIDTH as f64).round() as usize;
            format!("[{}{}] {:3.0}%{message}", "#".repeat(full), ".".repeat(WIDTH - full), part * 100.0)
        }
        None => format!("… {}{message}", progress.progress),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_leaves_its_frame() {
        let at = |progress, total, message: Option<&str>| {
            let mut step = Progress::default();
            (step.progress, step.total, step.message) = (progress, total, message.map(str::to_owned));
            line(&step)
        };
        assert_eq!(at(1.0, Some(4.0), Some("a\nb")), "[######..................]  25% a b");
        assert_eq!(at(9.0, Some(4.0), None), "[########################] 100%");
        assert_eq!(at(-1.0, Some(4.0), None), "[........................]   0%");
        assert_eq!(at(7.0, Some(0.0), None), "… 7");
    }
}
