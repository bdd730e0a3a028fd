//! What TCP, UDP and ICMP counted, from the same files as what IP counted
//! ([`super::ip_statistics`]). Pure. Called by the mirror's machine.

use table::{IcmpCounters, IcmpType, ProtocolCounters, TcpCounters, UdpCounters};

use super::ip_statistics::{Texts, table_value, v6_value};

/// What the files say; `None` where there is none of them.
pub(super) fn understand(texts: &Texts) -> Option<ProtocolCounters> {
    let Texts([snmp, _, snmp6, ..]) = texts;
    (!snmp.is_empty()).then(|| ProtocolCounters {
        tcp: tcp(snmp),
        udp: udp(snmp, snmp6),
        icmp: icmp(snmp),
        icmp6: (!snmp6.is_empty()).then(|| icmp6(snmp6)),
    })
}

fn tcp(snmp: &str) -> TcpCounters {
    let value = |name| table_value(snmp, "Tcp", name).unwrap_or(0);
    TcpCounters {
        rto_algorithm: value("RtoAlgorithm"),
        rto_min: value("RtoMin"),
        rto_max: value("RtoMax"),
        // The one that may be negative: no limit.
        max_connections: table_value(snmp, "Tcp", "MaxConn")
            .and_then(|value: u64| value.try_into().ok())
            .unwrap_or(-1),
        active_opens: value("ActiveOpens"),
        passive_opens: value("PassiveOpens"),
        attempt_fails: value("AttemptFails"),
        established_resets: value("EstabResets"),
        established: value("CurrEstab"),
        in_segments: value("InSegs"),
        out_segments: value("OutSegs"),
        retransmitted_segments: value("RetransSegs"),
        in_errors: value("InErrs"),
        out_resets: value("OutRsts"),
    }
}

fn udp(snmp: &str, snmp6: &str) -> UdpCounters {
    let both = |name: &str| {
        let v4 = table_value(snmp, "Udp", name).unwrap_or(0);
        v4.saturating_add(v6_value(snmp6, "Udp6", name).unwrap_or(0))
    };
    UdpCounters {
        in_datagrams: both("InDatagrams"),
        no_ports: both("NoPorts"),
        in_errors: both("InErrors"),
        out_datagrams: both("OutDatagrams"),
    }
}

fn icmp(snmp: &str) -> IcmpCounters {
    let value = |name| table_value(snmp, "Icmp", name).unwrap_or(0);
    let mut lines = snmp
        .lines()
        .filter_map(|line| line.strip_prefix("IcmpMsg: "));
    let names = lines.next().unwrap_or_default().split_ascii_whitespace();
    let values = lines.next().unwrap_or_default().split_ascii_whitespace();
    IcmpCounters {
        in_messages: value("InMsgs"),
        in_errors: value("InErrors"),
        out_messages: value("OutMsgs"),
        out_errors: value("OutErrors"),
        by_type: by_type(names.zip(values)),
    }
}

fn icmp6(snmp6: &str) -> IcmpCounters {
    let value = |name| v6_value(snmp6, "Icmp6", name).unwrap_or(0);
    let lines = snmp6.lines().filter_map(|line| line.strip_prefix("Icmp6"));
    IcmpCounters {
        in_messages: value("InMsgs"),
        in_errors: value("InErrors"),
        out_messages: value("OutMsgs"),
        out_errors: value("OutErrors"),
        by_type: by_type(lines.filter_map(|line| line.split_once(char::is_whitespace))),
    }
}

/// From `InType8`, `OutType0` and their like; other names are passed over.
fn by_type<'a>(told: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<IcmpType> {
    let mut all: Vec<IcmpType> = Vec::new();
    for (name, value) in told {
        let received = name.strip_prefix("InType");
        let sent = name.strip_prefix("OutType");
        let number = received.or(sent).and_then(|number| number.parse().ok());
        let (Some(number), Ok(value)) = (number, value.trim().parse::<u64>()) else {
            continue;
        };
        let at = all.partition_point(|one| one.number < number);
        if all.get(at).is_none_or(|one| one.number != number) {
            let none = IcmpType {
                number,
                ..IcmpType::default()
            };
            all.insert(at, none);
        }
        match received {
            Some(_) => all[at].received = value,
            None => all[at].sent = value,
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let mut texts = Texts::default();
        texts.0[0] = "Icmp: InMsgs InErrors OutMsgs OutErrors\nIcmp: 5 1 7 2\n\
            IcmpMsg: InType3 InType8 OutType0 OutType8\nIcmpMsg: 1 4 4 3\n\
            Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens CurrEstab\n\
            Tcp: 1 200 120000 -1 9 3\n\
            Udp: InDatagrams NoPorts\nUdp: 10 2\n"
            .to_owned();
        texts.0[2] = "Udp6InDatagrams \t7\nIcmp6InMsgs  4\nIcmp6InType135\t3\n\
            Icmp6OutType135\t2\nIcmp6InType300 1\n"
            .to_owned();
        let all = understand(&texts).unwrap();
        assert_eq!((all.tcp.max_connections, all.tcp.established), (-1, 3));
        assert_eq!((all.udp.in_datagrams, all.udp.no_ports), (17, 2));
        let told = |one: &IcmpType| (one.number, one.received, one.sent);
        let v4: Vec<_> = all.icmp.by_type.iter().map(told).collect();
        assert_eq!(v4, [(0, 0, 4), (3, 1, 0), (8, 4, 3)]);
        let v6 = all.icmp6.unwrap();
        assert_eq!((v6.in_messages, v6.by_type.len()), (4, 1));
        assert_eq!(told(&v6.by_type[0]), (135, 3, 2));
        assert_eq!(understand(&Texts::default()), None);
    }
}
