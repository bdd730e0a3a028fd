//! Numbers of lightweight tunnels (`linux/lwtunnel.h` and a header for each
//! kind).

/// `MPLS_IPTUNNEL_…`, `linux/mpls_iptunnel.h`.
pub(crate) mod mpls {
    pub(crate) const DST: u16 = 1;
    pub(crate) const TTL: u16 = 2;
}

/// `LWTUNNEL_IP_…` and `LWTUNNEL_IP6_…`, which are the same.
pub(crate) mod ip {
    pub(crate) const ID: u16 = 1;
    pub(crate) const DST: u16 = 2;
    pub(crate) const SRC: u16 = 3;
    pub(crate) const TTL: u16 = 4;
    pub(crate) const TOS: u16 = 5;
    pub(crate) const FLAGS: u16 = 6;
    pub(crate) const PAD: u16 = 7;
    pub(crate) const OPTS: u16 = 8;
    /// Inside `OPTS`.
    pub(crate) const OPTS_GENEVE: u16 = 1;
    pub(crate) const OPTS_VXLAN: u16 = 2;
    pub(crate) const OPTS_ERSPAN: u16 = 3;
    pub(crate) const GENEVE_CLASS: u16 = 1;
    pub(crate) const GENEVE_TYPE: u16 = 2;
    pub(crate) const GENEVE_DATA: u16 = 3;
    pub(crate) const VXLAN_GBP: u16 = 1;
    pub(crate) const ERSPAN_VER: u16 = 1;
    pub(crate) const ERSPAN_INDEX: u16 = 2;
    pub(crate) const ERSPAN_DIR: u16 = 3;
    pub(crate) const ERSPAN_HWID: u16 = 4;
}

/// `ILA_ATTR_…`, `linux/ila.h`.
pub(crate) mod ila {
    pub(crate) const LOCATOR: u16 = 1;
    pub(crate) const PAD: u16 = 6;
    pub(crate) const CSUM_MODE: u16 = 7;
    pub(crate) const IDENT_TYPE: u16 = 8;
    pub(crate) const HOOK_TYPE: u16 = 9;
}

/// `SEG6_IPTUNNEL_…`, `linux/seg6_iptunnel.h`.
pub(crate) mod seg6 {
    pub(crate) const SRH: u16 = 1;
    /// `IPV6_SRCRT_TYPE_4`.
    pub(crate) const ROUTING_TYPE: u8 = 4;
    /// `SR6_TLV_HMAC`.
    pub(crate) const TLV_HMAC: u8 = 5;
}

/// `LWT_BPF_…`.
pub(crate) mod bpf {
    pub(crate) const IN: u16 = 1;
    pub(crate) const OUT: u16 = 2;
    pub(crate) const XMIT: u16 = 3;
    pub(crate) const XMIT_HEADROOM: u16 = 4;
    /// `LWT_BPF_PROG_FD` and `SEG6_LOCAL_BPF_PROG`.
    pub(crate) const PROG: u16 = 1;
    pub(crate) const PROG_NAME: u16 = 2;
}

/// `SEG6_LOCAL_…`, `linux/seg6_local.h`.
pub(crate) mod seg6_local {
    pub(crate) const ACTION: u16 = 1;
    pub(crate) const SRH: u16 = 2;
    pub(crate) const TABLE: u16 = 3;
    pub(crate) const NH4: u16 = 4;
    pub(crate) const NH6: u16 = 5;
    pub(crate) const IIF: u16 = 6;
    pub(crate) const OIF: u16 = 7;
    pub(crate) const BPF: u16 = 8;
    pub(crate) const VRFTABLE: u16 = 9;
    pub(crate) const COUNTERS: u16 = 10;
    pub(crate) const FLAVORS: u16 = 11;
    /// Inside `COUNTERS`.
    pub(crate) const CNT_PACKETS: u16 = 2;
    pub(crate) const CNT_BYTES: u16 = 3;
    pub(crate) const CNT_ERRORS: u16 = 4;
    /// Inside `FLAVORS`.
    pub(crate) const FLV_OPERATION: u16 = 1;
    pub(crate) const FLV_LCBLOCK_BITS: u16 = 2;
    pub(crate) const FLV_LCNODE_FN_BITS: u16 = 3;
}

/// `RPL_IPTUNNEL_…`, `linux/rpl_iptunnel.h`.
pub(crate) mod rpl {
    pub(crate) const SRH: u16 = 1;
    /// `IPV6_SRCRT_TYPE_3`.
    pub(crate) const ROUTING_TYPE: u8 = 3;
}

/// `IOAM6_IPTUNNEL_…`, `linux/ioam6_iptunnel.h`.
pub(crate) mod ioam6 {
    pub(crate) const MODE: u16 = 1;
    pub(crate) const DST: u16 = 2;
    pub(crate) const TRACE: u16 = 3;
    pub(crate) const FREQ_K: u16 = 4;
    pub(crate) const FREQ_N: u16 = 5;
}

/// `LWT_XFRM_…`.
pub(crate) mod xfrm {
    pub(crate) const IF_ID: u16 = 1;
    pub(crate) const LINK: u16 = 2;
}
