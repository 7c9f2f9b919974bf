//! RPC-with-TLS, from the options of the command line to reads of a file.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use comity_proto::nfs4::{Nfsstat4, operation as op, share};
use comity_xdr::Opaque;
use common::four::{Four, operation, walk};
use common::line::{Identity, Line, authority, probe};
use common::raw::{NFS, Raw, opaque};
use common::{Place, Running, comity, metrics, run, wait_until};

const TOO_WEAK: u32 = 5;
const ACCES: u32 = 13;

/// A TLS connection to the server of this place, which made its own certificate.
fn secure(place: &Place, server: &Running, identity: Option<&Identity>) -> Line {
    let plain = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    Line::secure(plain, &place.state().join("tls.crt"), identity)
}

/// Serves an exports file with this text, in which `DATA` stands for the data folder.
fn serve(place: &Place, exports: &str) -> Running {
    let exports = exports.replace("DATA", place.data().to_str().unwrap());
    let exports = place.write("exports", &exports);
    let mut command = place.serve(&["--metrics", "127.0.0.1:0"]);
    Running::start(command.arg("--exports").arg(exports))
}

fn file(place: &Place, name: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = place.data().join(name);
    fs::write(&path, name).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
}

/// The arguments of GETATTR.
fn of_handle(handle: &[u8]) -> Vec<u8> {
    let mut arguments = Vec::new();
    opaque(&mut arguments, handle);
    arguments
}

#[test]
fn a_client_mounts_and_reads_over_tls() {
    let place = Place::new();
    let content: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(place.data().join("file"), &content).unwrap();
    let server = Running::start(&mut place.serve_data());
    for identity in [None, Some(Identity::self_signed())] {
        let line = secure(&place, &server, identity.as_ref());
        assert_eq!(line.server_key().unwrap(), server.said["tls"]["key"]);
        let mut client = Raw::on(line, 0);
        let root = client.mount(&place.data()).unwrap();
        let file = client.lookup(&root, b"file").unwrap();
        assert!(client.read(&file).unwrap() == content);
    }
}

#[test]
fn a_client_without_tls_cannot_read_an_export_that_demands_tls() {
    let place = Place::new();
    file(&place, "file");
    let server = serve(&place, "DATA *(rw,insecure,no_root_squash,xprtsec=tls:mtls)");
    let mut client = Raw::on(secure(&place, &server, None), 0);
    let root = client.mount(&place.data()).unwrap();
    let secret = client.lookup(&root, b"file").unwrap();
    // The MOUNT call of Linux is in clear, so the root of the export is answered, but nothing below
    // it.
    let mut stripped = Raw::connect(server.port, 0);
    assert_eq!(stripped.mount(&place.data()).as_ref(), Ok(&root));
    assert_eq!(stripped.mount(&place.data().join("file")), Err(ACCES));
    for handle in [&root, &secret] {
        assert_eq!(stripped.denied_with(NFS, 1, &of_handle(handle)), TOO_WEAK);
    }
    assert_eq!(client.read(&secret).unwrap(), b"file");
    // A client of version 4 is refused, too.
    let mut four = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    four.write_all(&exchange_id()).unwrap();
    let mut reply = [0; 24];
    four.read_exact(&mut reply).unwrap();
    assert_eq!(reply[8..24], [1, 1, 1, TOO_WEAK].map(u32::to_be_bytes).concat());
    assert!(metrics(&server).contains("comity_clients 0\n"));
}

/// The beginning of a COMPOUND of version 4.1; the gate reads only its header.
fn exchange_id() -> Vec<u8> {
    let fields = [0x8000_0000 | 40, 9, 0, 2, NFS, 4, 1, 0, 0, 0, 0];
    fields.map(u32::to_be_bytes).concat()
}

#[test]
fn plain_calls_cannot_use_an_export_that_demands_tls_next_to_one_that_does_not() {
    let place = Place::new();
    fs::create_dir(place.path("open")).unwrap();
    file(&place, "file");
    let open = place.path("open").display().to_string();
    let server = serve(&place, &format!("DATA *(rw,insecure,xprtsec=tls)\n{open} *(rw,insecure)"));
    let mut plain = Raw::connect(server.port, 0);
    let root = plain.mount(&place.data()).unwrap();
    // MNT is allowed in clear, but reading is denied before and after it.
    assert_eq!(plain.denied_with(NFS, 1, &of_handle(&root)), TOO_WEAK);
    assert!(plain.mount(&place.data()).is_ok());
    assert_eq!(plain.denied_with(NFS, 1, &of_handle(&root)), TOO_WEAK);
    let open = plain.mount(&place.path("open")).unwrap();
    assert_eq!(plain.getattr(&open), Ok(()));
    let mut four = Four::connect(server.port, 0, "plain");
    assert_eq!(four.perform(walk(&place.data())), Err(Nfsstat4::WrongSec));
    // Without TLS the server offers no flavor for the export; with TLS it offers one.
    let mut question = walk(place.data().parent().unwrap());
    question.push(operation(op::SECINFO, &Opaque::<64>(b"data")));
    let flavors = |mut four: Four| four.perform(question.clone()).unwrap();
    assert!(flavors(four).ends_with(&[0, 0, 0, 33, 0, 0, 0, 0, 0, 0, 0, 0]));
    let secured = |name| Four::try_on(secure(&place, &server, None), 0, name).unwrap();
    assert!(secured("one").perform(walk(&place.data())).is_ok());
    assert!(flavors(secured("other")).ends_with(&[0, 0, 0, 1, 0, 0, 0, 1]), "one: AUTH_SYS");
}

#[test]
fn mtls_needs_a_proved_key_and_an_entry_can_name_a_key() {
    let place = Place::new();
    file(&place, "file");
    let [known, other] = [(); 2].map(|()| Identity::self_signed());
    let own = format!("key={}(rw,all_squash,anonuid=77,anongid=77)", known.public());
    let server = serve(&place, &format!("DATA *(ro,insecure,no_root_squash,xprtsec=mtls) {own}"));
    let mut anonymous = Raw::on(secure(&place, &server, None), 0);
    let root = anonymous.mount(&place.data()).unwrap();
    assert_eq!(anonymous.denied_with(NFS, 1, &of_handle(&root)), TOO_WEAK);
    // The entry of the key accepts any port, and its own rules apply.
    let mut client = Raw::on(secure(&place, &server, Some(&known)), 0);
    fs::set_permissions(place.data(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let made = client.create(&root, "made", [1; 8]).unwrap();
    let owner = if common::is_root() { 77 } else { client.owner(&root) };
    assert_eq!(client.owner(&made), owner);
    let mut client = Raw::on(secure(&place, &server, Some(&other)), 0);
    assert_eq!(client.create(&root, "more", [1; 8]), Err(30), "ROFS");
    let status = run(comity().args(["status", "--state-dir"]).arg(place.state())).out;
    assert!(status.contains("connections_tls: 1\n") && status.contains("connections_mtls: 2\n"));
    let page = metrics(&server);
    assert!(page.contains("comity_tls_handshakes_total{result=\"mtls\"} 2\n"), "{page}");
    assert!(page.contains("comity_channel_connections{channel=\"tls\"} 1\n"), "{page}");
}

#[test]
fn names_and_users_of_a_certificate_count_below_an_authority() {
    if !common::is_root() {
        return;
    }
    let place = Place::new();
    file(&place, "file");
    let (trusted, strange) = (authority(), authority());
    let ca = place.write("ca.pem", &trusted.pem());
    let config = format!(
        "[server]\ntls_user_oid = \"1.3.6.1.4.1.99999.1\"\n[[export]]\npath = \"{}\"\nclients = [\n\
         {{ client = \"cert=*.north.example@{}\", options = [\"rw\", \"no_root_squash\"] }} ]\n",
        place.data().display(),
        ca.display()
    );
    let config = place.write("comity.toml", &config);
    let server = Running::start(place.serve(&[]).arg("--config").arg(config));
    fs::set_permissions(place.data(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    // An RPCAuthSys of uid 1234 with the gids 100 and 20.
    let user: &[u8] = &[0x30, 12, 2, 2, 4, 0xd2, 0x30, 6, 2, 1, 100, 2, 1, 20];
    let named = Identity::signed(&trusted, "a.north.example", &[]);
    let mut client = Raw::on(secure(&place, &server, Some(&named)), 55);
    let root = client.mount(&place.data()).unwrap();
    let made = client.create(&root, "own", [1; 8]).unwrap();
    assert_eq!(client.owner(&made), 55);
    // This caller is the user of its certificate, whatever ids it claims.
    let squashed = Identity::signed(&trusted, "b.north.example", &[user]);
    let mut client = Raw::on(secure(&place, &server, Some(&squashed)), 0);
    let made = client.create(&root, "squashed", [1; 8]).unwrap();
    assert_eq!(client.owner(&made), 1234);
    for identity in [
        Identity::signed(&trusted, "a.south.example", &[]),
        Identity::signed(&strange, "a.north.example", &[]),
        Identity::self_signed(),
    ] {
        let mut client = Raw::on(secure(&place, &server, Some(&identity)), 0);
        assert_eq!(client.denied_with(NFS, 1, &of_handle(&root)), 1, "BADCRED: nothing is offered");
    }
    // A certificate with two users is refused.
    let twice = Identity::signed(&trusted, "a.north.example", &[user, user]);
    let plain = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let line = Line::try_secure(plain, &place.state().join("tls.crt"), Some(&twice));
    let refused = line.and_then(|mut line| {
        line.write_all(&exchange_id())?;
        line.read_exact(&mut [0; 4])
    });
    assert!(refused.is_err());
}

#[test]
fn state_of_a_client_belongs_to_its_key() {
    let place = Place::new();
    file(&place, "file");
    let server = serve(&place, "DATA *(rw,insecure,no_root_squash)");
    let [owner, thief] = [(); 2].map(|()| Identity::self_signed());
    let mut client = Four::try_on(secure(&place, &server, Some(&owner)), 0, "host").unwrap();
    let path = place.data().join("file");
    let opened = client.open(&path, share::READ).unwrap();
    // Callbacks use the same connection, so the file was delegated.
    assert!(opened.delegation.is_some());
    // A client of the same name on another channel is another client and gets none of this one's
    // state.
    let plain = Four::connect(server.port, 0, "host");
    let keyless = Four::try_on(secure(&place, &server, None), 0, "host").unwrap();
    let other = Four::try_on(secure(&place, &server, Some(&thief)), 0, "host").unwrap();
    let ids = [client.clientid, plain.clientid, keyless.clientid, other.clientid];
    assert!((1..4).all(|at| !ids[..at].contains(&ids[at])), "{ids:x?}");
    assert!(client.perform(walk(&place.data())).is_ok(), "its session is still there");
    // No other client can use the session, on any connection.
    for line in [
        Line::from(TcpStream::connect(("127.0.0.1", server.port)).unwrap()),
        secure(&place, &server, None),
        secure(&place, &server, Some(&thief)),
    ] {
        let mut stolen = client.with_session_on(line);
        assert_eq!(stolen.perform(walk(&place.data())), Err(Nfsstat4::ConnNotBoundToSession));
        assert_eq!(stolen.bind(), Err(Nfsstat4::WrongCred));
    }
    // The session can be used over another connection with the key of its client.
    let mut again = client.with_session_on(secure(&place, &server, Some(&owner)));
    assert!(again.perform(walk(&place.data())).is_ok());
    let shown = run(comity().args(["clients", "--state-dir"]).arg(place.state())).out;
    assert!(shown.contains(&format!("by TLS, key {}", owner.public())), "{shown}");
}

#[test]
fn a_delegation_is_recalled_over_tls() {
    let place = Place::new();
    file(&place, "file");
    let server = serve(&place, "DATA *(rw,insecure,no_root_squash)");
    let path = place.data().join("file");
    let mut holder = Four::try_on(secure(&place, &server, None), 0, "holder").unwrap();
    let held = holder.open(&path, share::READ).unwrap();
    let delegation = held.delegation.unwrap();
    let mut writer = Four::connect(server.port, 0, "writer");
    assert_eq!(writer.open(&path, share::WRITE).err(), Some(Nfsstat4::Delay));
    assert!(holder.listen(common::PATIENCE, |holder| !holder.recalled.is_empty()));
    assert_eq!(holder.recalled, [delegation]);
    holder.give_back(&held, delegation).unwrap();
    wait_until("the file is free", || writer_opens(&path, server.port));
}

fn writer_opens(path: &Path, port: u16) -> bool {
    Four::connect(port, 0, "second writer").open(path, share::WRITE).is_ok()
}

#[test]
fn a_reload_renews_the_key_and_drops_no_connection() {
    let place = Place::new();
    file(&place, "file");
    let [certificate, key] = ["server.pem", "server.key"].map(|name| place.path(name));
    let renew = || {
        let made = comity_tls::self_made(&["127.0.0.1".to_owned()], None).unwrap();
        fs::write(&certificate, made.certificate).unwrap();
        fs::write(&key, made.key).unwrap();
        comity_tls::ServerKey::read(&certificate, &key).unwrap().public().to_string()
    };
    let first = renew();
    let mut command = place.serve_data();
    command.arg("--tls-cert").arg(&certificate).arg("--tls-key").arg(&key);
    let server = Running::start(&mut command);
    let connect = || {
        let plain = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        Line::secure(plain, &certificate, None)
    };
    let line = connect();
    assert_eq!(line.server_key().unwrap(), first);
    let mut old = Raw::on(line, 0);
    let root = old.mount(&place.data()).unwrap();
    let second = renew();
    let reload = || run(comity().args(["reload", "--state-dir"]).arg(place.state()));
    assert_eq!(reload().code, Some(0));
    assert_eq!(connect().server_key().unwrap(), second);
    assert_eq!(old.getattr(&root), Ok(()));
    // A key that does not belong to the certificate changes nothing.
    let other = comity_tls::self_made(&[], None).unwrap();
    fs::write(&key, other.key).unwrap();
    let refused = reload();
    assert_eq!(refused.code, Some(1));
    let said = refused.out + &refused.err;
    assert!(said.contains("server.key") && said.contains("server.pem"), "{said}");
    assert_eq!(connect().server_key().unwrap(), second);
}

#[test]
fn a_server_without_tls_refuses_the_probe() {
    let place = Place::new();
    let server = Running::start(place.serve_data().arg("--no-tls"));
    assert!(server.said["tls"].is_null());
    let mut plain = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    plain.write_all(&probe()).unwrap();
    let mut reply = [0; 24];
    plain.read_exact(&mut reply).unwrap();
    assert_eq!(reply[8..24], [1, 1, 1, 1].map(u32::to_be_bytes).concat(), "BADCRED");
    // Further calls on the connection are answered.
    assert!(Raw::on(plain, 0).mount(&place.data()).is_ok());
    assert!(!place.state().join("tls.key").exists());
}

#[test]
fn check_names_certificates_that_end_soon_or_cannot_be_used() {
    let place = Place::new();
    let check = |server: &str| {
        let data = place.data().display().to_string();
        let export = "clients = [{ client = \"127.0.0.1\" }]";
        let text = format!("[server]\n{server}\n[[export]]\npath = \"{data}\"\n{export}\n");
        let config = place.write("comity.toml", &text);
        run(Command::new(env!("CARGO_BIN_EXE_comity")).arg("check").arg("--config").arg(config))
    };
    let [certificate, key] = ["server.pem", "server.key"].map(|name| place.path(name));
    let files = format!("tls_cert = {certificate:?}\ntls_key = {key:?}");
    let said = check(&files);
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("server.pem cannot be read"), "{}", said.out);
    let made = comity_tls::self_made(&[], None).unwrap();
    fs::write(&certificate, &made.certificate).unwrap();
    fs::write(&key, comity_tls::self_made(&[], None).unwrap().key).unwrap();
    let said = check(&files);
    assert!(said.out.contains("is not that of the first certificate"), "{}", said.out);
    fs::write(&key, &made.key).unwrap();
    assert_eq!(check(&files).code, Some(0));
    let soon = soon_expired();
    fs::write(&certificate, soon.0).unwrap();
    fs::write(&key, soon.1).unwrap();
    let said = check(&files);
    assert_eq!(said.code, Some(0));
    assert!(said.out.contains("server.pem: warning: the certificate expires in 9 days"));
}

#[test]
fn the_log_names_a_wrong_channel_and_a_certificate_that_cannot_be_used() {
    let place = Place::new();
    file(&place, "file");
    let exports = format!("{} *(rw,insecure,xprtsec=mtls)", place.data().display());
    let exports = place.write("exports", &exports);
    let log = fs::File::create(place.path("log")).unwrap();
    let mut command = place.serve(&["--exports"]);
    let server = Running::start_with_log(command.arg(exports), log);
    let says = |part: &str| fs::read_to_string(place.path("log")).unwrap().contains(part);
    let root = Raw::connect(server.port, 0).mount(&place.data()).unwrap();
    let plain = Raw::connect(server.port, 0).denied_with(NFS, 1, &of_handle(&root));
    assert_eq!(plain, TOO_WEAK);
    let wrong = "it calls by xprtsec=none, and the exports offered to it take xprtsec=mtls only";
    wait_until("the channel is named", || says(wrong));
    assert!(!says("below 1024"));
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let expired = Identity::new(params.self_signed(&key).unwrap().der().clone(), &key);
    let plain = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    // In TLS 1.3 the client's handshake ends before the server has checked the client's
    // certificate.
    let _ = Line::try_secure(plain, &place.state().join("tls.crt"), Some(&expired));
    let advice = "the peer's certificate has expired: renew it on the client";
    wait_until("the certificate is named", || says(advice));
}

/// A certificate that expires in less than ten days, and its key, in PEM.
fn soon_expired() -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let end = std::time::SystemTime::now() + std::time::Duration::from_secs(86_400 * 10 - 3600);
    params.not_after = end.into();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}
