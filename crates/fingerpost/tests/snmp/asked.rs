//! Asked in every version, over IPv4 and IPv6, with and without the right.

use std::time::Duration;

use lab::wait_until;

use crate::common::{PATIENCE, furnished, said};
use crate::{Walked, World, at_rest};

const SYS_NAME: &str = ".1.3.6.1.2.1.1.5.0";

const SECTION: &str = "\
[snmp]
listen = ['127.0.0.1:1161', '[::1]:1161', '0.0.0.0:1162', '[::]:1162']
name = 'r1'
[[snmp.community]]
name = 'public'
[[snmp.community]]
name = 'elsewhere'
sources = ['192.0.2.0/24']
[[snmp.community]]
name = 'routes'
view = 'routes'
[[snmp.community]]
name = 'hundred'
context = 'table-100'
[[snmp.user]]
name = 'bert'
level = 'authNoPriv'
view = 'routes'
[snmp.view]
routes = ['1.3.6.1.2.1.4.24', '!1.3.6.1.2.1.4.24.4']
";

fn world(tag: &str) -> Option<World> {
    World::with(furnished(tag)?, &["snmpget", "snmpbulkwalk"])
}

#[test]
fn in_versions_1_and_2c_at_every_address() {
    let Some(world) = world("asked") else {
        return;
    };
    let daemon = world.up(SECTION);
    for at in [
        "127.0.0.1:1161",
        "udp6:[::1]:1161",
        "127.0.0.9:1162",
        "udp6:[::1]:1162",
        "10.9.0.1:1162",
    ] {
        for version in ["1", "2c"] {
            // From its own address 10.9.0.1 it is not loopback that asks.
            let listed = !at.starts_with("10.9");
            let patience = if listed { 5 } else { 1 };
            let words = format!("-v{version} -c public -t {patience} -r 0 {at} {SYS_NAME}");
            let got = world.tool("snmpget", &words);
            assert_eq!(got.contains("\"r1\""), listed, "{words}: {got}");
        }
    }
    let at = "-t 1 -r 0 127.0.0.1:1161";
    for community in ["wrong", "elsewhere"] {
        let got = world.tool("snmpget", &format!("-v2c -c {community} {at} {SYS_NAME}"));
        assert!(got.contains("Timeout"), "{got}");
    }
    walked_alike(&world);
    // A view hides, and a context shows another table.
    let seen = world.walk("snmpbulkwalk", &format!("-v2c -c routes {at} .1"));
    assert!(seen.iter().all(|(name, _)| {
        name.starts_with(".1.3.6.1.2.1.4.24.") && !name.starts_with(".1.3.6.1.2.1.4.24.4.")
    }));
    let number = ".1.3.6.1.2.1.4.24.6.0";
    let main = world.tool("snmpget", &format!("-v2c -c public {at} {number}"));
    let hundred = world.tool("snmpget", &format!("-v2c -c hundred {at} {number}"));
    assert!(hundred.contains("Gauge32: 1\n"), "{hundred}");
    assert_ne!(main, hundred);
    // Nothing is writable.
    let set = world.tool("snmpset", &format!("-v2c -c public {at} {SYS_NAME} s x"));
    assert!(set.contains("notWritable"), "{set}");
    let status = said(world.fingerpost(&["status"]).output().unwrap());
    assert!(status.contains("SNMP at 127.0.0.1:1161"), "{status}");
    daemon.end();
}

/// Walked by steps and in bulk, by either version: the same.
fn walked_alike(world: &World) {
    let walk = |tool: &str, version: &str| -> Walked {
        let words = format!("{version} -c public -t 5 -r 2 127.0.0.1:1161 .1.3.6.1.2.1");
        let mut rows = world.walk(tool, &words);
        // SNMPv1 has no 64-bit counters (RFC 3584 §4.2.2.1), and all go on.
        rows.retain(|(_, value)| !value.starts_with("Counter64"));
        // Each question has a socket of its own.
        rows.retain(|(name, _)| !name.starts_with(".1.3.6.1.2.1.7.7."));
        rows.iter_mut().for_each(|(_, value)| value.clear());
        rows
    };
    let [bulk, steps, first] = at_rest([
        &|| walk("snmpbulkwalk", "-v2c -Cr50"),
        &|| walk("snmpwalk", "-v2c"),
        &|| walk("snmpwalk", "-v1"),
    ]);
    assert!(bulk.len() > 400, "{}", bulk.len());
    assert_eq!(bulk, steps);
    assert_eq!(bulk, first);
}

#[test]
fn in_version_3_by_every_kind_of_key_and_across_a_restart() {
    let Some(world) = world("keys") else {
        return;
    };
    let kinds = [
        ("MD5", "DES"),
        ("SHA", "AES"),
        ("SHA-224", "AES-192"),
        ("SHA-256", "AES-256"),
        ("SHA-384", "AES-192-C"),
        ("SHA-512", "AES-256-C"),
    ];
    for (at, (auth, privacy)) in kinds.iter().enumerate() {
        world.user(&format!("user{at}"), auth, privacy);
    }
    world.user("bert", "SHA-256", "none");
    let daemon = world.up(SECTION);
    let ask = |phrase: &str, user: &str, words: &[&str]| {
        let mut command = world.command("snmpget", "-v3 -t 2 -r 1");
        command
            .args(["-u", user, "-A", phrase, "-X", phrase])
            .args(words)
            .args(["127.0.0.1:1161", SYS_NAME]);
        let output = command.output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let right = |user: &str, words: &[&str]| ask("pass phrase", user, words);
    for (at, (auth, privacy)) in kinds.iter().enumerate() {
        let user = format!("user{at}");
        let got = right(&user, &["-a", auth, "-x", privacy, "-l", "authPriv"]);
        assert!(got.contains("\"r1\""), "{user}: {got}");
        let wrong = ask(
            "pass phrased",
            &user,
            &["-a", auth, "-x", privacy, "-l", "authPriv"],
        );
        assert!(wrong.contains("Authentication failure"), "{wrong}");
        // Less than all that his keys allow is not enough.
        let got = right(&user, &["-a", auth, "-l", "authNoPriv"]);
        assert!(!got.contains("\"r1\""), "{user}: {got}");
    }
    // Bert may ask without encryption, and sees routes alone.
    let got = right("bert", &["-a", "SHA-256", "-l", "authNoPriv"]);
    assert!(got.contains("No Such"), "{got}");
    let got = right("nobody", &["-a", "SHA-256", "-l", "authNoPriv"]);
    assert!(got.contains("Unknown user name"), "{got}");
    // A walk that is under way when the daemon starts again goes on: the
    // client hears of the new boots, and asks again.
    world
        .netns
        .ip_batch(
            &(0..3_000)
                .map(|n| format!("route add blackhole 10.77.{}.{}/32\n", n / 250, n % 250))
                .collect::<String>(),
        )
        .unwrap();
    let walk = std::thread::scope(|scope| {
        let walk = scope.spawn(|| {
            let mut command = world.command("snmpwalk", "-v3 -t 1 -r 30 -l authPriv");
            command
                .args(["-u", "user1", "-a", "SHA", "-A", "pass phrase"])
                .args(["-x", "AES", "-X", "pass phrase"])
                .args(["127.0.0.1:1161", crate::INET_ROUTES]);
            command.output().unwrap()
        });
        // Somewhere in the middle, most likely; it must hold anywhere.
        std::thread::sleep(Duration::from_millis(400));
        daemon.end();
        let again = world.up(SECTION);
        (walk.join().unwrap(), again)
    });
    let (output, again) = walk;
    let text = said(output);
    let routes = text.lines().filter(|l| l.contains(".24.7.1.7.")).count();
    assert!(routes >= 3_000, "{routes}");
    let boots = world.tool(
        "snmpget",
        "-v2c -c public 127.0.0.1:1161 .1.3.6.1.6.3.10.2.1.2.0",
    );
    assert!(boots.contains("INTEGER: 2"), "{boots}");
    again.end();
}

#[test]
fn a_port_that_is_taken_and_a_state_that_cannot_be_written_are_told() {
    let Some(world) = world("taken") else {
        return;
    };
    let first = world.up("[snmp]\nlisten = ['127.0.0.1:1161']\n");
    // In a namespace of the same host nothing mirrors twice; the port is
    // taken by another process instead.
    drop(first);
    let taken = world
        .netns
        .inside(|| std::net::UdpSocket::bind("127.0.0.1:1161").unwrap())
        .unwrap();
    let daemon = world.up("[snmp]\nstate_directory = '/proc/no'\n");
    daemon.logs("no SNMP at 127.0.0.1:1161");
    daemon.logs("SNMP version 3 is off");
    drop(taken);
    // It takes the port when the configuration is read again.
    daemon.process.signal(rustix::process::Signal::HUP).unwrap();
    wait_until(PATIENCE, "an answer", || {
        let words = format!("-v2c -c public -t 1 -r 0 127.0.0.1:1161 {SYS_NAME}");
        world
            .tool("snmpget", &words)
            .contains("STRING")
            .then_some(())
    })
    .unwrap();
    let status = said(world.fingerpost(&["status"]).output().unwrap());
    assert!(
        status.contains("WARNING: SNMP version 3 is off"),
        "{status}"
    );
    daemon.end();
}

/// FINGERPOST-MIB: `fpObjects`.
const OWN: &str = ".1.3.6.1.4.1.8072.9999.9999.26224.1.1";

#[test]
fn what_the_tables_miss_and_when_they_were_compared_is_told() {
    let Some(world) = world("fares") else {
        return;
    };
    let section = format!("{SECTION}\n[limits]\nroutes = 5\n");
    let daemon = world.up(&section);
    let get = |name: &str| {
        let words = format!("-v2c -c public -t 10 -Oqv 127.0.0.1:1161 {OWN}.{name}");
        // Behind it the tool may say which directories it made.
        let told = world.tool("snmpget", &words);
        told.lines().next().unwrap_or_default().to_owned()
    };
    // degraded(4), false(2): of the routes, and of no other table.
    let told = ["1.1.0", "1.2.0", "1.3.0"].map(get);
    let why = "\"degraded: routes miss rows\"";
    assert_eq!(told, ["4", "2", why]);
    let tables = (1..=7).map(|table| get(&format!("2.1.4.{table}")));
    let routes = (1..=7).find(|table| get(&format!("2.1.2.{table}")) == "\"routes\"");
    let routes = routes.unwrap();
    for (table, complete) in (1..).zip(tables) {
        let expected = if table == routes { "2" } else { "1" };
        assert_eq!(complete, expected, "{table}");
    }
    assert_eq!(get(&format!("2.1.3.{routes}")), "5");
    assert_ne!(get(&format!("2.1.5.{routes}")), "0");
    wait_until(PATIENCE, "a scan", || (get("1.8.0") != "0").then_some(())).unwrap();
    assert_eq!(get("1.11.0"), "0", "what has no place is no drift");
    let age: u32 = get("1.10.0").parse().unwrap();
    assert!(age < 60, "{age}");
    daemon.end();
}
