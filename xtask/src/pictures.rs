//! `cargo xtask pictures`: those of the README, made anew into
//! `docs/pictures`, and the page's layouts at three widths. The page and `top` are run by their tests (the ignored
//! ones, which look for a minute); the growth is drawn of what was measured
//! last and kept in `docs/bench`.

mod screen;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use ::lab::bench::Report;
use anyhow::{Context, Result, bail};
use view::plot::{Plot, Series};

use crate::host;

/// What grows: a case of the benchmarks, and of it one job.
const CASE: &str = "arp";
const JOB: &str = "list as arp";

/// Which layouts of the page are kept: widths, and parts of it.
const WIDTHS: [u32; 3] = [360, 768, 1440];
const PARTS: [&str; 3] = ["overview", "routes", "rules"];

/// Makes all of them.
pub fn run() -> Result<ExitCode> {
    host::install_missing(host::FOR_TESTS)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("the workspace")?;
    let (made, pictures) = (root.join("target/tmp"), root.join("docs/pictures"));
    fs::create_dir_all(&pictures)?;
    for test in ["page", "top"] {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(root).args(["test", "-p", "fingerpost"]);
        cargo.args(["--test", test, "--", "--ignored", "the_picture"]);
        done(&mut cargo)?;
    }
    let page = made.join("page/picture.png");
    fs::copy(&page, pictures.join("page.png")).with_context(|| page.display().to_string())?;
    layouts(root, &made.join("page"), &pictures.join("layouts"))?;
    let top = made.join("top.ansi");
    let text = fs::read_to_string(&top).with_context(|| top.display().to_string())?;
    fs::write(pictures.join("top.svg"), screen::svg(&text))?;
    fs::write(
        pictures.join("growth.svg"),
        growth(&root.join("docs/bench"))?,
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The page at three widths, as its test looks at them.
fn layouts(root: &Path, made: &Path, kept: &Path) -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["test", "-p", "fingerpost"]);
    cargo.args(["--test", "page", "--", "by_keys_alone_and_on_a_phone"]);
    done(&mut cargo)?;
    fs::create_dir_all(kept)?;
    for width in WIDTHS {
        for part in PARTS {
            let name = format!("{width}-{part}.png");
            let from = made.join(&name);
            fs::copy(&from, kept.join(&name)).with_context(|| from.display().to_string())?;
        }
    }
    Ok(())
}

/// The newest kept measurement of the case.
fn growth(kept: &Path) -> Result<String> {
    let files = fs::read_dir(kept)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<_> = files.collect::<Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|kind| kind == "json"));
    files.sort();
    for path in files.iter().rev() {
        let reports: Vec<Report> = serde_json::from_slice(&fs::read(path)?)?;
        if let Some(report) = reports.iter().find(|report| report.case == CASE) {
            let date = path.file_stem().unwrap_or_default().to_string_lossy();
            return Ok(drawn(report, &date));
        }
    }
    bail!("{}: nothing of the case {CASE} is kept", kept.display())
}

fn drawn(report: &Report, date: &str) -> String {
    let rows = report.rows.iter();
    let mut series: Vec<Series> = Vec::new();
    for row in rows.filter(|row| row.what == JOB && row.metric == "wall_ms") {
        let point = (row.size as f64, row.median);
        match series.iter_mut().find(|one| one.name == row.who) {
            Some(one) => one.points.push(point),
            None => series.push(Series {
                name: row.who.clone(),
                points: vec![point],
            }),
        }
    }
    let plot = Plot {
        title: format!("{JOB}: milliseconds by number of neighbours, {date}"),
        x: "neighbours".into(),
        y: "wall_ms".into(),
        series,
    };
    plot.svg()
}

fn done(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_drawn_with_its_date() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let svg = growth(&root.join("docs/bench")).unwrap();
        assert!(
            svg.contains("arp -an") && svg.contains("fingerpost"),
            "{svg}"
        );
        assert!(svg.contains(", 20"), "{svg}");
        assert!(growth(root).is_err());
    }
}
