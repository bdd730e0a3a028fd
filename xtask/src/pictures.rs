//! `cargo xtask pictures`: those of the README, made anew into
//! `docs/pictures`. The page and `top` are run by their tests (the ignored
//! ones, which look for some seconds), the growth is measured by
//! `fingerpost ifaceseq`.

mod screen;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::host;

/// Sizes of the growth: a minute at most on a small machine.
const SIZES: &str = "100,300,1000,3000,10000";

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
    let top = made.join("top.ansi");
    let text = fs::read_to_string(&top).with_context(|| top.display().to_string())?;
    fs::write(pictures.join("top.svg"), screen::svg(&text))?;
    let mut growth = Command::new(env!("CARGO"));
    growth.current_dir(root).args(["run", "--quiet", "--"]);
    growth.args(["ifaceseq", "--growth", "--sizes", SIZES, "--svg"]);
    done(growth.arg(pictures.join("growth.svg")))?;
    Ok(ExitCode::SUCCESS)
}

fn done(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}
