//! What a command that lasts gives up before it reads what strangers send.
//! For `serve`, `router`, `traffic` and the program.
//!
//! Linux keeps capabilities for each thread; a new thread has those of the
//! one that starts it. So:
//!
//! - before any thread is started, [`keep`] leaves the process what it
//!   needs later ([`keep_for_mirrors`]: `CAP_NET_ADMIN` for a receive buffer
//!   beyond the host's limit, also when a mirror opens its socket again,
//!   and `CAP_SYS_ADMIN` only where namespaces other than the own are
//!   entered); no program it might start can have more;
//! - a thread that reads what strangers send calls [`drop_all`] first: it
//!   has none;
//! - [`confine`] takes system calls away that no command needs once it
//!   runs: to start programs, to trace, to mount, to load modules.
//!
//! The user stays the same: root's daemon owns its socket and can remove
//! it.

pub mod groups;
mod system_calls;

pub use rustix::thread::CapabilitySet;
pub use system_calls::{Unconfined, confine, need_bpf};

use rustix::io;
use rustix::thread::{
    CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Keeps what mirrors need, of what there is. Call it before threads are
/// started.
pub fn keep_for_mirrors(enters_namespaces: bool) -> io::Result<()> {
    let mut wanted = CapabilitySet::NET_ADMIN;
    if enters_namespaces {
        wanted |= CapabilitySet::SYS_ADMIN;
    }
    keep(wanted)
}

/// Keeps these capabilities, of those that there are, for this thread and
/// whatever it starts. Call it before threads are started.
pub fn keep(wanted: CapabilitySet) -> io::Result<()> {
    set_no_new_privs(true)?;
    let held = capabilities(None)?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().difference(wanted).iter() {
            match remove_capability_from_bounding_set(capability) {
                // Older kernels do not know the newest ones.
                Ok(()) | Err(io::Errno::INVAL) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    reduce_to(held, wanted)
}

/// Gives up all that a command can do without once what it reads and writes
/// is open: every capability, and the system calls of [`confine`] where the
/// kernel can. For one that has a single thread.
pub fn give_up() -> io::Result<()> {
    give_up_but(CapabilitySet::empty())
}

/// The same, but for these capabilities; threads that are started later
/// have no others.
pub fn give_up_but(wanted: CapabilitySet) -> io::Result<()> {
    keep(wanted)?;
    // Where the kernel has no filters the capabilities are gone all the same.
    let _ = confine();
    Ok(())
}

/// Gives up everything, for the calling thread.
pub fn drop_all() -> io::Result<()> {
    reduce_to(capabilities(None)?, CapabilitySet::empty())
}

fn reduce_to(held: CapabilitySets, wanted: CapabilitySet) -> io::Result<()> {
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: held.effective & wanted,
            permitted: held.permitted & wanted,
            inheritable: CapabilitySet::empty(),
        },
    )
}
