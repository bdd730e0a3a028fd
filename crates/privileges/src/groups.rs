//! Groups of this host by name. For whoever lets a group in at a socket:
//! the daemon's control socket, that of AgentX subagents, a translation's.

use std::fs;

use anyhow::{Context, Result};

/// Where groups have their numbers, for those of this host.
const GROUPS: &str = "/etc/group";

/// The number of a group, by its name or itself.
pub fn number(group: &str) -> Result<u32> {
    match group.parse() {
        Ok(number) => Ok(number),
        Err(_) => {
            let text = fs::read_to_string(GROUPS).context(GROUPS)?;
            by_name(&text, group).with_context(|| format!("{GROUPS} has no `{group}`"))
        }
    }
}

fn by_name(groups: &str, name: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let found = fields.next() == Some(name);
        found.then(|| fields.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_its_whole_name() {
        let groups = "root:x:0:\nnetadmins:x:7:\nnetadmin:x:8:a,b\nbroken:x\n";
        assert_eq!(by_name(groups, "netadmin"), Some(8));
        assert_eq!(by_name(groups, "net"), None);
        assert_eq!(by_name(groups, "broken"), None);
        assert!(number("no-such-group").is_err());
        assert_eq!(number("7").unwrap(), 7);
    }
}
