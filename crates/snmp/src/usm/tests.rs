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
