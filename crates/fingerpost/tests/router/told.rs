//! What a router at XDP is told by: its configuration, and `up` beside it,
//! over HTTP, in metrics, in `status` and in `top`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use lab::{Netns, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::common::{Daemon, PATIENCE, fingerpost, program, says};
use crate::place::{Place, Router, has_program, place};

const AT: &str = "127.0.0.1:9797";

/// `up` beside it, over HTTP as well.
fn up(netns: &Netns, router: &Router) -> Daemon {
    let config = format!("{}.up", router.control());
    let text = format!(
        "[http]\nlisten = ['{AT}']\n[router]\ncontrol = '{}'\n",
        router.control()
    );
    fs::write(&config, text).unwrap();
    Daemon::up(netns, &["--config", &config])
}

fn get(netns: &Netns, path: &str) -> String {
    let url = format!("http://{AT}{path}");
    netns
        .run("curl", &["-sS", "--max-time", "60", &url])
        .unwrap()
}

fn router_json(netns: &Netns) -> Value {
    serde_json::from_str(&get(netns, "/v1/router")).unwrap()
}

/// A metric's value.
fn metric(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

fn ping(place: &Place) {
    let ping = ["-c20", "-i0.01", "-W5", "-q", "10.2.0.2"];
    place.left.run("ping", &ping).unwrap();
}

#[test]
fn up_tells_over_http_in_metrics_status_and_top() {
    let Some(place) = place("xtold") else { return };
    let netns = &place.router;
    let router = Router::configured(netns, "on = ['lan', 'wan']\n");
    let _daemon = up(netns, &router);
    ping(&place);
    let forwarded = r#"fingerpost_router_packets_total{device="lan",reason="forwarded"}"#;
    let metrics = wait_until(PATIENCE, "packets in the metrics", || {
        let metrics = get(netns, "/metrics");
        metric(&metrics, forwarded).filter(|&packets| packets >= 15)?;
        Some(metrics)
    })
    .unwrap();
    for (name, value) in [
        ("fingerpost_router_up", 1),
        (
            r#"fingerpost_router_receives{device="lan",family="ipv4"}"#,
            1,
        ),
        (r#"fingerpost_router_sends{device="wan",family="ipv6"}"#, 1),
        (
            r#"fingerpost_router_packets_total{device="wan",reason="fragment"}"#,
            0,
        ),
    ] {
        assert_eq!(metric(&metrics, name), Some(value), "{name}");
    }
    let said = router_json(netns);
    assert_eq!(said["running"], true);
    let report = &said["report"];
    assert_eq!(report["status"]["ports"][0]["name"], "lan");
    assert!(
        report["counters"][0]["forwarded_packets"].as_u64() >= Some(15),
        "{said}"
    );
    let status = says(netns, &["status"]);
    assert!(
        status.contains("router at XDP: 2 of 2 ports forward; "),
        "{status}"
    );
    // Something in the way is told by its kind; which it is, by the router alone.
    let chain = "add table inet f; add chain inet f secret { type filter hook forward \
                 priority 0; policy drop; }";
    netns.run("nft", &[chain]).unwrap();
    let said = wait_until(PATIENCE, "the obstacle", || {
        let said = router_json(netns);
        let obstacles = said["report"]["status"]["obstacles"].as_array()?;
        (!obstacles.is_empty()).then(|| said.clone())
    })
    .unwrap();
    assert_eq!(said["report"]["status"]["obstacles"][0]["name"], "nft");
    assert!(!said.to_string().contains("secret"), "{said}");
    assert!(router.status().to_string().contains("secret"));
    let metrics = get(netns, "/metrics");
    let obstacle = r#"fingerpost_router_obstacles{obstacle="nft",accepted="no"}"#;
    assert_eq!(metric(&metrics, obstacle), Some(1), "{metrics}");
    assert!(says(netns, &["status"]).contains("left to the kernel for nft"));
    netns.run("nft", &["delete table inet f"]).unwrap();
}

#[test]
fn top_has_a_line_of_it_with_rates() {
    let Some(place) = place("xtop") else { return };
    let netns = &place.router;
    let router = Router::start(netns, &[]);
    let _daemon = up(netns, &router);
    let mut pinging = place.left.command("ping");
    pinging.args(["-i0.01", "-q", "-w120", "10.2.0.2"]);
    pinging.stdout(std::process::Stdio::null());
    let pinging = lab::Child::spawn(pinging).unwrap();
    let top = ["top", "--once", "--interval", "1"];
    let rates = wait_until(PATIENCE, "a rate", || {
        let said = says(netns, &[&top[..], &["--json"]].concat());
        let said: Value = serde_json::from_str(&said).unwrap();
        said["router"]["forwarded"]
            .as_f64()
            .filter(|&rate| rate > 1.0)
    })
    .unwrap();
    // A hundred pings a second go both ways, fewer on a busy machine.
    assert!(rates < 260.0, "{rates}");
    let said = says(netns, &top);
    let line = said.lines().find(|line| line.starts_with("router at XDP"));
    assert!(line.unwrap().contains("2 of 2 ports forward"), "{said}");
    drop(pinging);
}

/// A router that hangs costs whoever asks a bounded time, and is told of; one
/// that has gone is none.
#[test]
fn one_that_hangs_is_told_of_and_one_that_is_gone_is_none() {
    let Some(place) = place("xhang") else { return };
    let netns = &place.router;
    let mut router = Router::start(netns, &[]);
    let _daemon = up(netns, &router);
    assert_eq!(router_json(netns)["running"], true);
    router.forwarding.process.signal(Signal::STOP).unwrap();
    let began = Instant::now();
    let said = wait_until(PATIENCE, "trouble", || {
        let said = router_json(netns);
        said["trouble"].is_string().then_some(said)
    })
    .unwrap();
    assert_eq!(said["report"], Value::Null);
    // It waits for 0.7 s; the rest is a busy machine's.
    assert!(began.elapsed() < Duration::from_secs(20));
    let metrics = get(netns, "/metrics");
    assert_eq!(metric(&metrics, "fingerpost_router_up"), Some(0));
    assert!(!metrics.contains("fingerpost_router_packets_total"));
    assert!(says(netns, &["status"]).contains("WARNING: the router at XDP does not answer"));
    router.forwarding.process.signal(Signal::CONT).unwrap();
    wait_until(PATIENCE, "an answer", || {
        router_json(netns)["report"].is_object().then_some(())
    })
    .unwrap();
    router.forwarding.process.signal(Signal::TERM).unwrap();
    router.forwarding.process.wait(PATIENCE).unwrap();
    wait_until(PATIENCE, "no router", || {
        (router_json(netns)["running"] == false).then_some(())
    })
    .unwrap();
    assert!(!get(netns, "/metrics").contains("fingerpost_router_"));
}

/// By its configuration alone, as the packaged service runs it; and a group
/// may ask.
#[test]
fn the_configuration_says_what_the_command_line_does_not() {
    let Some(place) = place("xconf") else { return };
    let netns = &place.router;
    netns
        .run("tc", &["qdisc", "add", "dev", "wan", "clsact"])
        .unwrap();
    let section = "on = ['lan', 'wan']\naccept = ['tc']\nobstacle = 'tell'\ngroup = '4711'\n";
    let router = Router::configured(netns, section);
    assert!(has_program(netns, "lan") && has_program(netns, "wan"));
    assert_eq!(router.status()["obstacles"][0]["accepted"], true);
    assert_eq!(router.receives("wan"), [true; 2]);
    let mode = fs::metadata(router.control()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    // The questions find the socket by the same file.
    let shown = says(netns, &["router", "counters", "--config", &router.config()]);
    assert!(shown.starts_with("lan: forwarded "), "{shown}");
    let directory = std::path::Path::new(&router.control()).to_owned();
    let directory = directory.parent().unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    let as_user = |group: &str| {
        let output = Command::new("setpriv")
            .args(["--reuid", "4712", "--regid", group, "--clear-groups", "--"])
            .arg(program())
            .args([
                "router",
                "reasons",
                "--json",
                "--control",
                &router.control(),
            ])
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert_eq!(as_user("4711"), (Some(0), String::new()));
    let (status, said) = as_user("4712");
    assert!(
        status == Some(1) && said.contains("Permission denied"),
        "{said}"
    );
    // What the command line says goes first, and is refused by name.
    let refused = |arguments: &[&str]| {
        let config = router.config();
        let all = [&["router", "--config", &config], arguments].concat();
        let output = fingerpost(netns, &all);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["--on", "lan"]).contains("name two at least"));
    assert!(refused(&["--accept", "member"]).contains("--accept member: this cannot"));
    assert!(refused(&["--group", "no-such-group"]).contains("no-such-group"));
    assert!(refused(&[]).contains("there is another one already"));
}
