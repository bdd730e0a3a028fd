use super::*;

fn one(text: &str) -> Statement {
    let mut script = parse(text).unwrap_or_else(|error| unreachable!("{text}: {error}"));
    assert_eq!(script.statements.len(), 1, "{text}");
    script.statements.remove(0).1
}

fn redirects(text: &str) -> (Vec<Redirect>, Vec<Server>) {
    match one(text) {
        Statement::Redirect {
            redirects, servers, ..
        } => (redirects, servers),
        other => unreachable!("{other:?}"),
    }
}

fn at(text: &str) -> (usize, usize) {
    match parse(text) {
        Err(error) => (error.line, error.column),
        Ok(script) => unreachable!("{text}: {script:?}"),
    }
}

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);

#[test]
fn ports_as_natd_says_them() {
    let plain = Redirect::port(6, HOST, 80, 8_080);
    assert_eq!(redirects("redirect_port tcp 10.0.0.5:80 8080").0, [plain]);
    let (range, _) = redirects("redirect_port tcp 10.0.0.5:80-89 1.2.3.4:8080-8089 18.0.0.1 # ten");
    let expected = plain.ports(10).at(Ipv4Addr::new(1, 2, 3, 4));
    assert_eq!(
        range,
        [expected.from(Some(Ipv4Addr::new(18, 0, 0, 1)), None)]
    );
    let (paired, _) = redirects("redirect_port udp 10.0.0.5:1-3 11-13 0.0.0.0:21-23");
    assert_eq!(paired.len(), 3);
    let third = Redirect::port(17, HOST, 3, 13).from(None, Some(23));
    assert_eq!(paired.last(), Some(&third));
    let (pool, servers) = redirects("redirect_port tcp 10.0.0.5:80,10.0.0.6:81 8080");
    assert_eq!(pool.first().and_then(|rule| rule.inside), None);
    assert_eq!(
        servers.iter().map(|server| server.port).collect::<Vec<_>>(),
        [80, 81]
    );
}

#[test]
fn addresses_protocols_and_switches() {
    let alias = Ipv4Addr::new(1, 2, 3, 9);
    let (address, none) = redirects("redirect_addr 10.0.0.5 1.2.3.9");
    assert_eq!(
        (address, none),
        (vec![Redirect::address(HOST, alias)], vec![])
    );
    assert_eq!(
        redirects("redirect_address 10.0.0.5,10.0.0.6 0.0.0.0")
            .1
            .len(),
        2
    );
    let (gre, _) = redirects("redirect_proto gre 10.0.0.5 1.2.3.9");
    assert_eq!(gre, [Redirect::protocol(47, HOST).at(alias)]);
    assert_eq!(
        one("deny_in"),
        Statement::Switch(Switch::DenyIncoming, true)
    );
    assert_eq!(
        one("same_ports no"),
        Statement::Switch(Switch::SamePorts, false)
    );
    assert_eq!(
        one("port_range 2000-3000"),
        Statement::PortRange(2_000, 3_000)
    );
    assert_eq!(one("target_address 10.0.0.5"), Statement::Target(HOST));
    assert_eq!(
        one("ip 10.0.0.5 1.2.3.9"),
        Statement::AliasAddresses(vec![HOST, alias])
    );
    let mapping = Statement::Mapping(Dependence::Address);
    assert_eq!(one("mapping address-dependent"), mapping);
    assert!(matches!(
        one("proxy_rule port 80 server 10.0.0.5:3128"),
        Statement::Proxy(_)
    ));
    assert_eq!(parse("\n  # nothing\n\n"), Ok(Script::default()));
}

#[test]
fn errors_say_where() {
    assert_eq!(at("\nredirect_port tcp 10.0.0.5 8080"), (2, 19));
    assert_eq!(at("redirect_port sctp 10.0.0.5:80 8080"), (1, 15));
    for name in ["sctp", "esp"] {
        let line = format!("redirect_port {name} 10.0.0.5:80 8080");
        let said = parse(&line).unwrap_err().to_string();
        assert!(
            said.contains(&format!("redirect_proto {name} takes")),
            "{said}"
        );
        parse(&format!("redirect_proto {name} 10.0.0.5")).unwrap();
    }
    assert_eq!(
        at("redirect_port tcp 10.0.0.5:80 8080 1.2.3.4 more"),
        (1, 44)
    );
    assert_eq!(at("redirect_port tcp 10.0.0.5:80"), (1, 30));
    assert_eq!(at("redirect_port tcp 10.0.0.5:80-90 8080"), (1, 34));
    assert_eq!(at("redirect_dynamic tcp 10.0.0.5:80 8080"), (1, 38));
    assert_eq!(at("redirect_proto tcp 10.0.0.5"), (1, 16));
    assert_eq!(at("  shout loud"), (1, 3));
    assert_eq!(at("same_ports maybe"), (1, 12));
    assert_eq!(at("proxy_rule port 80"), (1, 12));
    assert_eq!(at("port_range 3000-2000"), (1, 12));
    let message = parse("shout").map_err(|error| error.to_string());
    assert!(message.is_err_and(|message| message.starts_with("1:1: `shout` begins no rule")));
}

#[test]
fn all_ports_but_zero_are_a_range() {
    let (all, _) = redirects("redirect_port tcp 10.0.0.5:1-65535 1-65535");
    assert_eq!(all.first().map(|rule| rule.ports), Some(u16::MAX));
}

#[test]
fn how_the_engine_works() {
    let one = |line: &str| {
        let mut script = parse(line).unwrap_or_else(|error| unreachable!("{line}: {error}"));
        script.statements.remove(0).1
    };
    let timeout = Statement::Timeout(State::TcpHalfClosed, 90);
    assert_eq!(one("timeout tcp_half_closed 90"), timeout);
    assert_eq!(
        one("pooling arbitrary"),
        Statement::Pooling(Pooling::Arbitrary)
    );
    assert_eq!(one("helper ftp no"), Statement::Helper("ftp", false));
    assert_eq!(one("helper sip"), Statement::Helper("sip", true));
    assert_eq!(one("skinny_port 2000"), Statement::SkinnyPort(2_000));
    assert_eq!(one("skinny_port 0"), Statement::SkinnyPort(0));
    assert_eq!(one("max_flows 16777214"), Statement::MaxFlows(16_777_214));
    assert_eq!(one("at_cap evict"), Statement::AtCap(AtCap::Evict));
    for (line, place) in [
        ("timeout udp", "1:12: the line ends"),
        ("timeout udp 0", "1:13: `0`"),
        ("timeout tcp 9", "1:9: `tcp`"),
        ("helper h323", "1:8: `h323`"),
        ("skinny_port", "1:12: the line ends"),
        ("skinny_port 65536", "1:13: `65536`"),
        ("max_flows 16777215", "1:11:"),
        ("at_cap grow", "1:8: `grow` is not refuse or evict"),
        ("pooling paired yes", "1:16: `yes`"),
    ] {
        let said = parse(line).unwrap_err().to_string();
        assert!(said.starts_with(place), "{line}: {said}");
    }
}
