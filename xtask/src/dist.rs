//! `cargo xtask dist`: Debian packages of the program and of libalias, put
//! together from `packaging/`, the build of profile `dist` and what it says
//! of itself, with Debian's own dpkg-shlibdeps and dpkg-deb.

mod debian;
mod files;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::host::{self, Needed, say};
use debian::Package;

/// What makes packages.
pub const NEEDED: &[Needed] = &[
    ("dpkg-deb", "dpkg"),
    ("dpkg-shlibdeps", "dpkg-dev"),
    ("gzip", "gzip"),
    ("strip", "binutils"),
];

/// Makes packages.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Where to put them [default: packages below Cargo's target directory]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Of the programs that are built already, whatever they are
    #[arg(long)]
    no_build: bool,
}

/// Builds, packs, and says what was made.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    host::install_missing(NEEDED)?;
    let root = host::workspace()?;
    if !arguments.no_build {
        // The checks do not build what only packages have.
        let tests = ["test", "--quiet", "--bin=fingerpost", "--", "parquet"];
        let build = ["build", "--profile=dist", "--quiet"];
        let libalias = "--package=fingerpost-libalias";
        cargo(&root, &tests, "the tests of the feature parquet")?;
        cargo(
            &root,
            &[&build[..], &[libalias]].concat(),
            "the build of profile dist",
        )?;
    }
    let target = host::target()?;
    let out = arguments.out.clone().unwrap_or(target.join("packages"));
    for made in pack(&root, &target.join("dist"), &out, "xz")? {
        say(made.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Packs what lies in `built`, compressed by one of dpkg-deb's ways; gives
/// the packages' files.
fn pack(root: &Path, built: &Path, out: &Path, compression: &str) -> Result<Vec<PathBuf>> {
    let work = tempfile::tempdir().context("a directory to pack in")?;
    let from = files::From { root, built };
    let triplet = debian::triplet()?;
    let packages = [
        Package {
            name: "fingerpost",
            section: "net",
            summary: "what a router knows, at any size, answered at once",
            description: &[
                "A live, indexed mirror of the kernel's links, addresses, neighbours,",
                "routes, next hops, rules and forwarding entries, asked by command line",
                "(as ip, arp and ifconfig are) and by SNMP; links, addresses and routes",
                "made by the thousand; recordings of all that, and their replay.",
            ],
            depends: "adduser",
            multi_arch: None,
            conffiles: &["/etc/fingerpost/fingerpost.toml"],
            scripts: &["postinst", "prerm", "postrm"],
        },
        Package {
            name: "libalias7",
            section: "libs",
            summary: "network address translation with libalias's interface",
            description: &[
                "Fingerpost's translation engine behind the C interface of FreeBSD's",
                "libalias: packets in, translated packets out, singly or in batches.",
            ],
            depends: "",
            multi_arch: Some("same"),
            conffiles: &[],
            scripts: &[],
        },
        Package {
            name: "libalias-dev",
            section: "libdevel",
            summary: "network address translation with libalias's interface (development)",
            description: &[
                "The header, the static library and the pkg-config file to build C",
                "programs with Fingerpost's libalias.",
            ],
            depends: concat!("libalias7 (= ", env!("CARGO_PKG_VERSION"), ")"),
            multi_arch: None,
            conffiles: &[],
            scripts: &[],
        },
    ];
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    let mut made = Vec::new();
    for package in &packages {
        let tree = work.path().join(package.name);
        match package.name {
            "fingerpost" => from.program(&tree)?,
            "libalias7" => from.library(&tree, &triplet)?,
            _ => from.development(&tree, &triplet)?,
        }
        from.documents(&tree, package.name)?;
        made.push(package.build(root, &tree, out, compression)?);
    }
    Ok(made)
}

/// Has cargo do something with the program as packages have it.
fn cargo(root: &Path, arguments: &[&str], what: &str) -> Result<()> {
    let (verb, rest) = arguments.split_first().context("no verb for cargo")?;
    let status = host::cargo()
        .current_dir(root)
        .arg(verb)
        .args(["--package=fingerpost", "--features=fingerpost/parquet"])
        .args(rest)
        .status()
        .context("starting cargo")?;
    if !status.success() {
        bail!("{what} failed");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
