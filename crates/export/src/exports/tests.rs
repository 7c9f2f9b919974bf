use comity_credential::{ChannelKind, Flavor};
use comity_vfs::{Cred, Gid, Uid};
use proptest::prelude::*;

use super::table::{Argument, OPTIONS, Verdict};
use crate::diagnostic::Diagnostics;
use crate::export_spec::{ClientSpec, Escaped, ExportSpec, Fsid, Settings, Terms};
use comity_cloak::{Cloak, CloakEntry, Mask, Owned, Sign};
use comity_idmap::{IdMap, IdMapBuilder, Ids, MapDefault, Range, Rule, Squash};

use crate::{
    CephSource, Channels, Client, DirectoryDelegations, KeyUse, Location, Referral, RuleSource,
    Rules, Severity, limits,
};

fn parse(text: &[u8]) -> (Vec<ExportSpec>, Vec<crate::Diagnostic>) {
    let mut diagnostics = Diagnostics::default();
    let declarations = super::parse(&"e".into(), text, &mut diagnostics);
    (declarations, diagnostics.sorted())
}

fn fine(text: &str) -> Vec<ExportSpec> {
    let (declarations, diagnostics) = parse(text.as_bytes());
    assert_eq!(diagnostics, [], "{text}");
    declarations
}

fn found(text: &str) -> Vec<String> {
    parse(text.as_bytes()).1.iter().map(ToString::to_string).collect()
}

fn terms(options: &str) -> Terms {
    fine(&format!("/a h({options})"))[0].specs[0].terms.clone()
}

fn clients(declaration: &ExportSpec) -> Vec<String> {
    declaration.specs.iter().map(|spec| spec.client.to_string()).collect()
}

#[test]
fn the_example_of_exports_5_is_read() {
    let text = "# sample /etc/exports file\n\
        /               master(rw) trusty(rw,no_root_squash)\n\
        /projects       proj*.local.domain(rw)\n\
        /usr            *.local.domain(ro) @trusted(rw)\n\
        /home/joe       pc001(rw,all_squash,anonuid=150,anongid=100)\n\
        /pub            *(ro,insecure,all_squash)\n\
        /srv/www        -sync,rw server @trusted @external(ro)\n\
        /foo            2001:db8:9:e54::/64(rw) 192.0.2.0/24(rw)\n\
        /build          buildhost[0-9].local.domain(rw)\n";
    let read = fine(text);
    assert_eq!(read.len(), 8);
    assert_eq!(clients(&read[0]), ["master", "trusty"]);
    assert_eq!(read[0].specs[1].terms.rules.ids.squash, Squash::None);
    let joe = &read[3].specs[0].terms.rules;
    assert_eq!(joe.ids.anonymous, Cred::new(Uid::new(150), Gid::new(100)));
    assert_eq!(joe.ids.squash, Squash::All);
    let www: Vec<bool> = read[5].specs.iter().map(|o| o.terms.rules.read_only).collect();
    assert_eq!(www, [false, false, true], "own options come before the default ones");
    assert_eq!(clients(&read[6]), ["2001:db8:9:e54::/64", "192.0.2.0/24"]);
    assert_eq!(clients(&read[7]), ["buildhost[0-9].local.domain"]);
}

#[test]
fn blanks_quotes_escapes_and_comments() {
    let read = fine(
        "\"/a b\" h(rw) # comment (rw) \\\n this too\n\
         /c\\040d\\134 \\\n  h(ro)\\\n\th2 #x\n\r\n  /e#f h\n/g \"h\"(\"rw\")\n/last h",
    );
    let paths: Vec<_> = read.iter().map(|d| d.path.to_str().unwrap()).collect();
    assert_eq!(paths, ["/a b", "/c d\\", "/e#f", "/g", "/last"]);
    assert_eq!(clients(&read[1]), ["h", "h2"]);
    let place = &read[1].specs[1].place;
    assert_eq!((place.line, place.column), (5, 2));
    assert!(!read[3].specs[0].terms.rules.read_only);
    assert_eq!(
        clients(&fine("/a h(ro)\\\nh2(ro)")[0]),
        ["h", "h2"],
        "a continued line ends a word"
    );
    assert_eq!(fine("/a//b/./c/ h")[0].path.to_str(), Some("/a/b/c"));
    assert_eq!(fine("/\\377 h")[0].path.as_os_str().as_encoded_bytes(), b"/\xff");
}

/// exports(5) allows several default options, each for the rest of its line.
#[test]
fn default_options_apply_to_the_clients_after_them() {
    let read = fine("/a -rw,insecure one two(ro) -async three -ro four(rw,sync) five\n/b six");
    let rules = |at: usize| {
        let rules = &read[0].specs[at].terms.rules;
        (rules.read_only, rules.secure, rules.sync)
    };
    assert_eq!(clients(&read[0]), ["one", "two", "three", "four", "five"]);
    assert_eq!((rules(0), rules(1)), ((false, false, true), (true, false, true)));
    assert_eq!((rules(2), rules(3)), ((false, false, false), (false, false, true)));
    assert_eq!(rules(4), (true, false, false));
    assert_eq!(read[1].specs[0].terms.rules, Rules::default());
    assert!(found(&format!("/a h {} i", "-ro ".repeat(17)))[0].contains("more than 16"));
}

#[test]
fn a_blank_before_the_options_is_a_trap() {
    let (read, diagnostics) = parse(b"/a host (rw)");
    assert_eq!(clients(&read[0]), ["host", "*"]);
    assert_eq!(diagnostics[0].severity, Severity::Warning);
    assert!(diagnostics[0].to_string().starts_with("e:1:9: warning: a blank between host and its"));
    assert!(found("/a (rw)")[0].contains("options without a client are for everybody"));
    assert!(found("/a h(ro) (rw)")[0].contains("options without a client are for everybody"));
}

#[test]
fn errors_have_a_place_and_a_reason() {
    for (text, expected) in [
        ("\n /a h(rw,x)", "e:2:10: unknown option \"x\""),
        ("/a h(rw,ro)", "e:1:9: option ro contradicts rw"),
        ("/a h(anonuid=1,anonuid=2)", "e:1:16: option anonuid stands twice with different"),
        ("/a h(sec=sys,ro,sec=none)", "e:1:17: option sec stands twice: rules by flavor"),
        ("/a h(subtree_check)", "e:1:6: option subtree_check is refused: it breaks files"),
        ("/a h(sec=krb5p)", "e:1:6: option sec: krb5p is refused: Kerberos"),
        ("/a h(sec=sys:sys)", "e:1:6: option sec: flavor sys stands twice"),
        ("/a h(xprtsec=tls:tls)", "e:1:6: option xprtsec: tls stands twice"),
        ("/a h(xprtsec=ssl)", "e:1:6: option xprtsec: unknown transport security \"ssl\""),
        ("/a cert=a@b(ro)", "e:1:4: client \"cert=a@b\": expected the absolute path"),
        ("/a h(range_map_uid=1)", "e:1:6: option range_map_uid: \"1\" is no map: expected C1"),
        ("/a h(range_map_uid=a:1)", "e:1:6: option range_map_uid: \"a\" is no id"),
        ("/a h(range_map_uid=1-:1)", "e:1:6: option range_map_uid: \"\" is no id"),
        ("/a h(range_map_gid=9-1:1)", "e:1:6: option range_map_gid: ids 9-1 run backwards"),
        ("/a h(range_map_uid=1-3:5-6)", "e:1:6: option range_map_uid: 3 client ids cannot be 2"),
        ("/a h(range_map_uid=1:4294967295)", "e:1:6: option range_map_uid: 4294967295 is no id"),
        ("/a h(range_map_uid=0-4294967296:0)", "e:1:6: option range_map_uid: 4294967296 is no"),
        (
            "/a h(range_map_uid=1-9:21-29,range_map_uid=11-19:29-37)",
            "e:1:30: option range_map_uid: server ids 29 are the target of e:1:6 too",
        ),
        ("/a h(map_default=drop)", "e:1:6: option map_default: \"drop\" is none of squash"),
        ("/a h(map_default=pass,map_default=deny)", "e:1:23: option map_default stands twice"),
        ("/a h(cloak_uid=1-2)", "e:1:6: option cloak_uid: \"1-2\" is no cloak: expected"),
        ("/a h(cloak_gid=1:070)", "e:1:6: option cloak_gid: \"070\": a mask is + or -"),
        ("/a h(cloak_gid=1:+0777)", "e:1:6: option cloak_gid: \"+0777\": a mask is"),
        ("/a h(anonuid=4294967295)", "e:1:6: option anonuid: 4294967295 is no id"),
        ("/a h(anonuid=-1)", "e:1:6: option anonuid: -1 is no id"),
        ("/a h(anonuid=+1)", "e:1:6: option anonuid: \"+1\" is no number"),
        ("/a h(anonuid)", "e:1:6: option anonuid without a value"),
        ("/a h(anonuid=)", "e:1:6: option anonuid without a value"),
        ("/a h(rw=1)", "e:1:6: option rw takes no value"),
        ("/a h(fsid=4294967296)", "e:1:6: option fsid: 4294967296 is too large"),
        ("/a h(mountpoint=x)", "e:1:6: option mountpoint: path \"x\" is not absolute"),
        ("/a h(rw,)", "e:1:5: an empty option"),
        ("/a h(rw", "e:1:4: an option list without its end"),
        ("/a h(rw, ro)", "e:1:4: an option list without its end"),
        ("/a h(rw)x", "e:1:4: an option list without its end"),
        ("/a h(rw)h2(ro)", "e:1:8: a parenthesis within"),
        ("/a", "e:1:1: no client"),
        ("/a -rw", "e:1:1: no client"),
        ("/a h -rw", "e:1:6: default options with no client behind them"),
        ("a h", "e:1:1: path \"a\" is not absolute"),
        ("/a/../b h", "e:1:1: path \"/a/../b\" goes up"),
        ("/a\\000 h", "e:1:1: path \"/a\\0\" holds a zero byte"),
        ("/a \"h\n/b h", "e:1:4: a quote that does not end"),
        ("/a 10.0.0.0/99", "e:1:4: client \"10.0.0.0/99\": expected ADDRESS/PREFIX"),
    ] {
        let found = found(text);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{text}: {found:?}");
    }
    assert_eq!(found("/a h(rw,rw)"), ["e:1:9: warning: option rw stands twice"]);
}

#[test]
fn a_wrong_line_does_not_affect_others() {
    let (read, diagnostics) = parse(b"/a \"h\n/b h(x)\n/c h\nd h\n/e h");
    let paths: Vec<_> = read.iter().filter(|d| !d.specs.is_empty()).map(|d| &d.path).collect();
    assert_eq!(paths, [std::path::Path::new("/c"), std::path::Path::new("/e")]);
    assert_eq!(diagnostics.len(), 3);
}

#[test]
fn options_have_their_effects() {
    assert_eq!(terms("").rules, Rules::default());
    assert_eq!(terms("no_root_squash,all_squash").rules.ids.squash, Squash::All);
    assert_eq!(terms("all_squash,no_root_squash").rules.ids.squash, Squash::All);
    assert_eq!(terms("no_root_squash").rules.ids.squash, Squash::None);
    assert_eq!(terms("anonuid=-2").rules.ids.anonymous.uid, Uid::new(4_294_967_294));
    assert_eq!(terms("sec=none:sys").rules.flavors, [Flavor::NONE, Flavor::SYS]);
    assert!(!terms("async").rules.sync && !terms("insecure").rules.secure);
    assert!(!terms("nordirplus").rules.readdirplus);
    assert_eq!(terms("fsid=root").settings.fsid, Some(Fsid::Number(0)));
    assert_eq!(terms("fsid=7").settings.fsid, Some(Fsid::Number(7)));
    let uuid = terms("fsid=00112233-4455-6677-8899-aabbccddeeff").settings.fsid.unwrap();
    assert_eq!(uuid.to_string(), "00112233-4455-6677-8899-aabbccddeeff");
    assert!(terms("crossmnt").settings.crosses_mounts && terms("nohide").settings.is_unhidden);
    assert_eq!(terms("mp=/m").settings.mount_point, Some("/m".into()));
    let over = fine("/a -all_squash,ro,anonuid=5 h(no_all_squash,rw)");
    let rules = &over[0].specs[0].terms.rules;
    assert!(rules.ids.squash == Squash::Root && !rules.read_only);
    assert_eq!(rules.ids.anonymous.uid, Uid::new(5));
}

#[test]
fn maps_and_cloaks_are_read_in_their_order() {
    let read = terms(
        "range_map_uid=1000-1999:51000-51999,cloak_gid=7:-004,range_map_uid=5-9:60,\
                      range_map_gid=1:2,cloak_uid=0-9:+070,map_default=deny,no_client_cache",
    );
    let shown = read.rules.to_string();
    assert!(
        shown.ends_with(
            ",range_map_uid=1000-1999:51000-51999,range_map_uid=5-9:60,range_map_gid=1:2,\
             map_default=deny,cloak_gid=7:-004,cloak_uid=0-9:+070,no_client_cache"
        ),
        "{shown}"
    );
    let read = &fine("/a -range_map_uid=1:2,range_map_gid=3:4\\\n h(range_map_uid=5:6) h2")[0];
    let rule = |at: usize| read.specs[at].terms.rules.ids.users.rules()[0].to_string();
    assert_eq!((rule(0), rule(1)), ("5:6".into(), "1:2".into()), "own ranges replace the line's");
    assert_eq!(read.specs[0].terms.rules.ids.groups.rules().len(), 1);
    assert_eq!(read.specs[0].origin.users[0].to_string(), "e:2:4");
    assert_eq!(read.specs[0].origin.groups[0].to_string(), "e:1:23");
}

#[test]
fn a_rule_that_is_covered_by_another_is_reported_with_it() {
    assert_eq!(
        found("/a h(range_map_uid=1-9:21-29,range_map_uid=5-12:31-38,range_map_uid=2:99)"),
        [
            "e:1:30: warning: the range 5-12 is not met everywhere: client ids 5-9 go by e:1:6 \
             already",
            "e:1:55: warning: the range 2 is never met: client ids 2 go by e:1:6 already",
        ]
    );
    assert_eq!(
        found("/a h(cloak_uid=1-9:+000,cloak_gid=1-9:+000,cloak_uid=3-9:+007)"),
        ["e:1:44: warning: the cloak of 3-9 is never met: e:1:6 comes first"]
    );
}

#[test]
fn every_option_is_as_the_table_describes() {
    for option in OPTIONS {
        let value = match (option.name, option.argument) {
            (_, Argument::None | Argument::Possible(_)) => "",
            ("anonuid" | "anongid" | "fsid", _) => "=1",
            ("sec", _) => "=sys",
            ("range_map_uid" | "range_map_gid", _) => "=1-9:11-19",
            ("cloak_uid" | "cloak_gid", _) => "=1-9:+070",
            ("map_default", _) => "=deny",
            ("dir_delegations", _) => "=sole-writer",
            ("policy" | "ceph" | "ceph_conf", _) => "=/path",
            ("refer", _) => "=/x@b",
            ("address", _) => "=192.0.2.7",
            _ => "=none",
        };
        let text = format!("/a h({}{value})", option.name);
        let refused = matches!(option.verdict, Verdict::Refused);
        assert_eq!(!found(&text).is_empty(), refused, "{text}: {:?}", found(&text));
        assert!(!option.note.is_empty(), "{}", option.name);
    }
    for (at, option) in OPTIONS.iter().enumerate() {
        assert!(OPTIONS[..at].iter().all(|other| other.name != option.name), "{}", option.name);
    }
}

#[test]
fn an_address_that_no_host_can_have_is_refused() {
    for address in ["", "b", "0.0.0.0", "127.0.0.1", "224.0.0.1", "ff02::1"] {
        assert!(!found(&format!("/a h(address={address})")).is_empty(), "{address}");
    }
}

/// The options that people paste, and those of exports(5) of nfs-utils 2.8.
#[test]
fn no_option_of_linux_is_unknown() {
    for name in "rw ro sync async no_wdelay wdelay root_squash no_root_squash all_squash \
                 no_all_squash \
        anonuid anongid subtree_check no_subtree_check fsid crossmnt nocrossmnt nohide hide \
        insecure \
        secure insecure_locks secure_locks no_auth_nlm auth_nlm acl no_acl sec xprtsec pnfs \
        no_pnfs refer replicas security_label nordirplus mountpoint mp reexport sign_fh"
        .split_whitespace()
    {
        assert!(OPTIONS.iter().any(|option| option.name == name), "{name}");
    }
}

#[test]
fn the_documentation_shows_the_table() {
    let row = |option: &super::table::Choice| {
        let syntax = match option.argument {
            Argument::None => option.name.to_owned(),
            Argument::Possible(what) => format!("{}[={what}]", option.name),
            Argument::Needed(what) => format!("{}={what}", option.name),
        };
        let verdict = match option.verdict {
            Verdict::Honoured(_) => "honoured",
            Verdict::Refused => "refused",
        };
        format!("| `{}` | {verdict} | {} |\n", syntax.replace('|', "\\|"), option.note)
    };
    let expected: String = OPTIONS.iter().map(row).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/exports.md");
    let page = std::fs::read_to_string(path).unwrap();
    let shown = page.split("|---|---|---|\n").nth(1).unwrap_or_default();
    let shown: String = shown.split_inclusive('\n').take_while(|l| l.starts_with('|')).collect();
    assert!(shown == expected, "the table in docs/exports.md has to be:\n{expected}");
}

#[test]
fn limits_are_kept() {
    let long = format!("/a {}\n/b h", "h ".repeat(limits::LINE_BYTES_MAX / 2));
    let (read, diagnostics) = parse(long.as_bytes());
    assert!(diagnostics[0].to_string().contains("an entry over"), "{}", diagnostics[0]);
    assert_eq!(read.len(), 1);
    let quoted = format!("/a \"{}\"\n", "h".repeat(limits::LINE_BYTES_MAX + 1));
    assert!(found(&quoted)[0].contains("an entry over"));
    let many = "/a h h h h h h h h\n".repeat(limits::CLIENTS_MAX / 8 + 1);
    assert!(found(&many)[0].contains("more than 65536 clients"));
    let (_, diagnostics) = parse("(\n".repeat(limits::DIAGNOSTICS_MAX * 2).as_bytes());
    assert_eq!(diagnostics.len(), limits::DIAGNOSTICS_MAX);
}

fn client() -> impl Strategy<Value = Client> {
    let text = prop_oneof![
        Just("*".to_owned()),
        any::<std::net::IpAddr>().prop_map(|address| address.to_string()),
        (any::<std::net::Ipv4Addr>(), 0..=32_u8).prop_map(|(a, n)| format!("{a}/{n}")),
        (any::<std::net::Ipv6Addr>(), 0..=128_u8).prop_map(|(a, n)| format!("{a}/{n}")),
        "@[a-z][a-z0-9-]{0,8}",
        "[a-z][a-z0-9]{0,5}(\\.[a-z][a-z0-9]{0,5}){0,3}",
        "[a-z?*]{1,5}\\*\\.[a-z]{1,5}(\\[[a-f][g-k]\\])?",
        "cert=(\\*\\.)?[a-z]{1,5}(@/[a-z]{1,5})?",
        "ca=/[a-z]{1,5}",
    ];
    text.prop_map(|text| Client::parse(&text).unwrap())
}

/// The maps that some rules make without a conflict.
fn map() -> impl Strategy<Value = IdMap> {
    let rule = (0..3000_u32, 0..90_000_u32, 0..500_u32, any::<bool>());
    proptest::collection::vec(rule, 0..5).prop_map(|rules| {
        let mut builder = IdMapBuilder::default();
        for (first, target, more, gather) in rules {
            let wire = Range { first, last: first + more };
            let last = if gather { target } else { target + more };
            let _ = builder.add(Rule { wire, disk: Range { first: target, last } });
        }
        builder.build()
    })
}

fn cloak() -> impl Strategy<Value = Cloak> {
    let entry = (any::<(bool, bool)>(), 0..900_u32, 0..500_u32, 0..0o1000_u16);
    let entry = entry.prop_map(|((user, any), first, more, bits)| CloakEntry {
        owned: if user { Owned::ByUser } else { Owned::ByGroup },
        ids: Range { first, last: first + more },
        mask: Mask { sign: if any { Sign::Any } else { Sign::All }, bits },
    });
    proptest::collection::vec(entry, 0..4).prop_map(|entries| Cloak::new(&entries).0)
}

/// The flavors of callers that are known by their keys alone.
fn both() -> Vec<Flavor> {
    vec![Flavor::SYS, Flavor::NONE]
}

fn rules() -> impl Strategy<Value = Rules> {
    let squash = prop_oneof![Just(Squash::None), Just(Squash::Root), Just(Squash::All)];
    let flavors = proptest::sample::subsequence(vec![Flavor::SYS, Flavor::NONE], 1..=2);
    let default =
        prop_oneof![Just(MapDefault::Squash), Just(MapDefault::Pass), Just(MapDefault::Deny)];
    let ids = (0..u32::MAX, 0..u32::MAX, default, map(), map());
    let directories = proptest::sample::select(vec![
        "never",
        "sole-writer",
        "always:sole-writer:notifications=7:delay=9",
    ])
    .prop_map(|value| DirectoryDelegations::parse(value).unwrap());
    let cloaking = (cloak(), any::<bool>(), any::<bool>(), directories);
    let channels = proptest::sample::subsequence(ChannelKind::ALL.to_vec(), 1..=3);
    let channels =
        channels.prop_map(|kinds| kinds.into_iter().fold(Channels::NONE, Channels::with));
    let keys = prop_oneof![Just(KeyUse::AccountsOnly), Just(KeyUse::Preferred), Just(KeyUse::Only)];
    let flavors = (flavors, channels, keys);
    (any::<(bool, bool, bool, bool)>(), squash, flavors, ids, cloaking).prop_map(
        |((read_only, sync, secure, readdirplus), squash, flavors, ids, cloaking)| Rules {
            read_only,
            sync,
            secure,
            readdirplus,
            flavors: if flavors.2 == KeyUse::Only { both() } else { flavors.0 },
            channels: flavors.1,
            key_use: flavors.2,
            ids: Ids {
                squash,
                anonymous: Cred::new(Uid::new(ids.0), Gid::new(ids.1)),
                default: ids.2,
                users: ids.3,
                groups: ids.4,
                ..Ids::default()
            },
            cloak: cloaking.0,
            no_client_cache: cloaking.1,
            utf8_names: cloaking.2,
            dir_delegations: cloaking.3,
        },
    )
}

fn ceph() -> impl Strategy<Value = CephSource> {
    let path = || proptest::option::of("/[a-z ,()#]{1,8}x".prop_map(Into::into));
    let name = || proptest::option::of("[a-zA-Z0-9._-]{1,8}".prop_map(Into::into));
    (path(), path(), name(), name()).prop_map(|(path, configuration, id, file_system)| CephSource {
        path,
        configuration,
        id,
        file_system,
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let fsid =
        prop_oneof![any::<u32>().prop_map(Fsid::Number), any::<[u8; 16]>().prop_map(Fsid::Uuid),];
    let mount_point = prop_oneof![Just("".to_owned()), "/[ -~]{1,8}x"];
    let mount_point =
        mount_point.prop_filter("normal", |path| !path.contains("/.") && !path.contains("//"));
    let (fsid, mount_point) =
        (proptest::option::of(fsid), proptest::option::of(mount_point.prop_map(Into::into)));
    let policy = proptest::option::of("/[a-z ,()#]{1,8}x".prop_map(Into::into));
    let referral = r"/[a-z ,()#@]{1,8}x@(b|192\.0\.2\.7\+\[2001:db8::7\])(:/y@c)?";
    let refer = referral.prop_map(|value| Referral::parse(&value).unwrap());
    let refer = proptest::option::of(refer);
    let home = proptest::option::of("[a-z0-9._-]{1,8}".prop_map(Into::into));
    let address = prop_oneof![Just("192.0.2.7"), Just("2001:db8::7")];
    let address = proptest::option::of(address.prop_map(|address| address.parse().unwrap()));
    let last = (home, address, ceph());
    (fsid, any::<bool>(), any::<bool>(), mount_point, policy, refer, last).prop_map(
        |(fsid, crosses_mounts, is_unhidden, mount_point, policy, refer, (home, address, ceph))| {
            Settings {
                fsid,
                crosses_mounts,
                is_unhidden,
                mount_point,
                policy,
                refer,
                ceph,
                home,
                address,
                is_moving: false,
            }
        },
    )
}

proptest! {
    #[test]
    fn a_shown_export_is_read_again(
        name in proptest::collection::vec(1..=255_u8, 1..20),
        specs in proptest::collection::vec((client(), rules(), settings()), 1..4),
    ) {
        use std::os::unix::ffi::OsStringExt;
        let mut bytes = b"/x".to_vec();
        bytes.extend(name.into_iter().map(|byte| if byte == b'/' { b'_' } else { byte }));
        let path = std::path::PathBuf::from(std::ffi::OsString::from_vec(bytes));
        let place = Location::file("e");
        let specs: Vec<ClientSpec> = specs
            .into_iter()
            .map(|(client, rules, settings)| {
                let origin = RuleSource::new(place.clone());
                let terms = Terms { rules, settings };
                ClientSpec { place: place.clone(), client, terms, origin }
            })
            .collect();
        let shown: String = specs.iter().map(|spec| format!(" {spec}")).collect();
        let text = format!("{}{shown}\n", Escaped(&path));
        let (read, diagnostics) = parse(text.as_bytes());
        let harmless = diagnostics.iter().all(|found| found.severity == Severity::Warning);
        prop_assert!(harmless, "{diagnostics:?}");
        prop_assert_eq!(&read[0].path, &path);
        prop_assert_eq!(read[0].specs.len(), specs.len());
        for (read, spec) in read[0].specs.iter().zip(&specs) {
            prop_assert_eq!(&read.client, &spec.client);
            prop_assert_eq!(&read.terms, &spec.terms);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        parse(&bytes);
    }

    #[test]
    fn nothing_near_the_grammar_causes_a_panic(
        text in "(/a|h|\\*|@|10\\.|/8|\\(|\\)|rw|,|=|-|\"|\\\\|\\\\04|#|\n| \
                 |fsid=|sec=|:|\\[|\\])*",
    ) {
        let (_, diagnostics) = parse(text.as_bytes());
        for diagnostic in diagnostics {
            prop_assert!(diagnostic.place.line >= 1 && diagnostic.place.column >= 1);
        }
    }
}
