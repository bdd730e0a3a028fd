//! TUN and TAP devices. Who owns one is told by number: names of users are
//! no part of tables.

use table::row::link::tun::Tun;

use super::put::Put;
use crate::fields::{Value, Visit};

pub(super) fn show<V: Visit>(tun: &Tun, put: &mut Put<'_, '_, V>) {
    match tun.kind {
        Some(1) => put.value("type", "type", Value::Text("tun")),
        Some(2) => put.value("type", "type", Value::Text("tap")),
        Some(other) => {
            let text = format!("UNKNOWN:{other}");
            put.value("type", "type", Value::Text(&text));
        }
        None => {}
    }
    put.on_off("pi", tun.pi);
    put.on_off("vnet_hdr", tun.vnet_hdr);
    let several = tun.multi_queue.unwrap_or(0);
    put.either("multi_queue", ("multi_queue", ""), Some(several));
    if several != 0 {
        put.number("numqueues", "numqueues", tun.num_queues);
        put.number("numdisabled", "numdisabled", tun.num_disabled_queues);
    }
    put.on_off("persist", tun.persist);
    put.number("user", "user", tun.owner);
    put.number("group", "group", tun.group);
}
