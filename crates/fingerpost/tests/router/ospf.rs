//! Routing daemons beside the program: FRR's OSPF on the router and on both
//! hosts, over the links that packets are forwarded between.

use std::fs;
use std::path::Path;
use std::process::Command;

use lab::{Child, Netns, wait_until};
use tempfile::TempDir;

use crate::common::PATIENCE;
use crate::place::{Router, place};

/// FRR in a namespace: zebra and ospfd.
struct Frr {
    directory: TempDir,
    _daemons: [Child; 2],
}

impl Frr {
    /// Starts it with OSPF on some links; a neighbour that is not heard for
    /// four seconds is gone.
    fn start(netns: &Netns, id: u8, links: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let mut ospf = format!(
            "router ospf\n ospf router-id 9.9.9.{id}\n network 10.0.0.0/8 area 0\n timers \
             throttle spf 50 100 500\n"
        );
        for link in links {
            ospf.push_str(&format!(
                "interface {link}\n ip ospf hello-interval 1\n ip ospf dead-interval 4\n ip ospf \
                 network point-to-point\n"
            ));
        }
        fs::write(path.join("ospfd.conf"), ospf).unwrap();
        fs::write(path.join("zebra.conf"), "").unwrap();
        let owned = Command::new("chown")
            .args(["-R", "frr:frr"])
            .arg(path)
            .status();
        assert!(owned.unwrap().success());
        let _daemons = ["zebra", "ospfd"].map(|name| daemon(netns, path, name));
        Self {
            directory,
            _daemons,
        }
    }

    /// Neighbours whose adjacency is whole.
    fn adjacencies(&self) -> usize {
        let output = Command::new("vtysh")
            .arg("--vty_socket")
            .arg(self.directory.path())
            .args(["-c", "show ip ospf neighbor"])
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        shown.lines().filter(|line| line.contains("Full/")).count()
    }
}

fn daemon(netns: &Netns, path: &Path, name: &str) -> Child {
    let file = |suffix: &str| path.join(format!("{name}.{suffix}"));
    let mut command = netns.command(&format!("/usr/lib/frr/{name}"));
    command
        .arg("-i")
        .arg(file("pid"))
        .arg("-f")
        .arg(file("conf"))
        .arg("-z")
        .arg(path.join("zebra.api"))
        .arg("--vty_socket")
        .arg(path)
        .args(["-A", "127.0.0.1"])
        .stderr(fs::File::create(file("log")).unwrap());
    let child = Child::spawn(command).unwrap();
    if name == "zebra" {
        wait_until(PATIENCE, "zebra", || {
            path.join("zebra.api").exists().then_some(())
        })
        .unwrap();
    }
    child
}

#[test]
fn adjacencies_stay_up_and_what_is_learnt_is_used() {
    let Some(place) = place("xospf") else { return };
    let router = Router::start(&place.router, &[]);
    for (netns, address) in [
        (&place.left, "10.11.0.1/32"),
        (&place.right, "10.12.0.1/32"),
    ] {
        netns.ip(&["addr", "add", address, "dev", "lo"]).unwrap();
        netns.ip(&["route", "del", "default"]).unwrap();
    }
    let _left = Frr::start(&place.left, 1, &["eth0"]);
    let _right = Frr::start(&place.right, 2, &["eth0"]);
    let between = Frr::start(&place.router, 3, &["lan", "wan"]);
    for (netns, learnt) in [(&place.left, "10.12.0.1"), (&place.right, "10.11.0.1")] {
        wait_until(PATIENCE, "a route learnt", || {
            let shown = netns.ip(&["route", "show", "proto", "ospf"]).unwrap();
            shown.contains(learnt).then_some(())
        })
        .unwrap();
    }
    // Longer than a neighbour may be silent.
    let ping = ["-q", "-i0.01", "-c600", "-I", "10.11.0.1", "10.12.0.1"];
    place.left.run("ping", &ping).unwrap();
    assert!(router.packets("lan", "forwarded") >= 500);
    assert!(router.packets("wan", "forwarded") >= 500);
    assert_eq!(between.adjacencies(), 2);
}
