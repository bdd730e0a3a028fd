//! What the commands of `bridge` share that change something: called by the
//! files of its objects beside this one (`bridge_…`).

use netlink::decode::Operation;
use netlink::encode::Request;

use super::session::Session;
use super::stop::Stop;

/// A change without flags.
pub fn request(operation: Operation, sequence: u32) -> Request {
    Request::plain(operation, sequence)
}

/// The index of a link that is changed.
pub fn changed(session: &mut Session, name: &str) -> Result<u32, Stop> {
    session.index(name).map_err(|stop| match stop {
        Stop::Said { .. } => Stop::failed(format!("Cannot find bridge device \"{name}\"")),
        stop => stop,
    })
}

/// A number in decimal digits. Of others `bridge` takes what it can read, or
/// 0: they are refused.
pub fn number<T: std::str::FromStr>(word: &str, value: &str) -> Result<T, Stop> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
    let read = value.parse().ok().filter(|_| is_plain);
    read.ok_or_else(|| Stop::NotBuilt(format!("{word} {value}")))
}

/// A word that is not one of a listing's. `bridge` passes over it, which
/// shows more than was asked for.
pub fn unknown(word: &str) -> Stop {
    Stop::NotBuilt(word.to_owned())
}
