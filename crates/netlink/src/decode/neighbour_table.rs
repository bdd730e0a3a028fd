//! `struct ndtmsg`, `NDTA_…` and `NDTPA_…` (`linux/neighbour.h`): how a
//! link resolves neighbours, and in which order the links come.

use table::NeighbourTimes;

use super::split;
use crate::kernel::ndta;
use crate::malformed::Malformed;

const MESSAGE: &str = "neighbour table";
/// One byte, and three to the next attribute.
const HEADER: usize = 4;

/// Payload of `RTM_NEWNEIGHTBL`; the link whose settings it tells; `None`:
/// those of links to come. A dump has the link first that came last into
/// the namespace (`neigh_parms_alloc`). O(bytes).
pub fn neighbour_table(payload: &[u8]) -> Result<Option<u32>, Malformed> {
    let (_, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    while let Some(attribute) = attributes.step()? {
        if attribute.kind != ndta::PARMS {
            continue;
        }
        let mut settings = attribute.nested();
        while let Some(setting) = settings.step()? {
            if setting.kind == ndta::PARMS_IFINDEX {
                return Ok(Some(setting.u32()?).filter(|link| *link != 0));
            }
        }
    }
    Ok(None)
}

/// Payload of `RTM_NEWNEIGHTBL`: the link, and after how long what happens
/// there; `None`: they are those of links to come. O(bytes).
pub fn neighbour_times(payload: &[u8]) -> Result<Option<(u32, NeighbourTimes)>, Malformed> {
    let (_, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    let (mut link, mut times) = (0, NeighbourTimes::default());
    while let Some(attribute) = attributes.step()? {
        if attribute.kind != ndta::PARMS {
            continue;
        }
        let mut settings = attribute.nested();
        while let Some(setting) = settings.step()? {
            let millis = || setting.array().map(u64::from_ne_bytes);
            match setting.kind {
                ndta::PARMS_IFINDEX => link = setting.u32()?,
                ndta::PARMS_REACHABLE_TIME => times.reachable_millis = millis()?,
                ndta::PARMS_RETRANS_TIME => times.retransmit_millis = millis()?,
                _ => {}
            }
        }
    }
    Ok((link != 0).then_some((link, times)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_a_link_name_it() {
        let name = [8, 0, 1, 0, b'a', b'r', b'p', 0];
        let head = [2, 0, 0, 0];
        let of = |parms: &[u8]| neighbour_table(&[&head, &name[..], parms].concat()).unwrap();
        let reference = [8, 0, 2, 0, 1, 0, 0, 0];
        let index = [8, 0, 1, 0, 7, 0, 0, 0];
        let nested = [&[20, 0, 6, 0], &index[..], &reference].concat();
        assert_eq!(of(&nested), Some(7));
        assert_eq!(of(&[&[12, 0, 6, 0], &reference[..]].concat()), None);
        assert_eq!(of(&[]), None);
        assert!(neighbour_table(&[2]).is_err());
        let retransmit = [12, 0, 5, 0, 0xe8, 3, 0, 0, 0, 0, 0, 0];
        let timed = [&head, &name[..], &[24, 0, 6, 0], &index, &retransmit].concat();
        let times = NeighbourTimes {
            retransmit_millis: 1_000,
            ..NeighbourTimes::default()
        };
        assert_eq!(neighbour_times(&timed), Ok(Some((7, times))));
        assert_eq!(neighbour_times(&[&head, &name[..]].concat()), Ok(None));
    }
}
