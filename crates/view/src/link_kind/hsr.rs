//! HSR and PRP.

use table::row::link::hsr::Hsr;

use super::put::Put;
use crate::fields::{Value, Visit};

pub(super) fn show<V: Visit>(hsr: &Hsr, put: &mut Put<'_, '_, V>) {
    for (key, port) in [("slave1", hsr.slave1), ("slave2", hsr.slave2)] {
        match port {
            Some(_) => put.device_or_star(key, port),
            None => {
                put.field(key, Value::Present);
                put.say(key, Value::Text("<none>"));
            }
        }
    }
    put.number("seq_nr", "sequence", hsr.seq_nr);
    put.mac("supervision_addr", "supervision", hsr.supervision_addr);
    put.number("proto", "proto", hsr.protocol);
}
