//! `apply`, `diff` and `export`, with `ip` as the judge.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;
#[path = "state/kept.rs"]
mod kept;
#[path = "state/kinds.rs"]
mod kinds;
#[path = "state/managers.rs"]
mod managers;
#[path = "state/restless.rs"]
mod restless;
#[path = "state/session.rs"]
mod session;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use common::{PATIENCE, at_rest, fingerpost, furnished, program, said, says};
use lab::{Netns, wait_until};
use tempfile::TempDir;

/// A directory with files to apply, and a place for journals.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// `apply` of a file, with further arguments.
    fn apply(&self, netns: &Netns, file: &Path, more: &[&str]) -> Output {
        let mut command = netns.command(program());
        command.arg("apply").arg(file).args(more);
        command.arg("--journal").arg(self.path().join("journal"));
        command.output().unwrap()
    }
}

const CUSTOMERS: &str = r#"
[[link]]
name = "cust{1..20}"
kind = "veth"
peer = "custb{}"
mtu = 1400
up = true
address = "02:00:00:00:00:{}"
peer_address = "02:00:00:00:01:{}"
addresses = ["10.0.{/64}.{%64*4+1}/30", "2001:db8:{}::1/64"]
altnames = "customer-{}"
sysctl.ipv4.rp_filter = 2

[[link]]
name = "br0"
kind = "bridge"
options = "forward_delay 400"
address = "02:00:00:00:02:01"

[[link]]
name = "custb7"
master = "br0"

[[route]]
dst = "10.9.{1..20}.0/24"
dev = "cust{}"
metric = 5

[[route]]
dst = "10.99.0.0/16"
nexthops = [{gateway = "10.0.0.6", dev = "cust1", weight = 2}, {gateway = "10.0.0.10", dev = "cust2", weight = 1}]

[[rule]]
priority = "{1..20+500}"
src = "10.0.0.{*4}/30"
table = 100

[[nexthop]]
id = 7
gateway = "10.0.0.6"
dev = "cust1"

[[neighbour]]
dst = "10.0.0.6"
dev = "cust1"
lladdr = "02:00:00:00:00:77"
"#;

#[test]
fn a_file_is_applied_and_a_second_time_nothing_is_sent() {
    let Some(netns) = at_rest("state") else {
        return;
    };
    let files = Files::new();
    let file = files.write("a.toml", CUSTOMERS);
    let path = file.to_str().unwrap();
    let shown = fingerpost(&netns, &["diff", path]);
    assert_eq!(shown.status.code(), Some(1));
    assert_eq!(netns.ip(&["-o", "link"]).unwrap().lines().count(), 1);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(
        text.contains("+ link cust7 type veth peer custb7"),
        "{text}"
    );
    assert!(text.contains("+ route 10.9.3.0/24 dev cust3"), "{text}");
    said(files.apply(&netns, &file, &[]));
    let again = said(files.apply(&netns, &file, &[]));
    assert!(again.contains("nothing was sent"), "{again}");
    assert_eq!(says(&netns, &["diff", path]), "");
    let addresses = netns
        .ip(&["-o", "-4", "addr", "show", "dev", "cust20"])
        .unwrap();
    assert!(
        addresses.contains("10.0.0.81/30 brd 10.0.0.83"),
        "{addresses}"
    );
    let link = netns.ip(&["-d", "link", "show", "custb7"]).unwrap();
    assert!(
        link.contains("master br0") && link.contains("mtu 1400"),
        "{link}"
    );
    let link = netns.ip(&["link", "show", "cust3"]).unwrap();
    assert!(
        link.contains("altname customer-3") && link.contains("02:00:00:00:00:03"),
        "{link}"
    );
    let routes = netns.ip(&["route"]).unwrap();
    assert!(
        routes.contains("nexthop via 10.0.0.6 dev cust1 weight 2"),
        "{routes}"
    );
    let rules = netns.ip(&["rule"]).unwrap();
    assert!(
        rules.contains("520:\tfrom 10.0.0.80/30 lookup 100"),
        "{rules}"
    );
    let filter = netns
        .run("cat", &["/proc/sys/net/ipv4/conf/cust5/rp_filter"])
        .unwrap();
    assert_eq!(filter.trim(), "2");

    // One line is changed: one request.
    let other = CUSTOMERS.replace("weight = 2", "weight = 3");
    let file = files.write("a.toml", &other);
    let shown = fingerpost(&netns, &["diff", path]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(
        text.starts_with("~ route 10.99.0.0/16: nexthops "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
    let done = said(files.apply(&netns, &file, &["--json"]));
    assert!(done.contains("\"requests\":1,"), "{done}");

    // Of a bridge and a link, field by field.
    let other = other
        .replace("forward_delay 400", "forward_delay 500")
        .replace("master = \"br0\"", "master = \"\"\nmtu = 1300");
    files.write("a.toml", &other);
    let shown = fingerpost(&netns, &["diff", path]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(
        text.contains("~ link br0: forward_delay 400 -> 500"),
        "{text}"
    );
    assert!(
        text.contains("~ link custb7: master br0 -> none, mtu 1400 -> 1300"),
        "{text}"
    );
    said(files.apply(&netns, &file, &["--atomic"]));
    assert_eq!(says(&netns, &["diff", path]), "");
}

#[test]
fn what_was_exported_is_as_it_is_and_can_be_made_elsewhere() {
    let (Some(netns), Some(other)) = (furnished("exp"), at_rest("exq")) else {
        return;
    };
    let files = Files::new();
    let exported = says(&netns, &["export"]);
    let file = files.write("exported.toml", &exported);
    let again = said(files.apply(&netns, &file, &[]));
    assert!(again.contains("nothing was sent"), "{again}: {exported}");
    said(files.apply(&other, &file, &[]));
    assert_eq!(says(&other, &["export"]), exported);
    let again = said(files.apply(&other, &file, &[]));
    assert!(again.contains("nothing was sent"), "{again}");
    // The same from what listings print.
    let mut rows = String::new();
    for object in ["addr", "nexthop", "rule"] {
        rows += &says(&netns, &[object, "--ndjson"]);
    }
    let rows = rows.replace("\"mtu\"", "\"min_mtu\"");
    let listed = files.write("rows.json", &rows);
    let said_of_it = files.apply(&netns, &listed, &["--dry-run"]);
    let text = String::from_utf8(said_of_it.stdout).unwrap();
    assert!(
        !text.contains("~ nexthop") && !text.contains("+ rule 1000"),
        "{text}"
    );
}

#[test]
fn a_carrier_that_comes_or_goes_changes_no_file() {
    let Some(netns) = at_rest("carr") else {
        return;
    };
    for words in [
        "link add a0 type veth peer name b0",
        "link add a1 type veth peer name b1",
        "link set a0 up",
        "link set a1 up",
        "link set b0 up",
        "link set b1 up",
        "addr add 10.0.0.1/24 dev a0",
        "addr add 10.0.1.1/24 dev a1",
        "route add 10.1.0.0/16 via 10.7.0.1 dev a0 onlink",
        "route add 10.2.0.0/16 nexthop via 10.0.0.2 dev a0 nexthop via 10.0.1.2 dev a1",
        "route add 10.3.0.0/16 encap ip id 7 dst 10.0.0.9 dev a0",
        "-6 route add 2001:db8::/32 via fe80::1 dev a0",
    ] {
        netns.ip(&words.split(' ').collect::<Vec<_>>()).unwrap();
    }
    let shown = || netns.ip(&["route"]).unwrap();
    let is_up = || (!shown().contains("linkdown")).then_some(());
    wait_until(PATIENCE, "the carriers", is_up).unwrap();
    let up = says(&netns, &["export"]);
    assert!(up.contains("flags = [\"onlink\"]"), "{up}");
    netns.ip(&["link", "set", "b0", "down"]).unwrap();
    let is_down = || (shown().matches("linkdown").count() >= 4).then_some(());
    wait_until(PATIENCE, "a carrier gone", is_down).unwrap();
    let down = says(&netns, &["export"]);
    let other = "name = \"b0\"\nup = ";
    assert_eq!(
        down.replace(&format!("{other}false"), &format!("{other}true")),
        up
    );
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_done() {
    let Some(netns) = at_rest("sbad") else {
        return;
    };
    let files = Files::new();
    let good = "[[link]]\nname = \"a0\"\nkind = \"bridge\"\n";
    for (wrong, place, word) in [
        ("[[link]]\nname = \"b\"\nmtuu = 5\n", ":6: ", "mtuu"),
        (
            "[[link]]\nname = \"b\"\nkind = \"bridges\"\n",
            ":4: ",
            "bridges",
        ),
        (
            "[[link]]\nname = \"b\"\nkind = \"bridge\"\noptions = \"colour 5\"\n",
            ":4: ",
            "colour",
        ),
        (
            "[[route]]\ndst = \"10.0.0.0/33\"\ndev = \"a0\"\n",
            ":4: ",
            "10.0.0.0/33",
        ),
        ("[[link]]\nname = \"a0\"\nkind = \"dummy\"\n", ":4: ", ":1"),
        (
            "[[link]]\nname = \"a0\"\nmaster = \"a0\"\n",
            ":4: ",
            "itself",
        ),
        (
            "[[link]]\nname = \"a1\"\nkind = \"bridge\"\nmaster = \"a0\"\n[[link]]\nname = \"a0\"\nmaster = \"a1\"\n",
            "",
            "circle",
        ),
        (
            "[[rule]]\npriority = 5\ntable = 7\ncolour = 1\n",
            ":4: ",
            "colour",
        ),
    ] {
        let file = files.write("wrong.toml", &format!("{good}{wrong}"));
        let output = files.apply(&netns, &file, &["--atomic"]);
        let why = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong}: {why}");
        assert!(why.contains(place) && why.contains(word), "{wrong}: {why}");
        assert!(why.contains("nothing was done"), "{why}");
    }
    // Two files that contradict each other.
    let one = files.write(
        "one.toml",
        "[[link]]\nname = \"a0\"\nkind = \"bridge\"\nmtu = 1400\n",
    );
    let two = files.write("two.toml", "\n[[link]]\nname = \"a0\"\nmtu = 1500\n");
    let output = files.apply(&netns, &one, &[two.to_str().unwrap()]);
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(
        why.contains("two.toml:2: ") && why.contains("one.toml:1"),
        "{why}"
    );
    assert_eq!(netns.ip(&["-o", "link"]).unwrap().lines().count(), 1);
}

#[test]
fn prune_takes_what_is_ours_and_leaves_the_rest() {
    let Some(netns) = at_rest("sprune") else {
        return;
    };
    let files = Files::new();
    netns
        .ip_batch(
            "link add theirs type bridge\n\
             link set theirs up\n\
             addr add 192.0.2.1/24 dev theirs\n\
             route add 198.51.100.0/24 dev theirs\n",
        )
        .unwrap();
    let text = "[[link]]\nname = \"br{1..3}\"\nkind = \"bridge\"\nup = true\naddresses = \"10.0.{}.1/24\"\n\
        [[route]]\ndst = \"10.9.{1..3}.0/24\"\ndev = \"theirs\"\n\
        [[rule]]\npriority = 7\ntable = 9\n";
    let file = files.write("a.toml", text);
    said(files.apply(&netns, &file, &[]));
    let fewer = "[[link]]\nname = \"br{1..2}\"\nkind = \"bridge\"\nup = true\naddresses = \"10.0.{}.1/24\"\n\
        [[route]]\ndst = \"10.9.{1..2}.0/24\"\ndev = \"theirs\"\n";
    let file = files.write("a.toml", fewer);
    let unchanged = said(files.apply(&netns, &file, &[]));
    assert!(unchanged.contains("nothing was sent"), "{unchanged}");
    let shown = files.apply(&netns, &file, &["--prune", "--dry-run"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    for gone in ["- link br3", "- route 10.9.3.0/24 dev theirs", "- rule "] {
        assert!(text.contains(gone), "{gone}: {text}");
    }
    said(files.apply(&netns, &file, &["--prune"]));
    let links = netns.ip(&["-o", "link"]).unwrap();
    assert!(
        !links.contains("br3") && links.contains("br2") && links.contains("theirs"),
        "{links}"
    );
    let routes = netns.ip(&["route"]).unwrap();
    assert!(
        !routes.contains("10.9.3.0") && routes.contains("10.9.2.0"),
        "{routes}"
    );
    assert!(routes.contains("198.51.100.0/24"), "{routes}");
    let again = said(files.apply(&netns, &file, &["--prune"]));
    assert!(again.contains("nothing was sent"), "{again}");
}

#[test]
fn a_link_that_comes_later_gets_its_part_and_drift_is_put_right() {
    let Some(netns) = at_rest("swatch") else {
        return;
    };
    let files = Files::new();
    let text = "[[link]]\nname = \"late0\"\nmtu = 1400\nup = true\naddresses = \"10.0.0.1/24\"\n\
        [[route]]\ndst = \"10.9.0.0/16\"\ndev = \"late0\"\n";
    let file = files.write("a.toml", text);
    let once = files.apply(&netns, &file, &[]);
    let why = String::from_utf8(once.stderr).unwrap();
    assert_eq!(once.status.code(), Some(1));
    assert!(why.contains("a.toml:1: link late0 is not there"), "{why}");
    let mut command = netns.command(program());
    command.arg("apply").arg(&file).arg("--watch");
    command.stdout(std::process::Stdio::null());
    let mut watching = lab::Child::spawn(command).unwrap();
    netns
        .ip(&["link", "add", "late0", "type", "bridge"])
        .unwrap();
    let is_so = || {
        let route = netns.ip(&["route", "show", "10.9.0.0/16"]).ok()?;
        let link = netns.ip(&["link", "show", "late0"]).ok()?;
        (route.contains("dev late0") && link.contains("mtu 1400")).then_some(())
    };
    wait_until(PATIENCE, "the link's part", is_so).unwrap();
    netns.ip(&["link", "set", "late0", "mtu", "1300"]).unwrap();
    netns.ip(&["route", "del", "10.9.0.0/16"]).unwrap();
    wait_until(PATIENCE, "the drift put right", is_so).unwrap();
    watching.signal(rustix::process::Signal::TERM).unwrap();
    assert!(watching.wait(PATIENCE).unwrap().success());
}
