use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    settings: Settings,
    #[arg(long)]
    tun: bool,
}

fn engine(rules: &str, options: &[&str]) -> anyhow::Result<Nat> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), rules).unwrap();
    let path = file.path().to_str().unwrap();
    let line = [&["nat", "--rules", path], options].concat();
    Line::try_parse_from(line).unwrap().settings.engine()
}

#[test]
fn an_option_wins_over_the_file() {
    let rules = "alias_address 192.0.2.1\ndeny_incoming no\nport_range 2000-3000\nsame_ports\n";
    let nat = engine(rules, &["--ports", "4000-4001"]).unwrap();
    let config = nat.config();
    assert_eq!(config.addresses, [Ipv4Addr::new(192, 0, 2, 1)]);
    assert_eq!(config.ports, 4_000..=4_001);
    assert!(!config.mode.deny_incoming);
    assert_eq!(config.port_choice, PortChoice::Same);
    let options = [
        "--alias",
        "192.0.2.7,192.0.2.8",
        "--mode",
        "deny-incoming,endpoint-independent",
    ];
    let nat = engine(rules, &options).unwrap();
    assert_eq!(nat.config().addresses.len(), 2);
    assert!(nat.config().mode.deny_incoming);
    assert_eq!(nat.config().udp, Behaviour::FULL_CONE);
    assert_eq!(nat.config().tcp, Behaviour::FULL_CONE);
}

#[test]
fn outside_addresses_come_as_ranges_and_none_twice() {
    let addresses = |rules: &str, options: &[&str]| {
        let nat = engine(rules, options);
        nat.map(|nat| nat.config().addresses.clone())
    };
    let rules = "alias_address 192.0.2.1 192.0.2.8/30 192.0.2.20-192.0.2.21\n";
    assert_eq!(addresses(rules, &[]).unwrap().len(), 7);
    let options = ["--alias", "192.0.2.0/28,198.51.100.1"];
    assert_eq!(addresses(rules, &options).unwrap().len(), 17);
    let twice = addresses(rules, &["--alias", "192.0.2.0/28,192.0.2.3"]);
    assert!(format!("{:#}", twice.unwrap_err()).contains("192.0.2.3 is named twice"));
    for wrong in [
        "0.0.0.0",
        "127.0.0.1",
        "224.0.0.1",
        "192.0.2.1 192.0.2.0/30",
    ] {
        let complaint = addresses(&format!("alias_address {wrong}\n"), &[]);
        assert!(
            format!("{:#}", complaint.unwrap_err()).contains(":1:"),
            "{wrong}"
        );
    }
}

#[test]
fn words_of_natd_that_are_not_for_here_say_what_is() {
    for (line, says) in [
        ("interface em0", "alias_address"),
        ("dynamic yes", "alias_address"),
        ("log yes", "SIGUSR1"),
        ("punch_fw 100:10", "no firewall"),
        ("redirect_port tcp 10.0.0.5:http 80", "number"),
    ] {
        let complaint = engine(&format!("alias_address 192.0.2.1\n{line}\n"), &[]);
        let complaint = format!("{:#}", complaint.unwrap_err());
        let word = line.split(' ').next().unwrap();
        assert!(complaint.contains(":2:"), "{complaint}");
        assert!(complaint.contains(says), "{word}: {complaint}");
    }
}

#[test]
fn rules_are_laid_down_and_a_wrong_one_is_said_with_its_line() {
    let rules = "redirect_port tcp 10.0.0.5:80 8080\nredirect_address 10.0.0.8 192.0.2.3\n";
    assert_eq!(engine(rules, &[]).unwrap().rules().len(), 2);
    let complaint = engine("same_ports\n", &[]).unwrap_err();
    assert!(format!("{complaint:#}").contains("--alias"));
    let complaint = engine("# nothing\nredirect_porf tcp", &[]).unwrap_err();
    assert!(format!("{complaint:#}").contains(":2:1: `redirect_porf`"));
    let complaint = engine("\nproxy_rule delete 3\n", &[]).unwrap_err();
    assert!(format!("{complaint:#}").contains(":2: there is no proxy rule 3"));
}

#[test]
fn private_sources_are_inside_unless_said() {
    let line = Line::try_parse_from(["nat"]).unwrap();
    let inside = line.settings.inside();
    let is_inside = |a: [u8; 4]| inside.iter().any(|net| net.contains(&Ipv4Addr::from(a)));
    assert!(is_inside([10, 1, 2, 3]) && is_inside([100, 64, 0, 1]));
    assert!(!is_inside([192, 0, 2, 1]) && !line.tun);
    let line = Line::try_parse_from(["nat", "--inside", "192.0.2.0/24"]).unwrap();
    assert_eq!(line.settings.inside(), ["192.0.2.0/24".parse().unwrap()]);
}

#[test]
fn a_target_opens_the_door_unless_it_is_said_to_be_shut() {
    let alias = "alias_address 192.0.2.1\n";
    let target = format!("{alias}target_address 10.0.0.7\n");
    let denies = |rules: &str, options: &[&str]| {
        let nat = engine(rules, options).unwrap();
        nat.config().mode.deny_incoming
    };
    assert!(denies(alias, &[]));
    assert!(!denies(&target, &[]));
    assert!(!denies(alias, &["--target", "10.0.0.7"]));
    assert!(denies(&format!("{target}deny_incoming\n"), &[]));
    assert!(denies(&target, &["--mode", "deny-incoming"]));
    let shut = format!("{alias}deny_incoming no\ndeny_incoming yes\n");
    assert!(denies(&shut, &[]));
    assert!(!denies(&shut, &["--mode", "accept-incoming"]));
}

#[test]
fn how_the_engine_works_is_said_by_the_file() {
    let rules = "alias_address 192.0.2.1\ntimeout udp 60\npooling arbitrary\n\
                 helper pptp no\nmax_flows 500\nat_cap evict\n";
    let nat = engine(rules, &[]).unwrap();
    let config = nat.config();
    assert_eq!(config.timeouts.udp_secs, 60);
    assert_eq!(config.pooling, nat::Pooling::Arbitrary);
    assert!(config.helpers.has(nat::helper::Kind::Ftp));
    assert!(!config.helpers.has(nat::helper::Kind::Pptp));
    assert_eq!(config.limits.max_flows, 500);
    assert_eq!(config.limits.at_cap, nat::AtCap::Evict);
    let nat = engine(rules, &["--max-flows", "70"]).unwrap();
    assert_eq!(nat.config().limits.max_flows, 70);
}

#[test]
fn a_file_that_is_read_again_changes_rules_and_keeps_flows() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    fs::write(path, "alias_address 192.0.2.1\n").unwrap();
    let line = Line::try_parse_from(["nat", "--rules", path]).unwrap();
    let mut nat = line.settings.engine().unwrap();
    let inside = Ipv4Addr::new(10, 0, 0, 2);
    let remote = Ipv4Addr::new(198, 51, 100, 7);
    let packet = packet::build::Ip::new(inside, remote).udp(4_000, 53, b"x");
    let pass = |nat: &mut Nat| {
        let mut packet = packet.clone();
        assert!(nat.translate_out(&mut packet, 0).goes_on());
        packet
    };
    let before = pass(&mut nat);
    let redirect = "redirect_port tcp 10.0.0.5:80 8080\n";
    let more = format!("alias_address 192.0.2.1 192.0.2.2\n{redirect}deny_incoming no\n");
    fs::write(path, more).unwrap();
    line.settings.reload(&mut nat).unwrap();
    let config = nat.config();
    assert_eq!((nat.rules().len(), config.addresses.len()), (1, 2));
    assert!(!config.mode.deny_incoming);
    assert_eq!(pass(&mut nat), before);
    // A wrong line changes nothing.
    fs::write(path, "alias_address 192.0.2.9\nnonsense\n").unwrap();
    line.settings.reload(&mut nat).unwrap_err();
    assert_eq!((nat.rules().len(), nat.config().addresses.len()), (1, 2));
    // And rules that are gone are gone.
    fs::write(path, "alias_address 192.0.2.1\n").unwrap();
    line.settings.reload(&mut nat).unwrap();
    assert!(nat.rules().is_empty() && nat.config().mode.deny_incoming);
    assert_eq!(pass(&mut nat), before);
}

#[test]
fn lines_about_subscribers_are_settings_and_what_cannot_be_names_its_line() {
    let rules = "alias_address 192.0.2.0/28\nport_range 1024-65535\n\
                 subscribers 100.64.0.0/20 each /30\nport_blocks size 256 most 4\n\
                 port_blocks hold_down 300\nlimit sessions 2000\nlimit sessions udp 500\n\
                 limit new_mappings 50 burst 200\nexempt 10.0.0.0/8\nexempt 192.0.2.200\n";
    let nat = engine(rules, &[]).unwrap();
    let config = nat.config();
    let blocks = config.blocks.as_ref().unwrap();
    assert_eq!(
        (blocks.size, blocks.most, blocks.hold_down_secs),
        (256, 4, 300)
    );
    assert_eq!(config.subscribers.bits, 30);
    let quotas = config.subscribers.quotas;
    assert_eq!(quotas.sessions.all, 2_000);
    assert_eq!(quotas.sessions.of, [u32::MAX, 500, u32::MAX]);
    assert_eq!(quotas.new_mappings.of, [50, 0, 0, 0]);
    assert_eq!((quotas.new_mappings.burst, config.exempt.len()), (200, 2));
    for (line, says) in [
        (
            "deterministic ratio 5",
            ":11: 1024 subscribers, 5 of each of 16",
        ),
        (
            "subscribers 10.0.0.0/31",
            ":11: the subscribers 10.0.0.0-10.0.0.1 are no whole",
        ),
        (
            "subscribers 100.64.4.0/24",
            ":11: the subscribers 100.64.4.0-100.64.4.255 are named twice",
        ),
        (
            "port_blocks size 65000",
            ":11: blocks of 65000 ports do not go into",
        ),
    ] {
        let refused = engine(&format!("{rules}{line}\n"), &[]).unwrap_err();
        let refused = format!("{refused:#}");
        assert!(refused.contains(says), "{refused}");
    }
}

#[test]
fn limits_change_while_flows_stay() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let common = "alias_address 192.0.2.1\nport_blocks size 64 most 2\n";
    let write = |more: &str| fs::write(file.path(), format!("{common}{more}")).unwrap();
    write("limit sessions 3\n");
    let path = file.path().to_str().unwrap();
    let settings = Line::try_parse_from(["nat", "--rules", path]).unwrap();
    let settings = settings.settings;
    let mut nat = settings.engine().unwrap();
    let mut out = |nat: &mut Nat, port: u16| {
        let ip = packet::build::Ip::new([10, 0, 0, 1].into(), [198, 51, 100, 7].into());
        let mut bytes = ip.udp(port, 53, b"data");
        nat.translate_out(&mut bytes, 0)
    };
    let fits = |nat: &mut Nat, out: &mut dyn FnMut(&mut Nat, u16) -> nat::Verdict| {
        (1..=20).filter(|port| out(nat, *port).goes_on()).count()
    };
    assert_eq!(fits(&mut nat, &mut out), 3);
    write("limit sessions 5\nexempt 203.0.113.0/24\n");
    settings.reload(&mut nat).unwrap();
    assert_eq!(fits(&mut nat, &mut out), 5);
    assert_eq!(nat.config().exempt.len(), 1);
    // Fewer than there are: those stay.
    write("limit sessions 1\n");
    settings.reload(&mut nat).unwrap();
    assert_eq!(fits(&mut nat, &mut out), 5);
    // Without the very same ports there is no reload at all.
    write("port_range 1024-2047\n");
    let refused = settings.reload(&mut nat).unwrap_err();
    assert!(refused.to_string().contains("restart"), "{refused}");
    assert_eq!(fits(&mut nat, &mut out), 5);
}
