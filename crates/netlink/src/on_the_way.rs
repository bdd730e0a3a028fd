//! What the kernel does to a packet on its way beside routing it: base chains
//! of nftables, IPsec policies, queueing disciplines; and what a device can do
//! at XDP. For the `linux` crate, on sockets of `NETLINK_NETFILTER`,
//! `NETLINK_XFRM`, `NETLINK_ROUTE` and `NETLINK_GENERIC`.

use crate::attribute::{Attribute, Attributes};
use crate::build::Build;
use crate::decode::split;
use crate::malformed::Malformed;
use crate::message::flag;

/// `NFPROTO_…`: what a table is of.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod family {
    pub const INET: u8 = 1;
    pub const IPV4: u8 = 2;
    pub const NETDEV: u8 = 5;
    pub const IPV6: u8 = 10;
}

/// `NF_INET_…` and `NF_NETDEV_…`: where a base chain hooks in.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod hook {
    pub const PREROUTING: u32 = 0;
    pub const FORWARD: u32 = 2;
    pub const POSTROUTING: u32 = 4;
    pub const INGRESS: u32 = 5;
}

/// `NFT_MSG_GETCHAIN` and `NFT_MSG_NEWCHAIN` of `NFNL_SUBSYS_NFTABLES`.
const GETCHAIN: u16 = 10 << 8 | 4;
/// Bytes of `struct nfgenmsg`.
const NFGENMSG: usize = 4;
/// `NFTA_CHAIN_…` and, inside a hook, `NFTA_HOOK_…`.
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_USE: u16 = 6;
const HOOK_NUMBER: u16 = 1;
const HOOK_DEVICE: u16 = 3;
const HOOK_DEVICES: u16 = 4;
/// `NF_ACCEPT`.
const ACCEPT: u32 = 1;

/// A base chain of nftables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaseChain {
    /// [`family`] of its table.
    pub family: u8,
    /// Its table's name.
    pub table: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// [`hook`]; of a device 0 is ingress, 1 egress.
    pub hook: u32,
    /// The devices, of a chain of some.
    pub devices: Vec<Box<str>>,
    /// Whether it does something: it has rules, or does not accept what comes
    /// to its end.
    pub is_busy: bool,
}

/// Asks for all chains of nftables; each answer is read by [`base_chain`].
pub fn dump_chains(sequence: u32, out: &mut Vec<u8>) {
    let flags = flag::REQUEST | flag::DUMP;
    Build::start(out, GETCHAIN, flags, sequence, &[0; NFGENMSG]).end_small();
}

/// The chain of a payload, if it is a base chain. O(attributes).
pub fn base_chain(payload: &[u8]) -> Result<Option<BaseChain>, Malformed> {
    let (&[family, ..], mut attributes) = split::<NFGENMSG>(payload, "NFT_MSG_NEWCHAIN")?;
    let mut chain = BaseChain {
        family,
        ..BaseChain::default()
    };
    let (mut is_base, mut policy, mut used) = (false, ACCEPT, 0);
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            CHAIN_TABLE => chain.table = attribute.text(),
            CHAIN_NAME => chain.name = attribute.text(),
            CHAIN_HOOK => {
                is_base = true;
                read_hook(&mut chain, attribute.nested())?;
            }
            CHAIN_POLICY => policy = big_endian(&attribute)?,
            CHAIN_USE => used = big_endian(&attribute)?,
            _ => {}
        }
    }
    chain.is_busy = used > 0 || policy != ACCEPT;
    Ok(is_base.then_some(chain))
}

fn read_hook(chain: &mut BaseChain, mut hook: Attributes<'_>) -> Result<(), Malformed> {
    while let Some(attribute) = hook.step()? {
        match attribute.kind {
            HOOK_NUMBER => chain.hook = big_endian(&attribute)?,
            HOOK_DEVICE => chain.devices.push(attribute.text()),
            HOOK_DEVICES => {
                let mut devices = attribute.nested();
                while let Some(device) = devices.step()? {
                    chain.devices.push(device.text());
                }
            }
            _ => {}
        }
    }
    // The only device of a chain stands in both.
    chain.devices.sort_unstable();
    chain.devices.dedup();
    Ok(())
}

fn big_endian(attribute: &Attribute<'_>) -> Result<u32, Malformed> {
    Ok(u32::from_be_bytes(attribute.array()?))
}

/// `XFRM_MSG_GETPOLICY`; bytes of what follows it, and of what its answer
/// begins with (`struct xfrm_userpolicy_id`, `struct xfrm_userpolicy_info`).
const GETPOLICY: u16 = 0x15;
const POLICY_ID: usize = 64;
const POLICY_INFO: usize = 168;
/// Where the family stands in it, and the direction.
const POLICY_FAMILY: usize = 40;
const POLICY_DIRECTION: usize = 160;
/// `XFRM_POLICY_OUT`, `XFRM_POLICY_FWD`.
const ON_THE_WAY: [u8; 2] = [1, 2];

/// Asks for all IPsec policies; each answer is read by [`policy`].
pub fn dump_policies(sequence: u32, out: &mut Vec<u8>) {
    let flags = flag::REQUEST | flag::DUMP;
    Build::start(out, GETPOLICY, flags, sequence, &[0; POLICY_ID]).end_small();
}

/// The address family (`AF_…`) of a policy that packets meet that are
/// forwarded; `None` of one that they do not. O(1).
pub fn policy(payload: &[u8]) -> Result<Option<u16>, Malformed> {
    let (info, _) = split::<POLICY_INFO>(payload, "XFRM_MSG_NEWPOLICY")?;
    let is_met = ON_THE_WAY.contains(&info[POLICY_DIRECTION]);
    let family = u16::from_ne_bytes([info[POLICY_FAMILY], info[POLICY_FAMILY + 1]]);
    Ok(is_met.then_some(family))
}

/// `RTM_GETQDISC`; bytes of `struct tcmsg`; `TCA_KIND`; `TC_H_ROOT` and
/// `TC_H_CLSACT` as parents.
const GETQDISC: u16 = 38;
const TCMSG: usize = 20;
const TCA_KIND: u16 = 1;
const ROOT: u32 = 0xffff_ffff;
const CLASSIFYING: u32 = 0xffff_fff1;

/// A queueing discipline at a link's root, or where filters are
/// (`clsact`, `ingress`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qdisc {
    /// Index of its link.
    pub link: u32,
    /// `fq_codel`, `htb`, `clsact`, ...
    pub kind: Box<str>,
}

/// Asks for all queueing disciplines; each answer is read by [`qdisc`].
pub fn dump_qdiscs(sequence: u32, out: &mut Vec<u8>) {
    let flags = flag::REQUEST | flag::DUMP;
    Build::start(out, GETQDISC, flags, sequence, &[0; TCMSG]).end_small();
}

/// The queueing discipline of a payload; `None` of one below another.
/// O(attributes).
pub fn qdisc(payload: &[u8]) -> Result<Option<Qdisc>, Malformed> {
    let (header, mut attributes) = split::<TCMSG>(payload, "RTM_NEWQDISC")?;
    let [_, _, _, _, i0, i1, i2, i3, _, _, _, _, p0, p1, p2, p3, ..] = *header;
    let parent = u32::from_ne_bytes([p0, p1, p2, p3]);
    let link = u32::from_ne_bytes([i0, i1, i2, i3]);
    while let Some(attribute) = attributes.step()? {
        if attribute.kind == TCA_KIND {
            let kind = attribute.text();
            return Ok([ROOT, CLASSIFYING]
                .contains(&parent)
                .then_some(Qdisc { link, kind }));
        }
    }
    Ok(None)
}

/// Name of the family of [`get_device`] (`linux/netdev.h`, Linux 6.3), and of
/// the group that announces changes.
pub const NETDEV: &str = "netdev";
/// See above.
pub const NETDEV_GROUP: &str = "mgmt";

const NETDEV_DEV_GET: u8 = 1;
const NETDEV_VERSION: u8 = 1;
const GENL_HEADER: usize = 4;
const DEV_IFINDEX: u16 = 1;
const DEV_XDP_FEATURES: u16 = 3;
const DEV_HINTS: u16 = 5;
/// `NETDEV_XDP_ACT_NDO_XMIT`, `…_NDO_XMIT_SG`; `NETDEV_XDP_RX_METADATA_VLAN_TAG`.
const SENDS: u64 = 4;
const SENDS_LONG: u64 = 64;
const TELLS_TAG: u64 = 4;

/// What a device can do at XDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct XdpFeatures {
    /// It sends frames that are redirected to it.
    pub sends: bool,
    /// Those in several buffers, too.
    pub sends_long: bool,
    /// It tells a program the VLAN tag that it took off a frame.
    pub tells_tags: bool,
}

/// Asks what a device can do; `family` is the number of [`NETDEV`]. The answer
/// is read by [`xdp_features`].
pub fn get_device(family: u16, link: u32, sequence: u32, out: &mut Vec<u8>) {
    let header = [NETDEV_DEV_GET, NETDEV_VERSION, 0, 0];
    let mut build = Build::start(out, family, flag::REQUEST, sequence, &header);
    build.put_u32(DEV_IFINDEX, link);
    build.end_small();
}

/// What the answer to [`get_device`] says. O(attributes).
pub fn xdp_features(payload: &[u8]) -> Result<XdpFeatures, Malformed> {
    let (_, mut attributes) = split::<GENL_HEADER>(payload, "NETDEV_CMD_DEV_GET")?;
    let (mut features, mut hints) = (0, 0);
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            DEV_XDP_FEATURES => features = u64::from_ne_bytes(attribute.array()?),
            DEV_HINTS => hints = u64::from_ne_bytes(attribute.array()?),
            _ => {}
        }
    }
    Ok(XdpFeatures {
        sends: features & SENDS != 0,
        sends_long: features & SENDS_LONG != 0,
        tells_tags: hints & TELLS_TAG != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::NESTED;

    /// What is behind a message's header.
    fn payload(header: &[u8], fill: impl FnOnce(&mut Build<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        let mut build = Build::start(&mut out, 0, 0, 0, header);
        fill(&mut build);
        build.end_small();
        out.split_off(16)
    }

    #[test]
    fn a_base_chain_is_told_from_others_and_an_empty_one_from_a_busy_one() {
        let chain = |policy: u32, used: u32| {
            payload(&[family::INET, 0, 0, 0], |build| {
                build.put_text(CHAIN_TABLE, "filter");
                build.put_text(CHAIN_NAME, "forward");
                let hook = build.open(CHAIN_HOOK | NESTED);
                build.put(HOOK_NUMBER, &hook::FORWARD.to_be_bytes());
                build.put_text(HOOK_DEVICE, "eth1");
                let devices = build.open(HOOK_DEVICES | NESTED);
                build.put_text(1, "eth1");
                build.close(&devices);
                build.close(&hook);
                build.put(CHAIN_POLICY, &policy.to_be_bytes());
                build.put(CHAIN_USE, &used.to_be_bytes());
            })
        };
        let read = base_chain(&chain(ACCEPT, 0)).unwrap().unwrap();
        assert_eq!(
            (&*read.table, &*read.name, read.hook),
            ("filter", "forward", 2)
        );
        assert_eq!(read.devices, ["eth1".into()]);
        assert!(!read.is_busy);
        assert!(base_chain(&chain(0, 0)).unwrap().unwrap().is_busy);
        assert!(base_chain(&chain(ACCEPT, 3)).unwrap().unwrap().is_busy);
        let plain = payload(&[family::IPV4, 0, 0, 0], |build| {
            build.put_text(CHAIN_NAME, "x")
        });
        assert_eq!(base_chain(&plain).unwrap(), None);
        assert!(base_chain(&[0; 3]).is_err());
    }

    #[test]
    fn of_policies_those_on_the_way_count() {
        let mut info = [0; POLICY_INFO];
        info[POLICY_FAMILY..POLICY_FAMILY + 2].copy_from_slice(&10_u16.to_ne_bytes());
        assert_eq!(policy(&info).unwrap(), None);
        info[POLICY_DIRECTION] = 2;
        assert_eq!(policy(&info).unwrap(), Some(10));
        assert!(policy(&info[1..]).is_err());
    }

    #[test]
    fn of_queueing_disciplines_the_outermost_count() {
        let qdisc_of = |parent: u32| {
            let mut header = [0; TCMSG];
            header[4..8].copy_from_slice(&7_u32.to_ne_bytes());
            header[12..16].copy_from_slice(&parent.to_ne_bytes());
            qdisc(&payload(&header, |build| build.put_text(TCA_KIND, "htb"))).unwrap()
        };
        let root = qdisc_of(ROOT).unwrap();
        assert_eq!((root.link, &*root.kind), (7, "htb"));
        assert!(qdisc_of(CLASSIFYING).is_some());
        assert_eq!(qdisc_of(0x1_0001), None);
    }

    #[test]
    fn a_device_s_features_are_read() {
        let answer = payload(&[1, 1, 0, 0], |build| {
            build.put_u32(DEV_IFINDEX, 3);
            build.put(DEV_XDP_FEATURES, &0x67_u64.to_ne_bytes());
            build.put(DEV_HINTS, &4_u64.to_ne_bytes());
        });
        let read = xdp_features(&answer).unwrap();
        assert!(read.sends && read.sends_long && read.tells_tags);
        let answer = payload(&[1, 1, 0, 0], |build| build.put_u32(DEV_IFINDEX, 3));
        assert_eq!(xdp_features(&answer).unwrap(), XdpFeatures::default());
    }
}
