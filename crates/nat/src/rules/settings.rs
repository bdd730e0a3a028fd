//! Lines that set how the engine works: timeouts, limits, helpers. Called by
//! the reader of the text.

use super::text::{Statement, TextErrorKind, Words, is_on, wrong};
use crate::{AtCap, Limits, Pooling, State, helper};

/// Longest timeout: a year. (None keeps a flow for ever.)
const MOST_SECS: u32 = 31_536_000;

/// `STATE SECONDS`.
pub fn timeout(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    const WANTED: &str = "tcp_opening, tcp_established, tcp_half_closed, tcp_closed, tcp_reset, \
                          udp_unreplied, udp, dns, icmp, gre or other";
    const SECONDS: &str = "seconds, from 1 to 31536000";
    let word = words.wanted(WANTED)?;
    let state = match word {
        "tcp_opening" => State::TcpOpening,
        "tcp_established" => State::TcpEstablished,
        "tcp_half_closed" => State::TcpHalfClosed,
        "tcp_closed" => State::TcpClosed,
        "tcp_reset" => State::TcpReset,
        "udp_unreplied" => State::UdpUnreplied,
        "udp" => State::Udp,
        "dns" => State::Dns,
        "icmp" => State::Icmp,
        "gre" => State::Gre,
        "other" => State::Other,
        other => return Err(wrong(other, WANTED)),
    };
    let word = words.wanted(SECONDS)?;
    let secs = word.parse().ok();
    let secs = secs.filter(|secs| (1..=MOST_SECS).contains(secs));
    Ok(Statement::Timeout(
        state,
        secs.ok_or_else(|| wrong(word, SECONDS))?,
    ))
}

/// `SECONDS`, 0 as well.
pub fn hold_down(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    const WANTED: &str = "seconds, from 0 to 31536000";
    let word = words.wanted(WANTED)?;
    let secs = word.parse().ok().filter(|secs| *secs <= MOST_SECS);
    secs.map(Statement::HoldDown)
        .ok_or_else(|| wrong(word, WANTED))
}

pub fn pooling(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    const WANTED: &str = "paired or arbitrary";
    match words.wanted(WANTED)? {
        "paired" => Ok(Statement::Pooling(Pooling::Paired)),
        "arbitrary" => Ok(Statement::Pooling(Pooling::Arbitrary)),
        other => Err(wrong(other, WANTED)),
    }
}

/// `NAME [yes|no]`.
pub fn helper(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    const WANTED: &str = "a helper: ftp, pptp, irc, tftp, rtsp, nbt, sip or skinny";
    let word = words.wanted(WANTED)?;
    let entry = helper::REGISTRY.iter().find(|entry| entry.name == word);
    let name = entry.ok_or_else(|| wrong(word, WANTED))?.name;
    Ok(Statement::Helper(name, is_on(words)?))
}

/// `PORT`, 0 as well.
pub fn skinny_port(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    const WANTED: &str = "a port of call managers, or 0";
    let word = words.wanted(WANTED)?;
    let port = word.parse().ok();
    port.map(Statement::SkinnyPort)
        .ok_or_else(|| wrong(word, WANTED))
}

pub fn max_flows(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    const WANTED: &str = "a number of flows, from 1 to 16777214";
    let word = words.wanted(WANTED)?;
    let most = word.parse().ok();
    let most = most.filter(|most| (1..=Limits::MOST_FLOWS).contains(most));
    Ok(Statement::MaxFlows(
        most.ok_or_else(|| wrong(word, WANTED))?,
    ))
}

pub fn at_cap(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    const WANTED: &str = "refuse or evict";
    match words.wanted(WANTED)? {
        "refuse" => Ok(Statement::AtCap(AtCap::Refuse)),
        "evict" => Ok(Statement::AtCap(AtCap::Evict)),
        other => Err(wrong(other, WANTED)),
    }
}
