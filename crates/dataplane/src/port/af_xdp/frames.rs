//! The memory that an `AF_XDP` socket sends from: the pool's, where its slots
//! are frames of a device's memory, or slots of the socket's own.

use super::{Frames, SLOT_BYTES};
use crate::buffer::Umem;
use crate::socket::SocketError;
use crate::socket::mapping::Mapping;
use crate::{Buffer, Cache, Pool};

/// Where the kernel finds a frame: its place in the memory, and its length.
pub struct Place {
    pub address: u64,
    pub len: u32,
}

/// What came of a frame that was to be sent.
pub enum Taken {
    /// It lies there now, until [`Frames::done`].
    At(Place),
    /// It is longer than a slot, or of another pool.
    Refused,
}

/// The pool's memory: buffers are the kernel's while it sends them.
pub struct Shared {
    umem: Umem,
    /// By the number of its slot, a buffer that the kernel has.
    sending: Box<[Option<Buffer>]>,
    /// Those that it is done with, until a cache is at hand.
    done: Vec<Buffer>,
}

/// Memory of the socket's own, into which each frame is copied.
pub struct Own {
    memory: Mapping,
    /// Slots that are ours.
    free: Vec<u32>,
    /// Of the packet in each slot, from its IP header on.
    packet_bytes: Box<[u32]>,
}

impl Frames {
    /// The pool's memory where it is fit for it, else so many slots.
    pub fn of(pool: &Pool, slots: usize) -> Result<Self, SocketError> {
        if let Some(umem) = pool.umem() {
            let sending = (0..pool.capacity()).map(|_| None).collect();
            return Ok(Self::Shared(Shared {
                umem,
                sending,
                done: Vec::with_capacity(slots),
            }));
        }
        let memory = Mapping::anonymous(slots * SLOT_BYTES)
            .map_err(|error| SocketError::refused("memory for AF_XDP", error))?;
        Ok(Self::Own(Own {
            memory,
            free: (0..slots as u32).rev().collect(),
            packet_bytes: vec![0; slots].into(),
        }))
    }

    /// Address, length and length of a slot, for the kernel.
    pub fn region(&self) -> (u64, u64, u32) {
        match self {
            Self::Shared(shared) => shared.umem.region(),
            Self::Own(own) => {
                let slots = own.packet_bytes.len();
                let len = (slots * SLOT_BYTES) as u64;
                (own.memory.address(), len, SLOT_BYTES as u32)
            }
        }
    }

    /// Whether each frame is copied.
    pub fn copies(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// Takes a frame to be sent; there is room for it. A buffer that is not
    /// the kernel's then goes to the cache.
    pub fn take(&mut self, buffer: Buffer, cache: &mut Cache) -> Taken {
        match self {
            Self::Shared(shared) => shared.take(buffer, cache),
            Self::Own(own) => {
                let taken = own.take(&buffer);
                cache.give(buffer);
                taken
            }
        }
    }

    /// The kernel is done with what lies there: bytes of the packet, from its
    /// IP header on. `None` where nothing was given to it.
    pub fn done(&mut self, address: u64) -> Option<u64> {
        match self {
            Self::Shared(shared) => {
                let number = (address / u64::from(shared.umem.region().2)) as usize;
                let buffer = shared.sending.get_mut(number)?.take()?;
                let bytes = buffer.packet_len() as u64;
                shared.done.push(buffer);
                Some(bytes)
            }
            Self::Own(own) => {
                let slot = (address / SLOT_BYTES as u64) as usize;
                let bytes = *own.packet_bytes.get(slot)?;
                // The kernel gives back what it was given, once.
                if own.free.len() >= own.packet_bytes.len() {
                    return None;
                }
                own.free.push(slot as u32);
                Some(u64::from(bytes))
            }
        }
    }

    /// Gives buffers that the kernel is done with to the cache.
    pub fn give_done(&mut self, cache: &mut Cache) {
        if let Self::Shared(shared) = self {
            cache.give_all(shared.done.drain(..));
        }
    }
}

impl Shared {
    fn take(&mut self, buffer: Buffer, cache: &mut Cache) -> Taken {
        let place = self.umem.place(&buffer);
        let number = place.map(|place| (place / u64::from(self.umem.region().2)) as usize);
        let sending = number.and_then(|number| self.sending.get_mut(number));
        let (Some(address), Some(sending)) = (place, sending) else {
            cache.give(buffer);
            return Taken::Refused;
        };
        let len = buffer.frame_len() as u32;
        *sending = Some(buffer);
        Taken::At(Place { address, len })
    }
}

impl Own {
    fn take(&mut self, buffer: &Buffer) -> Taken {
        let frame = buffer.frame();
        if frame.len() > SLOT_BYTES {
            return Taken::Refused;
        }
        let Some(slot) = self.free.pop() else {
            debug_assert!(false, "room was asked for");
            return Taken::Refused;
        };
        let start = slot as usize * SLOT_BYTES;
        let Some(to) = self.memory.bytes(start, frame.len()) else {
            debug_assert!(false, "a slot lies in the memory");
            return Taken::Refused;
        };
        to.copy_from_slice(frame);
        self.packet_bytes[slot as usize] = buffer.packet_len() as u32;
        Taken::At(Place {
            address: start as u64,
            len: frame.len() as u32,
        })
    }
}
