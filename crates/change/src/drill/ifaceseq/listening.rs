//! Who else looks at every new link: with one of these in the namespace, a
//! measurement would time them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use linux::Namespace;

/// Programs that work on every link that comes, by the name the kernel
/// knows them by (15 bytes of it), and as their users know them.
const MANAGERS: [(&str, &str); 4] = [
    ("systemd-udevd", "udev"),
    ("(udev-worker)", "udev"),
    ("NetworkManager", "NetworkManager"),
    ("systemd-network", "systemd-networkd"),
];

/// The managers of links that run in a namespace, each once. O(processes).
pub fn managers(namespace: &Namespace) -> Vec<&'static str> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let path = process.path();
        let Some(name) = manager(&path) else {
            continue;
        };
        // Without the right to look into a process we cannot know that it
        // is elsewhere.
        let is_elsewhere = fs::metadata(path.join("ns/net"))
            .is_ok_and(|metadata| metadata.ino() != namespace.inode());
        if !is_elsewhere && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn manager(process: &Path) -> Option<&'static str> {
    let name = fs::read_to_string(process.join("comm")).ok()?;
    let known = MANAGERS.iter().find(|(comm, _)| *comm == name.trim_end());
    known.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_manager_is_seen_in_its_own_namespace_only() {
        let Some(fresh) = lab::skip::unless(Namespace::fresh().map_err(anyhow::Error::from)) else {
            return;
        };
        assert_eq!(managers(&fresh), Vec::<&str>::new());
        // A process by that name inside: `sleep` under another name.
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("NetworkManager");
        fs::copy("/bin/sleep", &program).unwrap();
        let mut process = fresh
            .run(|| std::process::Command::new(&program).arg("30").spawn())
            .unwrap()
            .unwrap();
        // `spawn` may return while the kernel still replaces the process,
        // its name last.
        let comm = format!("/proc/{}/comm", process.id());
        let named = lab::wait_until(Duration::from_secs(10), "the copy's name", || {
            let name = fs::read_to_string(&comm).ok()?;
            (name.trim_end() == "NetworkManager").then_some(())
        });
        let seen = managers(&fresh);
        process.kill().unwrap();
        process.wait().unwrap();
        named.unwrap();
        assert_eq!(seen, ["NetworkManager"]);
    }
}
