//! Behind net-snmp's snmpd, as its AgentX subagent.

use lab::wait_until;
use rustix::process::Signal;

use crate::common::{Daemon, PATIENCE, furnished, said};
use crate::{CIDR_ROUTES, INET_ROUTES, World, at_rest};

fn status(world: &World) -> String {
    said(world.fingerpost(&["status"]).output().unwrap())
}

fn session_opens(world: &World, sessions: u32) {
    let wanted = format!("open, {sessions} sessions");
    let waited = wait_until(PATIENCE, &wanted, || {
        status(world).contains(&wanted).then_some(())
    });
    assert!(waited.is_ok(), "{}", status(world));
}

fn walks_the_same(world: &World) {
    for table in [
        INET_ROUTES,
        CIDR_ROUTES,
        ".1.3.6.1.2.1.4.20",
        ".1.3.6.1.2.1.2.2",
    ] {
        let walk = |port: u16| {
            let words = format!("-v2c -c public -t 5 -r 2 -Cr50 127.0.0.1:{port} {table}");
            let mut rows = world.walk("snmpbulkwalk", &words);
            // Counters go on between the two; each has a clock of its own.
            rows.iter_mut()
                .filter(|(_, value)| value.starts_with("Counter") || value.starts_with("Timeticks"))
                .for_each(|(_, value)| value.clear());
            rows
        };
        let [direct, through] = at_rest([&|| walk(1161), &|| walk(1163)]);
        assert!(direct.len() > 10, "{table}: {direct:?}");
        assert_eq!(direct, through, "{table}");
    }
}

/// A link that changes is told of by the clock of the one that is asked: the
/// master, which is younger than we are, or we.
fn times_are_the_masters(world: &World) {
    let ticks = |port: u16, name: &str| -> u64 {
        let words = format!("-v2c -c public -t 5 -r 2 -Ot 127.0.0.1:{port} {name}");
        let got = world.walk("snmpget", &words);
        got[0].1.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let index = world.netns.ip(&["-o", "link", "show", "veth0"]).unwrap();
    let index = index.split(':').next().unwrap();
    let last_change = format!(".1.3.6.1.2.1.2.2.1.9.{index}");
    let before = ticks(1161, &last_change);
    for state in ["down", "up"] {
        world.netns.ip(&["link", "set", "veth0", state]).unwrap();
    }
    let ours = wait_until(PATIENCE, "the change", || {
        Some(ticks(1161, &last_change)).filter(|&ticks| ticks > before)
    });
    let theirs = ticks(1163, &last_change);
    let now = ticks(1163, ".1.3.6.1.2.1.1.3.0");
    assert!(theirs < ours.unwrap(), "the agent is older than its master");
    assert!(theirs > 0 && theirs <= now, "{theirs}, and now {now}");
    // It knows who tells it what.
    let modules = world.tool(
        "snmpwalk",
        "-v2c -c public 127.0.0.1:1163 .1.3.6.1.2.1.1.9.1.3",
    );
    assert!(modules.contains("fingerpost"), "{modules}");
}

#[test]
fn walked_through_a_master_that_freezes_and_starts_again() {
    let Some(netns) = furnished("master") else {
        return;
    };
    let Some(world) = World::with(netns, &["snmpbulkwalk", "snmpd"]) else {
        return;
    };
    // Ours looks for the master before there is one.
    let section = format!(
        "[snmp]\nlisten = ['127.0.0.1:1161']\nagentx = '{}'\n",
        world.path("master").display()
    );
    let daemon = world.up(&section);
    daemon.logs("no AgentX master at");
    let master = world.snmpd(&[]);
    session_opens(&world, 1);
    walks_the_same(&world);
    // Its own group is still its own, and 0 subtrees were refused though
    // it has modules of its own for all of them.
    let words = "-v2c -c public -t 5 127.0.0.1:1163 .1.3.6.1.2.1.1.1.0";
    assert!(!world.tool("snmpget", words).contains("fingerpost"));
    assert!(status(&world).contains("0 subtrees refused"));
    frozen(&world, &daemon, &master);
    drop(master);
    daemon.logs("hung up");
    let again = world.snmpd(&[]);
    session_opens(&world, 2);
    walks_the_same(&world);
    times_are_the_masters(&world);
    drop(again);
    daemon.end();
}

/// While the master is frozen nobody else waits; when it goes on, so does
/// the session.
fn frozen(world: &World, daemon: &Daemon, master: &lab::Child) {
    // `nsenter` becomes snmpd: it is this process.
    master.signal(Signal::STOP).unwrap();
    let link = |state| {
        let dev = ["link", "set", "veth1", state];
        world.netns.ip(&dev).unwrap();
    };
    // Notifications for a master that reads nothing, too.
    for _ in 0..50 {
        link("down");
        link("up");
    }
    for _ in 0..20 {
        let words = "-v2c -c public -t 5 -r 0 127.0.0.1:1161 .1.3.6.1.2.1.1.3.0";
        assert!(world.tool("snmpget", words).contains("Timeticks"));
    }
    let table = said(world.fingerpost(&["route"]).output().unwrap());
    assert!(table.contains("10.9.0.0/24"), "{table}");
    master.signal(Signal::CONT).unwrap();
    // What it did not read meanwhile, it reads before it asks for this.
    let words = format!("-v2c -c public -t 30 -r 2 -Cr10 127.0.0.1:1163 {INET_ROUTES}");
    assert!(!world.walk("snmpbulkwalk", &words).is_empty());
    session_opens(world, 1);
    assert!(!daemon.log().contains("hung up"), "{}", daemon.log());
}

#[test]
fn what_an_existing_agent_needs_is_what_it_takes() {
    let Some(world) = World::new("help", &["snmpd", "snmpget"]) else {
        return;
    };
    let help = said(world.fingerpost(&["snmp", "agentx-help"]).output().unwrap());
    let joined = help.replace("\\\n", "");
    let modules = joined
        .lines()
        .find_map(|line| line.strip_prefix("-I "))
        .unwrap();
    let _master = world.snmpd(&["-I", modules]);
    // None of its modules answers for what is ours any more.
    for ours in [".1.3.6.1.2.1.2", ".1.3.6.1.2.1.4.24", ".1.3.6.1.2.1.31"] {
        let words = format!("-v2c -c public -t 5 127.0.0.1:1163 {ours}");
        let left = world.tool("snmpwalk", &words);
        assert!(left.contains("No Such Object"), "{left}");
    }
}
