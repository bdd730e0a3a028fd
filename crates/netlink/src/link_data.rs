//! Settings of a link's kind: `IFLA_INFO_DATA` and `IFLA_INFO_SLAVE_DATA`
//! to the structs of `table::row::link`, and back.
//!
//! One file a kind, each a list: an attribute's number, the field, the
//! [`form`] in which the field is written. What a list does not name, and
//! what is not of the size it should be, is kept in the struct's `rest` and
//! written again behind it. For [`crate::decode`] and [`crate::encode`].

mod bond;
mod bridge;
mod form;
mod geneve;
mod gre;
mod hsr;
mod ip_tunnel;
mod ipvlan;
mod macvlan;
mod tun;
mod vlan;
mod vrf;
mod vti;
mod vxlan;
mod xfrm;

use table::{KindData, PortData, RawAttributes};

use crate::attribute::{Attributes, Kept};
use crate::build::Build;
use crate::malformed::Malformed;

/// A struct whose fields are attributes.
trait Data {
    /// Takes an attribute; false: it is not known, not of the right form,
    /// or has come before.
    fn read(&mut self, number: u16, value: &[u8]) -> bool;
    fn write(&self, build: &mut Build<'_>);
    fn set_rest(&mut self, rest: RawAttributes);
    /// Numbers of attributes that are no part of a row.
    fn unsteady(&self) -> &'static [u16] {
        &[]
    }
}

/// Makes a struct [`Data`]: a line an attribute, in the order in which they
/// are written. `without` are [`Data::unsteady`].
macro_rules! attributes {
    ($kind:ty { $($number:literal $($field:ident).+ : $form:ident,)* } $(without $unsteady:expr)?) => {
        impl $crate::link_data::Data for $kind {
            fn read(&mut self, number: u16, value: &[u8]) -> bool {
                use $crate::link_data::form::{self, Form};
                $((number == $number && form::$form::read(&mut self.$($field).+, value)) ||)* false
            }

            fn write(&self, build: &mut $crate::build::Build<'_>) {
                use $crate::link_data::form::{self, Form};
                $(form::$form::write(&self.$($field).+, $number, build);)*
                build.append(self.rest.bytes());
            }

            fn set_rest(&mut self, rest: table::RawAttributes) {
                self.rest = rest;
            }

            $(fn unsteady(&self) -> &'static [u16] {
                &$unsteady
            })?
        }
    };
}
use attributes;

fn read<T: Data + Default>(mut attributes: Attributes<'_>) -> Result<T, Malformed> {
    let mut data = T::default();
    let mut rest = Kept::default();
    while let Some(attribute) = attributes.step()? {
        if data.unsteady().contains(&attribute.kind) || data.read(attribute.kind, attribute.value) {
            continue;
        }
        rest.keep(&attribute);
    }
    data.set_rest(rest.into_attributes());
    Ok(data)
}

fn boxed<T: Data + Default>(attributes: Attributes<'_>) -> Result<Box<T>, Malformed> {
    read(attributes).map(Box::new)
}

/// Attributes of a kind that has no struct; `None` where there are none.
fn unknown(mut attributes: Attributes<'_>) -> Result<Option<Box<RawAttributes>>, Malformed> {
    let mut kept = Kept::default();
    while let Some(attribute) = attributes.step()? {
        kept.keep(&attribute);
    }
    let kept = kept.into_attributes();
    Ok((!kept.is_empty()).then(|| Box::new(kept)))
}

/// `IFLA_INFO_DATA` of a link of some kind.
pub(crate) fn of_kind(kind: &str, data: Attributes<'_>) -> Result<KindData, Malformed> {
    Ok(match kind {
        "bond" => KindData::Bond(boxed(data)?),
        "bridge" => KindData::Bridge(boxed(data)?),
        "erspan" | "gre" | "gretap" | "ip6erspan" | "ip6gre" | "ip6gretap" => {
            KindData::Gre(boxed(data)?)
        }
        "geneve" => KindData::Geneve(boxed(data)?),
        "hsr" => KindData::Hsr(boxed(data)?),
        "ip6tnl" | "ipip" | "sit" => KindData::IpTunnel(boxed(data)?),
        "ipvlan" | "ipvtap" => KindData::Ipvlan(boxed(data)?),
        "macvlan" | "macvtap" => KindData::Macvlan(boxed(data)?),
        "tun" => KindData::Tun(boxed(data)?),
        "vlan" => KindData::Vlan(boxed(data)?),
        "vrf" => KindData::Vrf(boxed(data)?),
        "vti" | "vti6" => KindData::Vti(boxed(data)?),
        "vxlan" => KindData::Vxlan(boxed(data)?),
        "xfrm" => KindData::Xfrm(boxed(data)?),
        _ => unknown(data)?.map_or(KindData::None, KindData::Unknown),
    })
}

/// `IFLA_INFO_SLAVE_DATA` of a port of a master of some kind.
pub(crate) fn of_port(master: &str, data: Attributes<'_>) -> Result<PortData, Malformed> {
    Ok(match master {
        "bond" => PortData::Bond(boxed(data)?),
        "bridge" => PortData::Bridge(boxed(data)?),
        "vrf" => PortData::Vrf(boxed(data)?),
        _ => unknown(data)?.map_or(PortData::None, PortData::Unknown),
    })
}

/// Appends the attributes of a kind, without what holds them.
pub(crate) fn put_kind(build: &mut Build<'_>, data: &KindData) {
    match data {
        KindData::None => {}
        KindData::Bond(data) => data.write(build),
        KindData::Bridge(data) => data.write(build),
        KindData::Geneve(data) => data.write(build),
        KindData::Gre(data) => data.write(build),
        KindData::Hsr(data) => data.write(build),
        KindData::IpTunnel(data) => data.write(build),
        KindData::Ipvlan(data) => data.write(build),
        KindData::Macvlan(data) => data.write(build),
        KindData::Tun(data) => data.write(build),
        KindData::Vlan(data) => data.write(build),
        KindData::Vrf(data) => data.write(build),
        KindData::Vti(data) => data.write(build),
        KindData::Vxlan(data) => data.write(build),
        KindData::Xfrm(data) => data.write(build),
        KindData::Unknown(data) => build.append(data.bytes()),
    }
}

/// The same of a link to be made, as the kernel takes it.
pub(crate) fn put_wanted(build: &mut Build<'_>, data: &KindData) {
    match data {
        KindData::Vxlan(data) => vxlan::put_wanted(build, data),
        data => put_kind(build, data),
    }
}

/// Appends the attributes of a port, without what holds them.
pub(crate) fn put_port(build: &mut Build<'_>, data: &PortData) {
    match data {
        PortData::None => {}
        PortData::Bond(data) => data.write(build),
        PortData::Bridge(data) => data.write(build),
        PortData::Vrf(data) => data.write(build),
        PortData::Unknown(data) => build.append(data.bytes()),
    }
}
