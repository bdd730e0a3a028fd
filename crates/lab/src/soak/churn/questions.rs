//! Questions about routes.

use std::fmt::Write as _;

use super::link;
use crate::Random;

/// Questions about routes, as `ip route get` has them.
pub fn questions(seed: u64, count: usize) -> Vec<String> {
    let mut random = Random::new(!seed);
    let comes_in = super::comes_in(seed);
    let all = (0..count).map(|_| question(&mut random, comes_in));
    all.collect()
}

/// One, and whether it may be about a packet that came in.
fn question(random: &mut Random, may_come_in: bool) -> String {
    let is_v4 = random.below(5) < 3;
    let mut text = destination(random, is_v4);
    let comes_in = may_come_in && random.below(8) == 0;
    if comes_in || random.below(5) == 0 {
        let (net, host) = (random.below(4), 1 + random.below(5));
        let _ = match is_v4 {
            true => write!(text, " from 10.{net}.0.{host}"),
            false => write!(text, " from 2001:db8:{net}::{host}"),
        };
    }
    if comes_in {
        let _ = write!(text, " iif {}", link(random));
    } else if random.below(6) == 0 {
        let _ = write!(text, " oif {}", link(random));
    }
    if random.below(6) == 0 {
        let _ = write!(text, " mark {}", random.below(6));
    }
    if random.below(8) == 0 {
        let _ = write!(text, " uid {}", random.below(12));
    }
    if random.below(10) == 0 {
        text += " tos 0x08";
    }
    if random.below(8) == 0 {
        let port = 100 * random.below(8) + 50;
        let _ = write!(text, " ipproto tcp sport 80 dport {}", 1 + port);
    }
    text
}

fn destination(random: &mut Random, is_v4: bool) -> String {
    let (net, host) = (random.below(4), 1 + random.below(6));
    match (is_v4, random.below(5)) {
        (true, 0 | 1) => format!("10.{}.0.{host}", 100 + random.below(26)),
        (true, 2) => format!("10.9.{net}.{host}"),
        (true, 3) => format!("10.9.9.{host}"),
        (true, _) => format!("10.{net}.0.{host}"),
        (false, 0..3) => {
            let at = 8 + random.below(2);
            format!("2001:db8:{at}{}::{host}", random.below(6))
        }
        (false, _) => format!("2001:db8:{net}::{host}"),
    }
}
