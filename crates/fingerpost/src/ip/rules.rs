//! What `ip rule show` picks rules by. Called by [`super::show`].

use view::Filter;
use words::values;

use super::grammar::{self, Told};
use super::session::Session;
use super::stop::Stop;

/// Sets a condition; false: it is one that listings of all objects have.
pub fn condition(
    session: &mut Session,
    told: &Told<'_>,
    filter: &mut Filter,
) -> Result<bool, Stop> {
    let Some(key) = told.key else {
        return Ok(false);
    };
    let value = told.value;
    let wrong = |why: &str| Stop::argument(value, why);
    let number = |text: &str, why: &str| grammar::number(text).ok_or_else(|| wrong(why));
    let mut picked = filter.rule.clone().unwrap_or_default();
    match key.means {
        "not" => picked.inverted = true,
        "l3mdev" => picked.l3mdev = true,
        "from" => picked.from = Some(grammar::prefix(value, session.family())?),
        "to" => picked.to = Some(grammar::prefix(value, session.family())?),
        "iif" => picked.iif = Some(value.to_owned()),
        "oif" => picked.oif = Some(value.to_owned()),
        "tos" => {
            let tos = session.names.number(words::NameFile::DsField, value);
            picked.tos = tos.and_then(|tos| u8::try_from(tos).ok());
        }
        "fwmark" => {
            let (mark, mask) = match value.split_once('/') {
                Some((mark, mask)) => (mark, Some(mask)),
                None => (value, None),
            };
            picked.fwmark = Some(number(mark, "fwmark value is invalid\n")?);
            let masked = |mask: &str| {
                let why = || Stop::argument(mask, "fwmask value is invalid\n");
                grammar::number(mask).ok_or_else(why)
            };
            picked.fwmask = mask.map(masked).transpose()?;
            // A mask without bits asks for nothing.
            picked.fwmask = picked.fwmask.filter(|mask| *mask != 0);
        }
        "tun_id" => {
            let id = value
                .parse()
                .map_err(|_| wrong("\"tun_id\" value is invalid\n"))?;
            picked.tunnel_id = Some(id);
        }
        "uidrange" => {
            let both = value
                .split_once('-')
                .and_then(|(first, last)| Some((grammar::number(first)?, grammar::number(last)?)));
            picked.uids = Some(both.ok_or_else(|| wrong("invalid UID range\n"))?);
        }
        "ipproto" => {
            let number = values::ip_protocol(value);
            picked.ip_protocol = Some(number.map_err(|_| wrong("Invalid \"ipproto\" value\n"))?);
        }
        "sport" => picked.source_ports = Some(ports(value, "invalid port range\n")?),
        "dport" => picked.destination_ports = Some(ports(value, "invalid dport range\n")?),
        _ => return Ok(false),
    }
    filter.rule = Some(picked);
    Ok(true)
}

/// `80`, or `80-90`.
fn ports(text: &str, why: &str) -> Result<(u16, u16), Stop> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (values::port(first), values::port(last)) {
        (Ok(first), Ok(last)) => Ok((first, last)),
        _ => Err(Stop::argument(text, why)),
    }
}
