//! What a daemon that root started gives up.
//!
//! Linux keeps capabilities for each thread; a new thread has those of the
//! one that starts it. So:
//!
//! - before any thread is started, [`keep`] leaves the process
//!   `CAP_NET_ADMIN` (a receive buffer beyond the host's limit, also when a
//!   mirror opens its socket again) and, only where namespaces other than
//!   the own are mirrored, `CAP_SYS_ADMIN` (to enter them); no program it
//!   might start can have more;
//! - a thread that talks with a client calls [`drop_all`] first: it has
//!   none.
//!
//! The user stays the same: root's daemon owns its socket and can remove
//! it.

use rustix::io;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Keeps what mirrors need, of what there is. Call it before threads are
/// started.
pub fn keep(enters_namespaces: bool) -> io::Result<()> {
    let mut wanted = CapabilitySet::NET_ADMIN;
    if enters_namespaces {
        wanted |= CapabilitySet::SYS_ADMIN;
    }
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
