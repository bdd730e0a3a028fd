//! `IFLA_VRF_TABLE` and, of a port, `IFLA_VRF_PORT_TABLE`.

use table::row::link::vrf::Vrf;

use super::attributes;

attributes!(Vrf {
    1 table: Own,
});
