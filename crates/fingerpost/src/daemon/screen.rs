//! What `fingerpost up` says once it is ready: one screen.

use std::io::{self, Write};

use super::mirrored::{Mirrored, named};
use serve::status::{self, human};

/// Namespaces shown one by one at most.
const SHOWN: usize = 12;

/// Where others come to, beside the control socket.
#[derive(Debug)]
pub struct Listening<'a> {
    /// Addresses of SNMP.
    pub snmp: &'a [String],
    /// Addresses of HTTP.
    pub http: &'a [String],
    /// Names and addresses of feeds by FPM.
    pub fpm: &'a [String],
    /// The same, by BMP.
    pub bmp: &'a [String],
}

/// Writes the screen.
pub fn write(
    mirrored: &[&Mirrored],
    listening: &Listening<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let Listening {
        snmp,
        http,
        fpm,
        bmp,
    } = listening;
    let version = env!("CARGO_PKG_VERSION");
    match mirrored {
        [] => writeln!(out, "fingerpost {version} waits for namespaces to mirror.")?,
        [one] => {
            writeln!(
                out,
                "fingerpost {version} mirrors {} (inode {}), read in {:.1?}:",
                named(one.spec.as_deref()),
                one.inode(),
                one.load_time()
            )?;
            status::write_tables(&status::tables(&one.tables()), out)?;
            writeln!(out, "It listens at {}.", one.socket().display())?;
        }
        many => several(many, out)?,
    }
    if !snmp.is_empty() {
        writeln!(out, "SNMP is answered at {} (UDP).", snmp.join(", "))?;
    }
    if !http.is_empty() {
        writeln!(out, "HTTP is answered at {}", http.join(" "))?;
    }
    for (feeds, by) in [(fpm, "FPM"), (bmp, "BMP")] {
        if !feeds.is_empty() {
            writeln!(out, "Routes are taken from {} ({by}).", feeds.join(", "))?;
        }
    }
    writeln!(out, "Memory: {}.\n", human(status::resident_bytes()))?;
    try_next(mirrored, out)
}

fn several(many: &[&Mirrored], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "fingerpost {} mirrors {} namespaces:",
        env!("CARGO_PKG_VERSION"),
        many.len()
    )?;
    for one in many.iter().take(SHOWN) {
        let tables = one.tables();
        writeln!(
            out,
            "  {}: {} links, {} addresses, {} neighbours, {} routes, {} rows in all, read in {:.1?}\n    {}",
            named(one.spec.as_deref()),
            tables.links.len(),
            tables.addresses.len(),
            tables.neighbours.len(),
            tables.routes.len(),
            tables.rows(),
            one.load_time(),
            one.socket().display()
        )?;
    }
    if many.len() > SHOWN {
        writeln!(out, "  and {} more", many.len() - SHOWN)?;
    }
    Ok(())
}

fn try_next(mirrored: &[&Mirrored], out: &mut impl Write) -> io::Result<()> {
    let of = match mirrored.first().and_then(|first| first.spec.as_deref()) {
        Some(spec) => format!(" --netns {spec}"),
        None => String::new(),
    };
    writeln!(
        out,
        "Try next, in another terminal:\n  \
         fingerpost neigh{of}                 who is on the wire\n  \
         fingerpost route get 192.0.2.1{of}   where a packet would go\n  \
         fingerpost route{of} --watch         changes as they happen\n  \
         fingerpost status{of}                how the daemon is\n\
         Ctrl-C ends it; SIGHUP reads its configuration again."
    )?;
    out.flush()
}
