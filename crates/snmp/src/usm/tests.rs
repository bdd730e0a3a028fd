use super::key::*;

/// The engine of RFC 3414 §A.3.
const ENGINE: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn auth(protocol: AuthProtocol) -> AuthKey {
    AuthKey::from_passphrase(protocol, b"maplesyrup", &ENGINE).expect("a key")
}

#[test]
fn keys_of_the_rfc() {
    assert_eq!(
        hex(auth(AuthProtocol::Md5).bytes()),
        "526f5eed9fcce26f8964c2930787d82b"
    );
    assert_eq!(
        hex(auth(AuthProtocol::Sha1).bytes()),
        "6695febc9288e36282235fc7151f128497b38f3f"
    );
}

/// What is too long for a hash is its own hash more (Blumenthal), or the key
/// that it is the passphrase of (Reeder). net-snmp's tools as askers show in
/// `tests/net_snmp.rs` that theirs are the same.
#[test]
fn long_keys_begin_as_short_ones() {
    let auth = auth(AuthProtocol::Md5);
    let key = |protocol| {
        let key = PrivacyKey::from_passphrase(protocol, AuthProtocol::Md5, b"maplesyrup", &ENGINE);
        key.expect("a key").bytes().to_vec()
    };
    for protocol in [PrivacyProtocol::Des, PrivacyProtocol::Aes128] {
        assert_eq!(key(protocol), auth.bytes());
    }
    let hashed = AuthProtocol::Md5.hash(&[auth.bytes()]);
    assert_eq!(
        key(PrivacyProtocol::Aes256),
        [auth.bytes(), &hashed.0].concat()
    );
    let again = AuthKey::from_passphrase(AuthProtocol::Md5, auth.bytes(), &ENGINE);
    let again = again.expect("a key");
    assert_eq!(
        key(PrivacyProtocol::Aes256Cisco),
        [auth.bytes(), again.bytes()].concat()
    );
    for (short, long) in [
        (PrivacyProtocol::Aes192, PrivacyProtocol::Aes256),
        (PrivacyProtocol::Aes192Cisco, PrivacyProtocol::Aes256Cisco),
    ] {
        assert_eq!(key(short), key(long)[..24]);
    }
}

#[test]
fn keys_are_stored_and_checked() {
    let key = auth(AuthProtocol::Sha512);
    let again = AuthKey::from_localised(key.protocol(), key.bytes()).expect("the key");
    assert_eq!(again.bytes(), key.bytes());
    let short = AuthKey::from_localised(AuthProtocol::Sha512, &key.bytes()[1..]);
    assert!(matches!(
        short,
        Err(KeyError::Length {
            expected: 64,
            found: 63,
            ..
        })
    ));
    let passphrase = AuthKey::from_passphrase(AuthProtocol::Md5, b"seven77", &ENGINE);
    assert!(matches!(passphrase, Err(KeyError::ShortPassphrase)));
    assert_eq!(format!("{:?}", key.key), "64 secret bytes");
}

#[test]
fn names_of_protocols() {
    for name in ["MD5", "SHA", "SHA-224", "SHA-256", "SHA-384", "SHA-512"] {
        assert_eq!(name.parse().map(AuthProtocol::name), Ok(name));
    }
    for name in ["DES", "AES", "AES-192", "AES-256", "AES-192-C", "AES-256-C"] {
        assert_eq!(name.parse().map(PrivacyProtocol::name), Ok(name));
    }
    assert_eq!("sha1".parse(), Ok(AuthProtocol::Sha1));
    assert_eq!("aes128".parse(), Ok(PrivacyProtocol::Aes128));
    assert!("SHA3".parse::<AuthProtocol>().is_err());
    assert!("3DES".parse::<PrivacyProtocol>().is_err());
}

/// There and back at every length, and a refusal of salts and texts that
/// the protocol does not make.
#[test]
fn there_and_back() {
    use super::crypt::{decrypt, encrypt, padding};
    for protocol in [
        PrivacyProtocol::Des,
        PrivacyProtocol::Aes128,
        PrivacyProtocol::Aes192,
        PrivacyProtocol::Aes256Cisco,
    ] {
        let bytes: Vec<u8> = (0..64).collect();
        let key = PrivacyKey::from_localised(protocol, &bytes[..protocol.key_len()]);
        let key = key.expect("a key");
        for len in 0..70 {
            let mut text = bytes[..len.min(64)].to_vec();
            text.resize(text.len() + padding(protocol, text.len()), 0);
            let plain = text.clone();
            encrypt(&key, [9; 8], 3, 5, &mut text);
            assert!(plain.is_empty() || text != plain);
            assert!(decrypt(&key, &[9; 8], 3, 5, &mut text));
            assert_eq!(text, plain);
            assert!(!decrypt(&key, &[9; 7], 3, 5, &mut text));
        }
    }
    let des = PrivacyKey::from_localised(PrivacyProtocol::Des, &[1; 16]).expect("a key");
    assert!(!decrypt(&des, &[9; 8], 3, 5, &mut [0; 15]));
}
