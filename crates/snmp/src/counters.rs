//! What an agent counts, named as in SNMPv2-MIB (RFC 3418; the group of
//! RFC 1213 that it made obsolete, and that many still ask for, included),
//! SNMP-MPD-MIB (RFC 3412) and SNMP-USER-BASED-SM-MIB (RFC 3414).
//!
//! Plain numbers that go round at 2^32, copied out by whoever shows them.

/// Adds one, round at 2^32 as a Counter32 does.
pub(crate) fn count(counter: &mut u32) {
    *counter = counter.wrapping_add(1);
}

/// All counters of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Group `snmp`.
    pub snmp: SnmpCounters,
    /// Group `snmpMPDStats`.
    pub mpd: MpdCounters,
    /// Group `usmStats`.
    pub usm: UsmCounters,
    /// `snmpUnavailableContexts` (RFC 3413 §4.1.2); contexts here are there
    /// or not, so it stays zero.
    pub unavailable_contexts: u32,
    /// `snmpUnknownContexts`.
    pub unknown_contexts: u32,
}

/// `snmp` (1.3.6.1.2.1.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnmpCounters {
    /// `snmpInPkts` (1): datagrams received.
    pub in_pkts: u32,
    /// `snmpOutPkts` (2): messages sent.
    pub out_pkts: u32,
    /// `snmpInBadVersions` (3).
    pub in_bad_versions: u32,
    /// `snmpInBadCommunityNames` (4): unknown, or not from this source.
    pub in_bad_community_names: u32,
    /// `snmpInBadCommunityUses` (5): a change asked for.
    pub in_bad_community_uses: u32,
    /// `snmpInASNParseErrs` (6).
    pub in_asn_parse_errs: u32,
    /// `snmpInTotalReqVars` (13): bindings answered to Get, GetNext and
    /// GetBulk.
    pub in_total_req_vars: u32,
    /// `snmpInGetRequests` (15).
    pub in_get_requests: u32,
    /// `snmpInGetNexts` (16); bulk requests, too.
    pub in_get_nexts: u32,
    /// `snmpInSetRequests` (17).
    pub in_set_requests: u32,
    /// `snmpOutTooBigs` (20).
    pub out_too_bigs: u32,
    /// `snmpOutNoSuchNames` (21).
    pub out_no_such_names: u32,
    /// `snmpOutGenErrs` (24).
    pub out_gen_errs: u32,
    /// `snmpOutGetResponses` (28).
    pub out_get_responses: u32,
    /// `snmpOutTraps` (29).
    pub out_traps: u32,
    /// `snmpSilentDrops` (31): answers that did not fit, not even as
    /// `tooBig`; those that the limit of amplification held back, too.
    pub silent_drops: u32,
    /// `snmpProxyDrops` (32): nothing is passed on, so it stays zero.
    pub proxy_drops: u32,
}

/// `snmpMPDStats` (1.3.6.1.6.3.11.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MpdCounters {
    /// `snmpUnknownSecurityModels` (1).
    pub unknown_security_models: u32,
    /// `snmpInvalidMsgs` (2): flags that contradict each other.
    pub invalid_msgs: u32,
    /// `snmpUnknownPDUHandlers` (3): a PDU that nobody here takes.
    pub unknown_pdu_handlers: u32,
}

/// `usmStats` (1.3.6.1.6.3.15.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsmCounters {
    /// `usmStatsUnsupportedSecLevels` (1).
    pub unsupported_sec_levels: u32,
    /// `usmStatsNotInTimeWindows` (2).
    pub not_in_time_windows: u32,
    /// `usmStatsUnknownUserNames` (3).
    pub unknown_user_names: u32,
    /// `usmStatsUnknownEngineIDs` (4): discoveries, too.
    pub unknown_engine_ids: u32,
    /// `usmStatsWrongDigests` (5).
    pub wrong_digests: u32,
    /// `usmStatsDecryptionErrors` (6).
    pub decryption_errors: u32,
}
