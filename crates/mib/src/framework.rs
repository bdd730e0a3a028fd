//! The agent's own: the snmp group (RFC 3418), SNMP-FRAMEWORK-MIB
//! (RFC 3411), SNMP-MPD-MIB (RFC 3412), the contexts' counters (RFC 3413)
//! and those of SNMP-USER-BASED-SM-MIB (RFC 3414).

use snmp::Value;
use snmp::counters::Counters;

use crate::objects::Objects;

/// The agent as an SNMP engine (RFC 3411 §3.1.1).
#[derive(Debug, Clone, Copy)]
pub struct Engine<'a> {
    /// `snmpEngineID`.
    pub id: &'a [u8],
    /// `snmpEngineBoots`.
    pub boots: u32,
    /// `snmpEngineMaxMessageSize`, bytes.
    pub max_message_bytes: u32,
    /// `snmpEnableAuthenTraps`.
    pub sends_authentication_failures: bool,
    /// What it has counted.
    pub counters: &'a Counters,
}

fn counter(counted: u32) -> Option<Value<'static>> {
    Some(Value::Counter32(counted))
}

/// The snmp group; its obsolete counters of what only a manager receives,
/// or of errors that this agent never makes, are 0.
pub(crate) fn snmp_group<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let engine = &objects.moment.engine;
    let all = &engine.counters.snmp;
    counter(match sub {
        1 => all.in_pkts,
        2 => all.out_pkts,
        3 => all.in_bad_versions,
        4 => all.in_bad_community_names,
        5 => all.in_bad_community_uses,
        6 => all.in_asn_parse_errs,
        13 => all.in_total_req_vars,
        15 => all.in_get_requests,
        16 => all.in_get_nexts,
        17 => all.in_set_requests,
        20 => all.out_too_bigs,
        21 => all.out_no_such_names,
        24 => all.out_gen_errs,
        28 => all.out_get_responses,
        29 => all.out_traps,
        // enabled(1), disabled(2)
        30 if engine.sends_authentication_failures => return Some(Value::Integer(1)),
        30 => return Some(Value::Integer(2)),
        31 => all.silent_drops,
        32 => all.proxy_drops,
        _ => 0,
    })
}

/// `snmpSetSerialNo`: nothing is ever set.
pub(crate) fn set_serial<'a>(_: &Objects<'a>, _: u32) -> Option<Value<'a>> {
    Some(Value::Integer(0))
}

/// snmpEngineID (1), snmpEngineBoots (2), snmpEngineTime (3),
/// snmpEngineMaxMessageSize (4).
pub(crate) fn engine_group<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let moment = &objects.moment;
    let number = |number: u64| Value::Integer(number.try_into().unwrap_or(i32::MAX));
    Some(match sub {
        1 => Value::OctetString(moment.engine.id),
        2 => number(moment.engine.boots.into()),
        3 => number(moment.up_millis / 1_000),
        _ => number(moment.engine.max_message_bytes.into()),
    })
}

/// snmpUnknownSecurityModels (1), snmpInvalidMsgs (2),
/// snmpUnknownPDUHandlers (3).
pub(crate) fn mpd_group<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let all = &objects.moment.engine.counters.mpd;
    counter(match sub {
        1 => all.unknown_security_models,
        2 => all.invalid_msgs,
        _ => all.unknown_pdu_handlers,
    })
}

/// snmpUnavailableContexts (4), snmpUnknownContexts (5).
pub(crate) fn contexts_group<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let all = objects.moment.engine.counters;
    counter(match sub {
        4 => all.unavailable_contexts,
        _ => all.unknown_contexts,
    })
}

/// usmStatsUnsupportedSecLevels (1) … usmStatsDecryptionErrors (6).
pub(crate) fn usm_group<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let all = &objects.moment.engine.counters.usm;
    counter(match sub {
        1 => all.unsupported_sec_levels,
        2 => all.not_in_time_windows,
        3 => all.unknown_user_names,
        4 => all.unknown_engine_ids,
        5 => all.wrong_digests,
        _ => all.decryption_errors,
    })
}
