//! `LWTUNNEL_IP_…` and `LWTUNNEL_IP6_…` to [`IpTunnel`].

use table::row::encap::{IpTunnel, TunnelOption};
use table::{Encap, Tunnel};

use crate::attribute::{Attribute, Attributes};
use crate::kernel::lwtunnel::ip;
use crate::malformed::Malformed;

/// A tunnel over the family whose addresses are `A`, of `N` bytes.
pub(super) fn tunnel<A: From<[u8; N]>, const N: usize>(
    attributes: Attributes<'_>,
    of: impl FnOnce(IpTunnel<A>) -> Tunnel,
) -> Result<Encap, Malformed> {
    let mut row = IpTunnel::<A>::default();
    let rest = attributes.sort(|attribute| {
        match attribute.kind {
            ip::ID => row.id = Some(u64::from_be_bytes(attribute.exact()?)),
            ip::DST => row.destination = Some(A::from(attribute.exact()?)),
            ip::SRC => row.source = Some(A::from(attribute.exact()?)),
            ip::TTL => row.ttl = Some(u8::from_ne_bytes(attribute.exact()?)),
            ip::TOS => row.tos = Some(u8::from_ne_bytes(attribute.exact()?)),
            ip::FLAGS => row.flags = Some(u16::from_be_bytes(attribute.exact()?)),
            ip::OPTS => row.options = options(attribute)?,
            ip::PAD => {}
            _ => return None,
        }
        Some(())
    })?;
    let tunnel = of(row);
    Ok(Encap { tunnel, rest })
}

fn options(attribute: &Attribute<'_>) -> Option<Box<[TunnelOption]>> {
    let mut options = Vec::new();
    attribute.nested().all(|attribute| {
        options.push(match attribute.kind {
            ip::OPTS_GENEVE => geneve(attribute)?,
            ip::OPTS_VXLAN => vxlan(attribute)?,
            ip::OPTS_ERSPAN => erspan(attribute)?,
            _ => return None,
        });
        Some(())
    })?;
    Some(options.into())
}

fn geneve(attribute: &Attribute<'_>) -> Option<TunnelOption> {
    let (mut class, mut kind, mut data) = (None, None, None);
    attribute.nested().all(|attribute| {
        match attribute.kind {
            ip::GENEVE_CLASS => class = Some(u16::from_be_bytes(attribute.exact()?)),
            ip::GENEVE_TYPE => kind = Some(u8::from_ne_bytes(attribute.exact()?)),
            ip::GENEVE_DATA => data = Some(attribute.value.into()),
            _ => return None,
        }
        Some(())
    })?;
    Some(TunnelOption::Geneve {
        class: class?,
        kind: kind?,
        data: data?,
    })
}

fn vxlan(attribute: &Attribute<'_>) -> Option<TunnelOption> {
    let mut policy = None;
    attribute.nested().all(|attribute| {
        match attribute.kind {
            ip::VXLAN_GBP => policy = Some(u32::from_ne_bytes(attribute.exact()?)),
            _ => return None,
        }
        Some(())
    })?;
    policy.map(|group_policy| TunnelOption::Vxlan { group_policy })
}

fn erspan(attribute: &Attribute<'_>) -> Option<TunnelOption> {
    let (mut version, mut index, mut direction, mut hardware_id) = (None, None, None, None);
    attribute.nested().all(|attribute| {
        match attribute.kind {
            ip::ERSPAN_VER => version = Some(u8::from_ne_bytes(attribute.exact()?)),
            ip::ERSPAN_INDEX => index = Some(u32::from_be_bytes(attribute.exact()?)),
            ip::ERSPAN_DIR => direction = Some(u8::from_ne_bytes(attribute.exact()?)),
            ip::ERSPAN_HWID => hardware_id = Some(u8::from_ne_bytes(attribute.exact()?)),
            _ => return None,
        }
        Some(())
    })?;
    version.map(|version| TunnelOption::Erspan {
        version,
        index,
        direction,
        hardware_id,
    })
}
