use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};

use snmp::agentx::Known;

use super::super::config::AgentxMaster;
use super::*;

const LONG: Duration = Duration::from_secs(60);

/// Nobody asks anything.
struct Nobody;

impl Answers for Nobody {
    fn answer(
        &self,
        _: &Request,
        _: &Dispatch,
        _: &Known,
        _: bool,
        _: Manner,
        _: &mut [u8],
    ) -> Answered {
        Answered::Done
    }
}

fn callers(modules: Sender<usize>) -> Callers {
    Callers {
        answers: Arc::new(Nobody),
        up_time: Box::new(|| 0),
        told: Box::new(|_| ()),
        capabilities: Box::new(move |all| modules.send(all.len()).unwrap()),
    }
}

/// A message of a subagent, in network byte order; gives its answer's
/// session.
fn exchange(stream: &mut UnixStream, kind: u8, session: u32, payload: &[u8]) -> u32 {
    let mut message = vec![1, kind, 0x10, 0];
    for word in [session, 0, 1, payload.len() as u32] {
        message.extend(word.to_be_bytes());
    }
    message.extend(payload);
    stream.write_all(&message).unwrap();
    // A response without bindings.
    let mut answer = [0; 28];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[24..26], [0, 0]);
    u32::from_be_bytes(answer[4..8].try_into().unwrap())
}

#[test]
fn modules_of_subagents_go_when_nobody_may_attach_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agentx");
    let door = Door::open(&AgentxMaster {
        path: path.clone(),
        ..AgentxMaster::default()
    });
    let (modules, heard) = channel();
    let name = path.display().to_string();
    let subagents = Subagents::start(door.unwrap(), name, LONG, callers(modules)).unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let open = [&[0; 8][..], &4_u32.to_be_bytes(), b"test"].concat();
    let session = exchange(&mut stream, 1, 0, &open);
    // 1.3.6.1.2 is its module.
    let module = [&[0, 2, 0, 0][..], &4_u32.to_be_bytes(), b"test"].concat();
    exchange(&mut stream, 16, session, &module);
    assert_eq!(heard.recv_timeout(LONG), Ok(1));
    drop(subagents);
    assert_eq!(heard.recv_timeout(LONG), Ok(0));
    assert!(!path.exists());
}
