//! The terminal of `top`: taken over at the start and given back at the
//! end, however it comes: a key, a signal, an error or a panic.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::Top;
use super::daemon::Daemon;
use super::events;
use super::gather::{self, Gathered, Gathering};
use super::keys::{Act, Choice};
use super::model::Model;
use super::screen::{self, Palette};

/// How long a signal or a look may wait to be seen.
const LOOK: Duration = Duration::from_millis(100);

/// A terminal that is given back when this goes.
struct Taken(DefaultTerminal);

impl Taken {
    /// Takes it over. From now on a panic gives it back first.
    fn take() -> Result<Self> {
        let terminal = ratatui::try_init().context("the terminal cannot be taken over")?;
        Ok(Self(terminal))
    }

    /// Stops like any program at Ctrl-Z, and goes on when it is let.
    fn suspend(&mut self) -> Result<()> {
        ratatui::try_restore().context("the terminal cannot be given back")?;
        signal_hook::low_level::raise(signal_hook::consts::SIGSTOP).context("cannot stop")?;
        self.0 = ratatui::try_init().context("the terminal cannot be taken over")?;
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // After a panic it is given back already; once more would put the
        // cursor where the message stands. A terminal that is gone needs
        // nothing back.
        if !std::thread::panicking() {
            let _ = ratatui::try_restore();
        }
    }
}

/// Shows it until the user ends it.
pub fn run(daemon: &Daemon, top: &Top) -> Result<()> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
        // The second one ends it, whatever it does.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&ended))
            .context("cannot catch signals")?;
        signal_hook::flag::register(signal, Arc::clone(&ended)).context("cannot catch signals")?;
    }
    let gathered = gather::start(daemon, top)?;
    let mut shown = Shown {
        gathered,
        model: Model::default(),
        choice: Choice::default(),
        palette: Palette::new(std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())),
        looked: Instant::now(),
        page: 1,
    };
    let mut taken = Taken::take()?;
    shown.run(&mut taken, &ended)
}

/// Waits until there is something to read, a signal, or a little while;
/// whether the terminal was closed.
fn is_gone(terminal: &impl AsFd) -> io::Result<bool> {
    let mut fds = [PollFd::new(terminal, PollFlags::IN)];
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK.subsec_nanos().into(),
    };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) => {
            let closed = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
            Ok(fds[0].revents().intersects(closed))
        }
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

struct Shown {
    gathered: Gathered,
    model: Model,
    choice: Choice,
    palette: Palette,
    /// When the last look was taken in.
    looked: Instant,
    page: usize,
}

impl Shown {
    fn run(&mut self, taken: &mut Taken, ended: &AtomicBool) -> Result<()> {
        self.draw(taken)?;
        while !ended.load(Ordering::Relaxed) {
            let mut is_due = self.take_in()?;
            match self.key().context("the terminal cannot be read")? {
                Some(Act::Quit) => return Ok(()),
                Some(Act::Suspend) => {
                    taken.suspend()?;
                    is_due = true;
                }
                Some(Act::Redraw) => {
                    taken.0.clear().context("the terminal cannot be written")?;
                    is_due = true;
                }
                Some(Act::Draw) => is_due = true,
                None => {}
            }
            if is_due {
                self.draw(taken)?;
            }
        }
        Ok(())
    }

    /// Takes in what the threads gathered; whether there was anything.
    fn take_in(&mut self) -> Result<bool> {
        if self.choice.paused {
            return Ok(false);
        }
        match self.gathered.said.try_recv() {
            Ok(Gathering::Sample(sample)) => {
                let time = self.looked.elapsed();
                self.looked = Instant::now();
                let mut tally = events::lock(&self.gathered.tally);
                self.model.look(*sample, &mut tally, time);
                self.model.subscribers = self.gathered.subscribers.now();
                Ok(true)
            }
            Ok(Gathering::Trouble(trouble)) => {
                self.model.fail(trouble);
                Ok(true)
            }
            Err(TryRecvError::Empty) => Ok(false),
            Err(TryRecvError::Disconnected) => bail!("the thread that asks the daemon ended"),
        }
    }

    /// Waits a little for a key. Whether the terminal is still there is
    /// seen first: crossterm reads one that is gone without end.
    fn key(&mut self) -> io::Result<Option<Act>> {
        if is_gone(&io::stdin())? {
            return Ok(Some(Act::Quit));
        }
        match event::poll(Duration::ZERO) {
            Ok(false) => return Ok(None),
            Ok(true) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(match event::read()? {
            Event::Key(key) => self.choice.key(key, self.page),
            Event::Resize(..) => Some(Act::Draw),
            _ => None,
        })
    }

    fn draw(&mut self, taken: &mut Taken) -> Result<()> {
        let drawn = taken.0.draw(|frame| {
            self.page = screen::draw(frame, &self.model, &mut self.choice, self.palette);
        });
        drawn.context("the terminal cannot be written")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use lab::wait_until;

    /// Runs only in the multiplexer that the next test starts.
    #[test]
    fn panics_where_it_is_told_to() {
        if std::env::var_os("FINGERPOST_TEST_PANIC").is_some() {
            let _taken = Taken::take().unwrap();
            panic!("as told");
        }
    }

    #[test]
    fn a_panic_gives_the_terminal_back() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("tmux");
        let tmux = |arguments: &[&str]| {
            let output = Command::new("tmux")
                .args(["-f", "/dev/null", "-S"])
                .arg(&socket)
                .args(arguments)
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let program = std::env::current_exe().unwrap();
        let line = format!(
            "{} --exact top::terminal::tests::panics_where_it_is_told_to --nocapture; stty -a; echo the end; sleep 60",
            program.display()
        );
        tmux(&[
            "new-session",
            "-d",
            "-x",
            "200",
            "-y",
            "50",
            "-e",
            "FINGERPOST_TEST_PANIC=1",
            "sh",
            "-c",
            &line,
        ]);
        let screen = wait_until(Duration::from_secs(60), "the end", || {
            let screen = tmux(&["capture-pane", "-p"]);
            screen.contains("the end").then_some(screen)
        });
        let alternate = tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
        tmux(&["kill-server"]);
        let screen = screen.unwrap();
        assert!(screen.contains("as told"), "{screen}");
        assert!(
            screen.contains(" icanon") && screen.contains(" echo "),
            "{screen}"
        );
        assert_eq!(alternate.trim(), "0 1");
    }
}
