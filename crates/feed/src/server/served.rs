//! What the thread serves: a feed of either kind.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::PollFlags;

use super::line::Line;
use super::routers::Routers;
use super::{Feed, Limits};
use crate::fpm::Forwarded;
use crate::now::Now;

/// A feed, and its sockets.
#[derive(Debug)]
pub(super) enum Served {
    /// A routing daemon by FPM.
    Fpm(Box<Line>),
    /// Routers by BMP.
    Bmp(Box<Routers>),
}

impl Served {
    pub(super) fn new(feed: Feed) -> Self {
        match feed {
            Feed::Fpm(feed) => Self::Fpm(Box::new(Line::new(feed))),
            Feed::Bmp(feed) => Self::Bmp(Box::new(Routers::new(feed))),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Fpm(line) => line.name(),
            Self::Bmp(routers) => routers.name(),
        }
    }

    /// Takes other limits; those of another kind change nothing.
    pub(super) fn set_limits(&mut self, limits: Limits) {
        match (self, limits) {
            (Self::Fpm(line), Limits::Fpm(limits)) => line.set_limits(limits),
            (Self::Bmp(routers), Limits::Bmp(limits)) => routers.set_limits(limits),
            _ => {}
        }
    }

    /// What is waited for, and for what.
    pub(super) fn sockets(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        match self {
            Self::Fpm(line) => line.sockets().collect(),
            Self::Bmp(routers) => routers.sockets().collect(),
        }
    }

    /// When something is to be done without a call.
    pub(super) fn due(&self) -> Option<Duration> {
        match self {
            Self::Fpm(line) => line.due(),
            Self::Bmp(routers) => routers.due(),
        }
    }

    /// Serves those of [`Served::sockets`] that were called.
    pub(super) fn serve(&mut self, called: &[bool], buffer: &mut [u8], now: Now) {
        match self {
            Self::Fpm(line) => line.serve(called, buffer, now),
            Self::Bmp(routers) => routers.serve(called, buffer, now),
        }
    }

    /// Whoever forwards by a feed has looked at more of its routes; by BMP
    /// nothing is told back.
    pub(super) fn forwarded(&mut self, news: Forwarded) {
        if let Self::Fpm(line) = self {
            line.forwarded(news);
        }
    }

    /// Sends peers what there is for them. Never waits.
    pub(super) fn send(&mut self) {
        if let Self::Fpm(line) = self {
            line.send();
        }
    }

    /// Looks whether peers have told all.
    pub(super) fn tick(&mut self, now: Now) {
        match self {
            Self::Fpm(line) => line.tick(now),
            Self::Bmp(routers) => routers.tick(now),
        }
    }

    /// Shows readers what came, if it is time to.
    pub(super) fn publish(&mut self, now: Now) {
        match self {
            Self::Fpm(line) => line.publish(now),
            Self::Bmp(routers) => routers.publish(now),
        }
    }
}
