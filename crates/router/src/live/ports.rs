//! The links that packets are forwarded between: each has a place, whether its
//! link is there or not. Called by `watching`.

use std::sync::Arc;

use anyhow::{Context, Result};
use dataplane::xdp::{Attached, Forwarding, PortSettings};
use table::Link;

use super::obstacles::{Family, Obstacle, Scope, Seen, strict_sources};
use super::tell;

/// Devices whose frames come with finished checksums: those of real hardware.
const HARD: [&str; 3] = ["pci", "usb", "platform"];

/// A port by its name.
#[derive(Debug)]
pub struct Port {
    /// Its link's name.
    pub name: String,
    /// Where its packets are counted.
    pub slot: u32,
    attached: Option<Attached>,
    settings: Option<PortSettings>,
    /// Why it could not be attached, told once.
    failed: Option<String>,
}

impl Port {
    /// The number of its link, while it is there and attached.
    pub fn link(&self) -> Option<u32> {
        self.attached.as_ref().map(Attached::link)
    }

    /// What is done there now.
    pub fn settings(&self) -> Option<&PortSettings> {
        self.settings.as_ref()
    }

    /// Why it is not attached though its link is there.
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Whether its program asks for VLAN tags.
    pub fn asks_tags(&self) -> bool {
        self.attached.as_ref().is_some_and(Attached::knows_tags)
    }
}

/// All ports.
#[derive(Debug)]
pub struct Ports {
    forwarding: Arc<Forwarding>,
    /// Those that are outside of a translation.
    outside: Vec<String>,
    all: Vec<Port>,
}

impl Ports {
    /// Names them; none is attached yet.
    /// `forwarding` is what forwards between them.
    pub fn new(names: &[String], outside: &[String], forwarding: Forwarding) -> Result<Self> {
        let port = |(slot, name): (usize, &String)| Port {
            name: name.clone(),
            slot: slot as u32,
            attached: None,
            settings: None,
            failed: None,
        };
        Ok(Self {
            forwarding: Arc::new(forwarding),
            outside: outside.to_vec(),
            all: names.iter().enumerate().map(port).collect(),
        })
    }

    /// What forwards.
    pub fn forwarding(&self) -> &Arc<Forwarding> {
        &self.forwarding
    }

    /// All, whether attached or not.
    pub fn all(&self) -> &[Port] {
        &self.all
    }

    /// Attaches those whose link is there, all of them: for a start.
    pub fn attach_all(&mut self, links: &[Link]) -> Result<()> {
        let found = |port: &Port| links.iter().find(|link| *link.name == *port.name);
        for port in &self.all {
            let link = found(port).with_context(|| format!("there is no link {}", port.name))?;
            self.prepare(port, link)?;
        }
        for port in &mut self.all {
            if let Some(link) = found(port) {
                let attached = self.forwarding.attach(link.index, &port.name, port.slot)?;
                port.attached = Some(attached);
            }
        }
        Ok(())
    }

    /// What is done there from the first packet on.
    fn prepare(&self, port: &Port, link: &Link) -> Result<()> {
        let first = first(link, self.outside.contains(&port.name));
        Ok(self.forwarding.prepare(link.index, port.slot, &first)?)
    }

    /// Whether all links outside of a translation are there.
    pub fn has_all_outside(&self) -> bool {
        let is_outside = |port: &&Port| self.outside.contains(&port.name);
        self.all
            .iter()
            .filter(is_outside)
            .all(|port| port.attached.is_some())
    }

    /// Follows links that came and went; whether any did.
    pub fn follow(&mut self, links: &[Link]) -> Result<bool> {
        let mut has_changed = false;
        for port in &mut self.all {
            let link = links.iter().find(|link| *link.name == *port.name);
            let index = link.map(|link| link.index);
            if port.link() == index {
                continue;
            }
            if let Some(gone) = port.attached.take() {
                tell(format_args!("{}: its link is gone", port.name));
                port.settings = None;
                has_changed = true;
                self.forwarding.detach(gone)?;
            }
            let Some(link) = link else {
                port.failed = None;
                continue;
            };
            let first = first(link, self.outside.contains(&port.name));
            self.forwarding.prepare(link.index, port.slot, &first)?;
            match self.forwarding.attach(link.index, &port.name, port.slot) {
                Ok(attached) => {
                    tell(format_args!("{}: its link is there", port.name));
                    port.attached = Some(attached);
                    port.failed = None;
                    has_changed = true;
                }
                Err(error) => {
                    let error = error.to_string();
                    if port.failed.as_ref() != Some(&error) {
                        tell(&error);
                    }
                    port.failed = Some(error);
                }
            }
        }
        Ok(has_changed)
    }

    /// Sets each port as it has to be with these obstacles in the way.
    pub fn set(&mut self, seen: &Seen, obstacles: &[&Obstacle]) -> Result<()> {
        for port in &mut self.all {
            let Some(attached) = &port.attached else {
                continue;
            };
            let Some(mut wanted) = wanted(seen, &port.name, attached.link(), obstacles) else {
                continue;
            };
            wanted.is_outside = self.outside.contains(&port.name);
            if port.settings != Some(wanted) {
                self.forwarding.set(attached, &wanted)?;
                port.settings = Some(wanted);
            }
        }
        Ok(())
    }
}

/// What is done at a port before all is known of it: nothing, but what is to be
/// translated is known for that.
fn first(link: &Link, is_outside: bool) -> PortSettings {
    PortSettings {
        is_outside,
        is_soft: !is_hard(link),
        mac: link.address.octets().try_into().unwrap_or_default(),
        ..PortSettings::default()
    }
}

/// What is done at a port.
fn wanted(seen: &Seen, name: &str, link: u32, obstacles: &[&Obstacle]) -> Option<PortSettings> {
    let port = seen.port(name).filter(|port| port.link.index == link)?;
    let is_free = |family| !obstacles.iter().any(|one| stops(one.scope, link, family));
    let is_open = |family| is_free(family) && !comes_stopped(obstacles, link, family);
    // Before Linux 6.3 nothing tells whether it sends.
    let sends = port.features.is_none_or(|features| features.sends);
    let sends_long = port.features.is_none_or(|features| features.sends_long);
    Some(PortSettings {
        receives_v4: is_open(Family::V4),
        receives_v6: is_open(Family::V6),
        sends_v4: sends && is_free(Family::V4),
        sends_v6: sends && is_free(Family::V6),
        sends_long,
        is_strict: strict_sources(seen, port),
        is_soft: !is_hard(&port.link),
        is_outside: false,
        mac: port.link.address.octets().try_into().ok()?,
    })
}

/// Whether packets of a family meet an obstacle that come in or leave by a
/// link.
fn stops(scope: Scope, link: u32, family: Family) -> bool {
    match scope {
        Scope::All => true,
        Scope::Family(of) => of == family,
        Scope::Port(of) => of == link,
        Scope::Into(..) => false,
    }
}

fn comes_stopped(obstacles: &[&Obstacle], link: u32, family: Family) -> bool {
    let into = Scope::Into(link, family);
    obstacles.iter().any(|one| one.scope == into)
}

/// Whether frames come with finished checksums. What is not known to is taken
/// for a device whose other end may leave them.
fn is_hard(link: &Link) -> bool {
    let bus = link
        .parent
        .as_ref()
        .and_then(|parent| parent.bus.as_deref());
    link.kind.is_none() && bus.is_some_and(|bus| HARD.contains(&bus))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::obstacles::Kind;

    fn obstacle(scope: Scope) -> Obstacle {
        Obstacle {
            kind: Kind::Nft,
            scope,
            what: String::new(),
        }
    }

    /// What is received and sent at link 1, in both families, with one obstacle.
    fn done(scope: Scope) -> [bool; 4] {
        let mut seen = Seen::default();
        let mut link = Link {
            index: 1,
            name: "a".into(),
            ..Link::default()
        };
        link.address = table::LinkLayerAddress::new(&[2, 0, 0, 0, 0, 1]).unwrap();
        seen.ports.push(crate::live::obstacles::PortSeen {
            link,
            ..Default::default()
        });
        let obstacle = obstacle(scope);
        let wanted = wanted(&seen, "a", 1, &[&obstacle]).unwrap();
        assert!(wanted.is_soft && wanted.mac == [2, 0, 0, 0, 0, 1]);
        [
            wanted.receives_v4,
            wanted.receives_v6,
            wanted.sends_v4,
            wanted.sends_v6,
        ]
    }

    #[test]
    fn an_obstacle_stops_what_meets_it_and_nothing_else() {
        assert_eq!(done(Scope::All), [false; 4]);
        assert_eq!(done(Scope::Family(Family::V4)), [false, true, false, true]);
        assert_eq!(done(Scope::Port(1)), [false; 4]);
        assert_eq!(done(Scope::Port(2)), [true; 4]);
        assert_eq!(done(Scope::Into(1, Family::V6)), [true, false, true, true]);
    }
}
