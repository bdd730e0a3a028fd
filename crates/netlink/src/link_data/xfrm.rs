//! `IFLA_XFRM_…`.

use table::row::link::xfrm::Xfrm;

use super::attributes;

attributes!(Xfrm {
    1 link: Own,
    2 if_id: Own,
    3 collect_metadata: Present,
});
