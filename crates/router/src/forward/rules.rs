//! Policy rules that look at more than the destination. The kernel would obey
//! them, forwarding here does not: it begins only where that is accepted, and
//! says so when one appears. Called by both ways of forwarding.

use anyhow::{Result, bail};
use dataplane::fib_sync::FibSync;
use table::AF_INET6;
use tracing::warn;

/// Rules that are named at most.
const NAMED: usize = 4;

/// Refuses to begin where there are such rules, unless that is accepted.
pub fn check(fill: &FibSync, accepted: bool) -> Result<()> {
    let ignored = fill.ignored_rules();
    if ignored.is_empty() || accepted {
        return Ok(());
    }
    bail!(
        "packets would pass by {}: policy rules that look at more than the destination are \
         not obeyed; delete them, or forward all the same with --accept rule",
        names(ignored)
    )
}

/// Says when there are others than before. A count would do for nothing else.
pub fn tell(fill: &FibSync, known: &mut Vec<(u8, u32)>) {
    let ignored = fill.ignored_rules();
    if ignored == known.as_slice() {
        return;
    }
    if !ignored.is_empty() {
        warn!("packets pass by {}, which is not obeyed", names(ignored));
    }
    *known = ignored.to_vec();
}

/// The rules by what `ip rule` calls them.
fn names(rules: &[(u8, u32)]) -> String {
    let mut rules = rules.to_vec();
    rules.sort_unstable();
    rules.dedup();
    let named = rules.iter().take(NAMED).map(|(family, priority)| {
        let family = if *family == AF_INET6 { "-6" } else { "-4" };
        format!("`ip {family} rule` {priority}")
    });
    let named: Vec<String> = named.collect();
    let more = rules.len().saturating_sub(NAMED);
    match more {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use table::AF_INET;

    use super::*;

    #[test]
    fn rules_are_named_once_and_not_all() {
        let rules = [(AF_INET6, 7), (AF_INET, 40), (AF_INET, 40)];
        assert_eq!(names(&rules), "`ip -4 rule` 40, `ip -6 rule` 7");
        let many: Vec<(u8, u32)> = (0..9).map(|number| (AF_INET, number)).collect();
        assert!(names(&many).ends_with("`ip -4 rule` 3 and 5 more"));
    }
}
