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

/// What a listing of groups or VLANs is narrowed to: a link, and a VLAN, of
/// which 0 means all.
pub fn shown(session: &mut Session, words: &[String]) -> Result<(Option<u32>, u16), Stop> {
    let (mut only, mut vlan) = (None, 0);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().ok_or_else(Stop::incomplete);
        match word.as_str() {
            "dev" => {
                let name = value()?;
                if only.is_some() {
                    return Err(Stop::duplicate(word, name));
                }
                only = Some(session.index(name)?);
            }
            "vid" => {
                let said = value()?;
                if vlan != 0 {
                    return Err(Stop::duplicate(word, said));
                }
                vlan = number(word, said)?;
            }
            word => return Err(unknown(word)),
        }
    }
    Ok((only, vlan))
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
