//! [`IpTunnel`] to `LWTUNNEL_IP_…` and `LWTUNNEL_IP6_…`.

use std::net::IpAddr;

use table::row::encap::{IpTunnel, TunnelOption};

use super::{put_byte, put_number};
use crate::attribute::NESTED;
use crate::build::Build;
use crate::kernel::lwtunnel::ip;

pub(super) fn put_tunnel<A: Copy + Into<IpAddr>>(build: &mut Build<'_>, row: &IpTunnel<A>) {
    if let Some(id) = row.id {
        build.put(ip::ID, &id.to_be_bytes());
    }
    if let Some(destination) = row.destination {
        build.put_address(ip::DST, destination.into());
    }
    if let Some(source) = row.source {
        build.put_address(ip::SRC, source.into());
    }
    put_byte(build, ip::TTL, row.ttl);
    put_byte(build, ip::TOS, row.tos);
    if let Some(flags) = row.flags {
        build.put(ip::FLAGS, &flags.to_be_bytes());
    }
    if !row.options.is_empty() {
        let nest = build.open(ip::OPTS | NESTED);
        row.options.iter().for_each(|row| put_option(build, row));
        build.close(&nest);
    }
}

fn put_option(build: &mut Build<'_>, row: &TunnelOption) {
    match row {
        TunnelOption::Geneve { class, kind, data } => {
            let nest = build.open(ip::OPTS_GENEVE | NESTED);
            build.put(ip::GENEVE_CLASS, &class.to_be_bytes());
            build.put_u8(ip::GENEVE_TYPE, *kind);
            build.put(ip::GENEVE_DATA, data);
            build.close(&nest);
        }
        TunnelOption::Vxlan { group_policy } => {
            let nest = build.open(ip::OPTS_VXLAN | NESTED);
            build.put_u32(ip::VXLAN_GBP, *group_policy);
            build.close(&nest);
        }
        TunnelOption::Erspan {
            version,
            index,
            direction,
            hardware_id,
        } => {
            let nest = build.open(ip::OPTS_ERSPAN | NESTED);
            build.put_u8(ip::ERSPAN_VER, *version);
            // In network byte order.
            put_number(build, ip::ERSPAN_INDEX, index.map(u32::to_be));
            put_byte(build, ip::ERSPAN_DIR, *direction);
            put_byte(build, ip::ERSPAN_HWID, *hardware_id);
            build.close(&nest);
        }
    }
}
