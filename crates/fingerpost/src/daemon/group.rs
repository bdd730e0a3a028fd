//! The group that may ask about other namespaces than the daemon's own.
//!
//! The kernel checks the right at the socket's file, supplementary groups
//! included. To give a file to a group without rights over all files, the
//! daemon has to be in the group itself: it joins while it still may.

use anyhow::{Context, Result, bail};
use rustix::process::{Gid, geteuid, getgid, getgroups};
use rustix::thread::set_thread_groups;

use privileges::groups;

use crate::config::Group;

/// Joins a group, unless this process is in it: to be called before there
/// are threads. Gives its number.
pub fn join(group: &Group) -> Result<Gid> {
    let named = || format!("control.group: {}", group.0);
    let (gid, is_in) = may_join(group)?;
    if !is_in {
        let mut groups = getgroups().with_context(named)?;
        groups.push(gid);
        set_thread_groups(&groups).with_context(named)?;
    }
    Ok(gid)
}

/// Whether this process may join a group: its number, and whether it is in
/// it already.
pub fn may_join(group: &Group) -> Result<(Gid, bool)> {
    let gid = number(group)?;
    let groups = getgroups().with_context(|| format!("control.group: {}", group.0))?;
    if getgid() == gid || groups.contains(&gid) {
        return Ok((gid, true));
    }
    if !geteuid().is_root() {
        bail!(
            "control.group: this user is not in group {}: add it (`usermod -aG`), or have the \
             service manager do it (`SupplementaryGroups=`)",
            group.0
        );
    }
    Ok((gid, false))
}

/// The number of a group, by its name or itself.
fn number(group: &Group) -> Result<Gid> {
    let number = groups::number(&group.0);
    Ok(Gid::from_raw(number.context("control.group")?))
}
