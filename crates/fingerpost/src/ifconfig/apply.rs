//! Does what ifconfig(8) was asked to do: each step is a request or two to
//! the kernel, with the caller's own rights, and has the effect of
//! net-tools' ioctl (`net/ipv4/devinet.c`). One that fails is told; whether
//! those behind it are done is the tool's to say.

mod address;

use std::io::{self, Write};

use anyhow::Result;
use linux::Namespace;
use netlink::decode::Operation;
use netlink::encode::LinkSettings;
use table::row::link::{flag, hardware};
use table::{Address, Link};

use super::step::{Changes, Flag, Step};
use crate::foreign::failed::Failed;
use crate::foreign::kernel::Kernel;

/// What the kernel says of a link that is not there, of an alias that is
/// not, and of a value that makes no sense.
const NO_DEVICE: &str = "No such device";
const NO_ALIAS: &str = "Cannot assign requested address";
const INVALID: &str = "Invalid argument";

/// The status of a step that failed, and of a flag that could not be read or
/// switched; they are gathered bit by bit.
const FAILED: u8 = 1;
const FLAG_FAILED: u8 = 255;

/// What a step ends with: a status and what is said of it.
type Done = Result<Result<(), (u8, String)>>;

/// A link and the name that it was called by.
struct Work<'a> {
    kernel: Kernel<'a>,
    /// The name, or that of an alias.
    name: String,
    /// A new name is the link's from then on, as with BSD; net-tools goes on
    /// with the old one, which leads nowhere.
    is_bsd: bool,
}

/// Does the steps; gives the exit status.
pub fn run(changes: &Changes, namespace: &Namespace) -> Result<Result<u8, Failed>> {
    let kernel = Kernel::open(namespace)?;
    let mut work = Work {
        kernel,
        name: changes.name.clone(),
        is_bsd: changes.stops,
    };
    if let Some(failed) = work.refused(changes)? {
        return Ok(Err(failed));
    }
    let mut status = 0;
    for step in &changes.steps {
        let Err((failed, why)) = work.step(step)? else {
            continue;
        };
        status |= failed;
        // Nobody to tell when standard error is closed.
        let _ = writeln!(io::stderr(), "{why}");
        if changes.stops {
            break;
        }
    }
    Ok(Ok(status))
}

fn failed(call: &str, why: &str) -> Result<(), (u8, String)> {
    Err((FAILED, format!("{call}: {why}")))
}

impl Work<'_> {
    /// The link's own name.
    fn link_name(&self) -> &str {
        self.name.split(':').next().unwrap_or_default()
    }

    fn is_alias(&self) -> bool {
        self.name.contains(':')
    }

    fn link(&self) -> Result<Option<Link>> {
        self.kernel.link(self.link_name())
    }

    fn step(&mut self, step: &Step) -> Done {
        match step {
            Step::Flag(flag) => self.flag(*flag),
            Step::Address(address) => self.own_address(*address),
            Step::Netmask(mask) => self.netmask(*mask),
            Step::Broadcast(address) => self.broadcast(*address),
            Step::Destination(address) => self.destination(*address),
            Step::Inet6(operation, prefix) => self.inet6(*operation, *prefix),
            Step::Alias(Operation::New, address) => self.add_alias(*address),
            Step::Alias(Operation::Delete, address) => self.delete_alias(*address),
            Step::Put(put) => self.put(put),
            Step::Remove(address, len) => self.remove(*address, *len),
            Step::Destroy => self.destroy(),
            setting => self.setting(setting),
        }
    }

    /// A setting of the link, which an alias has none of its own of.
    fn setting(&mut self, step: &Step) -> Done {
        let call = match step {
            Step::Mtu(_) => "SIOCSIFMTU",
            Step::Queue(_) => "SIOCSIFTXQLEN",
            Step::Name(_) => "SIOCSIFNAME",
            Step::Hardware(_) => "SIOCSIFHWADDR",
            _ => "SIOCSIFDESCR",
        };
        let Some(link) = self.link()? else {
            return Ok(failed(call, NO_DEVICE));
        };
        let mut settings = LinkSettings::default();
        match step {
            Step::Mtu(bytes) => settings.mtu = Some(*bytes),
            Step::Queue(packets) => match u32::try_from(*packets) {
                Ok(packets) => settings.tx_queue_len = Some(packets),
                Err(_) => return Ok(failed(call, INVALID)),
            },
            Step::Name(name) => settings.name = Some(name.as_str().into()),
            Step::Description(text) => settings.alias = Some(text.as_str().into()),
            Step::Hardware(_) if link.hardware != hardware::ETHER => {
                return Ok(failed(call, INVALID));
            }
            Step::Hardware(address) => settings.address = Some(*address),
            _ => {}
        }
        let answered = self.kernel.set(link.index, &settings)?;
        if let (Ok(()), Step::Name(name)) = (&answered, step)
            && self.is_bsd
        {
            name.clone_into(&mut self.name);
        }
        Ok(answered.or_else(|why| match step {
            Step::Hardware(_) if why == "Device or resource busy" => {
                failed(call, &format!("{why} - you may need to down the interface"))
            }
            _ => failed(call, &why),
        }))
    }

    fn flag(&mut self, switched: Flag) -> Done {
        let Flag { bits, on, still } = switched;
        let Some(link) = self.link()? else {
            let what = "ERROR while getting interface flags";
            let why = format!("{}: {what}: {NO_DEVICE}", self.name);
            return Ok(Err((FLAG_FAILED, why)));
        };
        let wanted = match on {
            true => link.flags | bits,
            false => link.flags & !bits,
        };
        if self.is_alias() {
            return self.alias_flag(&link, wanted);
        }
        let settings = match bits {
            flag::UP => LinkSettings {
                up: Some(on),
                ..LinkSettings::default()
            },
            bits => LinkSettings {
                flags: if on { bits } else { 0 },
                flags_changed: bits,
                ..LinkSettings::default()
            },
        };
        if let Err(why) = self.kernel.set(link.index, &settings)? {
            return Ok(Err((FLAG_FAILED, format!("SIOCSIFFLAGS: {why}"))));
        }
        let Some(still) = still.filter(|_| !on) else {
            return Ok(Ok(()));
        };
        let is_on = self.link()?.is_some_and(|link| link.flags & bits != 0);
        if is_on {
            let who = match still {
                "promisc" => "... maybe other application is running?",
                _ => ".",
            };
            let name = &self.name;
            let _ = writeln!(
                io::stderr(),
                "Warning: Interface {name} still in {still} mode{who}"
            );
        }
        Ok(Ok(()))
    }

    /// An alias has no flags; without `UP` it goes.
    fn alias_flag(&mut self, link: &Link, wanted: u32) -> Done {
        let addresses = self.kernel.addresses(link)?;
        let Some(alias) = labelled(&addresses, &self.name) else {
            return Ok(Err((FLAG_FAILED, format!("SIOCSIFFLAGS: {NO_ALIAS}"))));
        };
        if wanted & flag::UP != 0 {
            return Ok(Ok(()));
        }
        let answered = self.kernel.address(Operation::Delete, alias.clone())?;
        Ok(answered.map_err(|why| (FLAG_FAILED, format!("SIOCSIFFLAGS: {why}"))))
    }

    fn destroy(&mut self) -> Done {
        let Some(link) = self.link()? else {
            return Ok(failed("SIOCIFDESTROY", NO_DEVICE));
        };
        let answered = self.kernel.delete_link(link.index)?;
        Ok(answered.or_else(|why| failed("SIOCIFDESTROY", &why)))
    }
}

/// The first address of IPv4 with a label: of a link's own name, or of an
/// alias.
fn labelled<'a>(addresses: &'a [Address], label: &str) -> Option<&'a Address> {
    let mut found = addresses
        .iter()
        .filter(|address| address.label.as_deref() == Some(label));
    found.next()
}
