//! The columns of the settings of kinds.

/// As rows tell them. One that is a list, or an object of its own, is there
/// as a whole.
pub(crate) const COLUMNS: &[&str] = &[
    "linkinfo.info_data.protocol",
    "linkinfo.info_data.id",
    "linkinfo.info_data.mode",
    "linkinfo.info_data.table",
    "linkinfo.info_data.remote",
    "linkinfo.info_data.local",
    "linkinfo.info_data.link",
    "linkinfo.info_data.port",
    "linkinfo.info_data.forward_delay",
    "linkinfo.info_data.hello_time",
    "linkinfo.info_data.max_age",
    "linkinfo.info_data.ageing_time",
    "linkinfo.info_data.stp_state",
    "linkinfo.info_data.priority",
    "linkinfo.info_data.vlan_filtering",
];
