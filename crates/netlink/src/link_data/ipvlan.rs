//! `IFLA_IPVLAN_…`.

use table::row::link::ipvlan::Ipvlan;

use super::attributes;

attributes!(Ipvlan {
    1 mode: Own,
    2 flags: Own,
});
