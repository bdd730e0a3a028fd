//! `IFLA_VTI_…`.

use table::row::link::vti::Vti;

use super::attributes;

attributes!(Vti {
    1 link: Own,
    2 ikey: Net,
    3 okey: Net,
    4 local: Own,
    5 remote: Own,
    6 fwmark: Own,
});
