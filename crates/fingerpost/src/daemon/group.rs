//! The group that may ask at a socket: at the daemon's about other namespaces
//! than its own, and at that of `fingerpost router`.
//!
//! The kernel checks the right at the socket's file, supplementary groups
//! included. To give a file to a group without rights over all files, the
//! daemon has to be in the group itself: it joins while it still may.

use anyhow::{Context, Result, bail};
use rustix::process::{Gid, geteuid, getgid, getgroups};
use rustix::thread::set_thread_groups;

use privileges::groups;

/// Joins a group, unless this process is in it: to be called before there
/// are threads. Gives its number. `key` is where it was said.
pub fn join(key: &str, group: &str) -> Result<Gid> {
    let named = || format!("{key}: {group}");
    let (gid, is_in) = may_join(key, group)?;
    if !is_in {
        let mut groups = getgroups().with_context(named)?;
        groups.push(gid);
        set_thread_groups(&groups).with_context(named)?;
    }
    Ok(gid)
}

/// Whether this process may join a group: its number, and whether it is in
/// it already.
pub fn may_join(key: &str, group: &str) -> Result<(Gid, bool)> {
    let gid = groups::number(group).with_context(|| key.to_owned())?;
    let gid = Gid::from_raw(gid);
    let groups = getgroups().with_context(|| format!("{key}: {group}"))?;
    if getgid() == gid || groups.contains(&gid) {
        return Ok((gid, true));
    }
    if !geteuid().is_root() {
        bail!(
            "{key}: this user is not in group {group}: add it (`usermod -aG`), or have the \
             service manager do it (`SupplementaryGroups=`)"
        );
    }
    Ok((gid, false))
}
