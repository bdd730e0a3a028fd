//! A headless Chromium inside a namespace, driven over WebDriver by plain
//! HTTP: <https://www.w3.org/TR/webdriver2/>.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use lab::{Child, Netns, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::common::PATIENCE;

/// Where the driver listens, in a namespace of its own.
const PORT: u16 = 9515;
/// What the protocol calls an element's name.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys by their code points in the protocol.
pub const TAB: &str = "\u{e004}";
pub const ENTER: &str = "\u{e007}";
pub const ESCAPE: &str = "\u{e00c}";
pub const END: &str = "\u{e010}";
pub const HOME: &str = "\u{e011}";
pub const DOWN: &str = "\u{e015}";

/// A browser; ends with its value.
pub struct Browser<'n> {
    netns: &'n Netns,
    session: String,
    _driver: Child,
    profile: TempDir,
}

impl<'n> Browser<'n> {
    /// Starts one, as wide and high as this.
    pub fn start(netns: &'n Netns, width: u32, height: u32) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut command = netns.command("chromedriver");
        command
            .arg(format!("--port={PORT}"))
            // Crash reports and caches stay in there as well.
            .env("HOME", profile.path())
            .env("XDG_CONFIG_HOME", profile.path())
            .env("XDG_CACHE_HOME", profile.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let driver = Child::spawn(command).unwrap();
        let mut browser = Self {
            netns,
            session: String::new(),
            _driver: driver,
            profile,
        };
        wait_until(PATIENCE, "the driver", || {
            netns
                .inside(|| TcpStream::connect(("127.0.0.1", PORT)).ok())
                .unwrap()
        })
        .unwrap();
        browser.session = browser.open(width, height);
        browser
    }

    fn open(&self, width: u32, height: u32) -> String {
        let directory = self.profile.path().join("profile");
        let options = json!({"args": [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage", "--hide-scrollbars=false",
            format!("--user-data-dir={}", directory.display()),
            format!("--window-size={width},{height}"),
        ]});
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"script": 60_000, "pageLoad": 60_000},
        }}});
        let opened = self.ask("POST", "/session", Some(&wanted)).unwrap();
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    /// One request; its value, or what the driver complains of.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let stream = self
            .netns
            .inside(|| TcpStream::connect(("127.0.0.1", PORT)));
        let mut stream = stream.unwrap().map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(PATIENCE * 2)).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut from = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while from.read_line(&mut line).unwrap() > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut text = vec![0; length];
        from.read_exact(&mut text).unwrap();
        let mut answer: Value = serde_json::from_slice(&text).unwrap();
        let value = answer["value"].take();
        match value.get("error") {
            Some(error) => Err(format!("{error}: {}", value["message"])),
            None => Ok(value),
        }
    }

    fn of_session(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        self.ask(method, &format!("/session/{}{path}", self.session), body)
    }

    /// Goes to an address.
    pub fn go(&self, url: &str) {
        self.of_session("POST", "/url", Some(&json!({"url": url})))
            .unwrap();
    }

    /// What a script returns.
    pub fn run(&self, script: &str) -> Value {
        let body = json!({"script": script, "args": []});
        let value = self.of_session("POST", "/execute/sync", Some(&body));
        value.unwrap_or_else(|error| Value::String(format!("{script}: {error}")))
    }

    /// The visible text of what a selector finds; empty: nothing.
    pub fn text(&self, selector: &str) -> String {
        let selector = json!(selector);
        let value = self.run(&format!(
            "const one = document.querySelector({selector}); \
             return one?.checkVisibility() ? one.innerText : ''"
        ));
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the text of an element is as wanted.
    pub fn sees(&self, selector: &str, is_it: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let seen = wait_until(PATIENCE, selector, || {
            last = self.text(selector);
            is_it(&last).then(|| last.clone())
        });
        if seen.is_err() {
            self.shot("failed");
        }
        assert!(seen.is_ok(), "{seen:?}\nlast seen: {last}\n{}", self.log());
        seen.unwrap()
    }

    /// Waits until a text is in an element.
    pub fn shows(&self, selector: &str, text: &str) -> String {
        self.sees(selector, |seen| seen.contains(text))
    }

    fn element(&self, selector: &str) -> String {
        let wanted = json!({"using": "css selector", "value": selector});
        let found = wait_until(PATIENCE, selector, || {
            self.of_session("POST", "/element", Some(&wanted)).ok()
        });
        found.unwrap()[ELEMENT].as_str().unwrap().to_owned()
    }

    /// Clicks as a user does. What is drawn anew under the pointer is
    /// tried again.
    pub fn click(&self, selector: &str) {
        let clicked = wait_until(PATIENCE, &format!("a click on {selector}"), || {
            let element = self.element(selector);
            self.of_session(
                "POST",
                &format!("/element/{element}/click"),
                Some(&json!({})),
            )
            .ok()
        });
        clicked.unwrap();
    }

    /// Presses keys, one after the other, wherever the focus is.
    pub fn press(&self, keys: &[&str]) {
        let actions: Vec<Value> = keys
            .iter()
            .flat_map(|key| {
                [
                    json!({"type": "keyDown", "value": key}),
                    json!({"type": "keyUp", "value": key}),
                ]
            })
            .collect();
        let body = json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]});
        self.of_session("POST", "/actions", Some(&body)).unwrap();
    }

    /// Types a text.
    pub fn types(&self, text: &str) {
        let keys: Vec<String> = text.chars().map(String::from).collect();
        self.press(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// The view is as wide and high as this, as on a device of this size.
    pub fn resize(&self, width: u32, height: u32) {
        let body = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
        }});
        self.of_session("POST", "/goog/cdp/execute", Some(&body))
            .unwrap();
    }

    /// Is dark or light, as a user has set the system.
    pub fn prefers(&self, scheme: &str) {
        let body = json!({"cmd": "Emulation.setEmulatedMedia", "params": {
            "features": [{"name": "prefers-color-scheme", "value": scheme}],
        }});
        self.of_session("POST", "/goog/cdp/execute", Some(&body))
            .unwrap();
    }

    /// Keeps a picture of what is seen, as an artefact of the test.
    pub fn shot(&self, name: &str) {
        let directory = Self::artefacts();
        std::fs::create_dir_all(&directory).unwrap();
        let picture = self.of_session("GET", "/screenshot", None).unwrap();
        let octets = base64(picture.as_str().unwrap());
        std::fs::write(directory.join(format!("{name}.png")), octets).unwrap();
    }

    /// Where pictures are kept: beside what Cargo builds.
    fn artefacts() -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("page")
    }

    /// What the page's console says.
    pub fn log(&self) -> String {
        let log = self.of_session("POST", "/se/log", Some(&json!({"type": "browser"})));
        log.map_or_else(|error| error, |log| log.to_string())
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        // The driver ends the browser with the session; a driver that is
        // gone has ended it already.
        let _ = self.of_session("DELETE", "", None);
        // The browser's last act in its profile, which goes next.
        let lock = self.profile.path().join("profile/SingletonLock");
        let is_gone = || std::fs::symlink_metadata(&lock).is_err().then_some(());
        let _ = wait_until(PATIENCE, "the browser's end", is_gone);
    }
}

/// Octets out of base64 (RFC 4648 §4).
fn base64(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text
        .bytes()
        .filter(|letter| *letter != b'=')
        .map(value)
        .collect();
    let mut octets = Vec::with_capacity(letters.len() * 3 / 4);
    for group in letters.chunks(4) {
        let bits = group
            .iter()
            .fold(0_u32, |bits, six| bits << 6 | u32::from(*six))
            << (6 * (4 - group.len()));
        octets.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    octets
}
