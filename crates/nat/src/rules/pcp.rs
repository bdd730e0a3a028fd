//! The line about who may ask for ports by PCP and NAT-PMP. Called by the
//! reader of the text.

use std::net::Ipv4Addr;

use super::text::{Statement, TextErrorKind, Words, wrong};
use crate::PcpConfig;

const ADDRESS: &str = "an inside address of the translator's own";
const WORD: &str = "an inside address of the translator's own, ports, leases, shortest or longest";
/// Longest lifetime: a week.
const MOST_SECS: u32 = 604_800;
/// Most leases.
const MOST_LEASES: u32 = 1 << 20;

/// `ADDRESS … [ports N] [leases N] [shortest S] [longest S]`.
pub fn server(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    let mut said = PcpConfig::default();
    let first = words.wanted(ADDRESS)?;
    said.addresses.push(address(first, ADDRESS)?);
    while let Some(word) = words.next() {
        match word {
            "ports" => {
                said.most_ports = number(words, 65_535, "ports of one host, from 1 to 65535")?;
            }
            "leases" => {
                let most = number(words, MOST_LEASES, "leases of all, from 1 to 1048576")?;
                said.most_leases = most as usize;
            }
            "shortest" => said.least_secs = number(words, MOST_SECS, SECONDS)?,
            "longest" => said.most_secs = number(words, MOST_SECS, SECONDS)?,
            word if said.addresses.len() == PcpConfig::MOST_ADDRESSES => {
                return Err(wrong(word, "one of 16 addresses at most"));
            }
            word => {
                let address = address(word, WORD)?;
                if said.addresses.contains(&address) {
                    return Err(wrong(word, "another address than before"));
                }
                said.addresses.push(address);
            }
        }
    }
    if said.least_secs > said.most_secs {
        return Err(TextErrorKind::Lifetimes(said.least_secs, said.most_secs));
    }
    Ok(Statement::Pcp(said))
}

const SECONDS: &str = "seconds, from 1 to 604800";

fn number(words: &mut Words<'_>, most: u32, wanted: &'static str) -> Result<u32, TextErrorKind> {
    let word = words.wanted(wanted)?;
    let number = word.parse().ok();
    let number = number.filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| wrong(word, wanted))
}

fn address(word: &str, wanted: &'static str) -> Result<Ipv4Addr, TextErrorKind> {
    let address: Option<Ipv4Addr> = word.parse().ok();
    let address = address.filter(|address| {
        let nobodys = address.is_unspecified() || address.is_broadcast();
        !nobodys && !address.is_multicast() && !address.is_loopback()
    });
    address.ok_or_else(|| wrong(word, wanted))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::panic,
        reason = "a test fails by it"
    )]

    use super::super::parse;
    use super::*;

    #[test]
    fn a_line_says_where_and_how_much() {
        let line = "pcp 100.64.0.1 10.0.0.1 ports 8 leases 9 shortest 60 longest 3600";
        let script = parse(line).unwrap();
        let (_, Statement::Pcp(said)) = &script.statements[0] else {
            panic!("{script:?}");
        };
        let addresses = ["100.64.0.1", "10.0.0.1"].map(|text| text.parse().unwrap());
        let wanted = PcpConfig {
            addresses: addresses.to_vec(),
            most_ports: 8,
            most_leases: 9,
            least_secs: 60,
            most_secs: 3_600,
        };
        assert_eq!(said, &wanted);
    }

    #[test]
    fn a_wrong_word_is_named_with_its_place() {
        for (line, says) in [
            ("pcp", "1:4: the line ends where an inside address"),
            ("pcp yes", "1:5: `yes` is not an inside address"),
            ("pcp 0.0.0.0", "`0.0.0.0` is not"),
            ("pcp 127.0.0.1", "`127.0.0.1` is not"),
            ("pcp 10.0.0.1 10.0.0.1", "1:14: `10.0.0.1` is not another"),
            ("pcp 10.0.0.1 port 5", "1:14: `port` is not an inside"),
            ("pcp 10.0.0.1 ports 0", "1:20: `0` is not ports"),
            ("pcp 10.0.0.1 longest", "the line ends where seconds"),
            ("pcp 10.0.0.1 longest 60", "longest 60 s is shorter"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
        let many: String = (1..18).map(|host| format!(" 10.0.0.{host}")).collect();
        let error = parse(&format!("pcp{many}")).unwrap_err().to_string();
        assert!(error.contains("`10.0.0.17` is not one of 16"), "{error}");
    }
}
