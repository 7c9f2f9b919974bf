//! The XDR of parallel NFS: values are decoded as they were encoded, the bytes are those of the
//! RFCs, and no bytes make a decoder panic or use more memory than the record has.

use comity_proto::nfs4::callback::CbNotifyDeviceid4args;
use comity_proto::nfs4::files_layout::{FileLayout4, FileLayoutDsAddr4, util};
use comity_proto::nfs4::flexible_files::*;
use comity_proto::nfs4::layout_callback::*;
use comity_proto::nfs4::*;
use comity_xdr::{Counted, Decode, Decoder, Encode, Encoder, Malformed, Opaque};
use proptest::prelude::*;

const DEVICE: Deviceid4 = [7; 16];
const STATEID: Stateid4 = Stateid4 { seqid: 3, other: [9; 12] };
const TIME: Nfstime4 = Nfstime4 { seconds: 4, nseconds: 5 };
const LATENCY: FfIoLatency4 = FfIoLatency4 {
    ops_requested: 1,
    bytes_requested: 2,
    ops_completed: 3,
    bytes_completed: 4,
    bytes_not_delivered: 5,
    total_busy_time: TIME,
    aggregate_completion_time: TIME,
};

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.value(value);
    encoder.bytes().to_vec()
}

/// Encodes a value and decodes it again. Every shorter record and a longer one must be refused.
macro_rules! assert_round_trip {
    ($value:expr, $of:ty) => {{
        let bytes = encoded(&$value);
        assert_eq!(Decoder::whole::<$of>(&bytes), Ok($value));
        for length in 0..bytes.len() {
            assert!(Decoder::whole::<$of>(&bytes[..length]).is_err(), "{length}");
        }
        let longer = [&bytes[..], &[0; 4]].concat();
        let found = Decoder::whole::<$of>(&longer);
        assert_eq!(found, Err(Malformed::Leftover(4)));
    }};
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn address() -> Netaddr4<'static> {
    Netaddr4 { netid: Opaque(b"tcp"), addr: Opaque(b"10.0.0.1.8.1") }
}

fn content() -> LayoutContent4<'static> {
    LayoutContent4 { layout_type: layout_type::FILES, body: Opaque(b"body") }
}

fn file_layout() -> FileLayout4<'static> {
    FileLayout4 {
        deviceid: DEVICE,
        util: 65536 | util::COMMIT_THRU_MDS,
        first_stripe_index: 1,
        pattern_offset: 2,
        fh_list: Counted(vec![Opaque(b"one"), Opaque(b"four")]),
    }
}

#[test]
fn a_files_layout_has_the_bytes_of_the_rfc() {
    let mut expected = DEVICE.to_vec();
    expected.extend(words(&[65538, 1, 0, 2, 2, 3]));
    expected.extend(b"one\0");
    expected.extend(words(&[4]));
    expected.extend(b"four");
    assert_eq!(encoded(&file_layout()), expected);
    assert_eq!(file_layout().stripe_unit_bytes(), 65536);
}

#[test]
fn a_request_for_a_layout_has_the_bytes_of_the_rfc() {
    let layoutget = Layoutget4args {
        signal_layout_avail: true,
        layout_type: layout_type::FLEX_FILES,
        iomode: Layoutiomode4::Rw,
        offset: 1,
        length: u64::MAX,
        minlength: 4096,
        stateid: STATEID,
        maxcount: 8192,
    };
    let mut expected = words(&[1, 4, 2, 0, 1, u32::MAX, u32::MAX, 0, 4096, 3]);
    expected.extend([9; 12]);
    expected.extend(words(&[8192]));
    assert_eq!(encoded(&layoutget), expected);
    assert_round_trip!(layoutget, Layoutget4args);
}

#[test]
fn a_recall_of_a_file_system_has_the_bytes_of_the_rfc() {
    let recall = CbLayoutrecall4args {
        layout_type: layout_type::FILES,
        iomode: Layoutiomode4::Any,
        changed: false,
        recall: Layoutrecall4::Fsid(Fsid4 { major: 5, minor: 6 }),
    };
    assert_eq!(encoded(&recall), words(&[1, 3, 0, 2, 0, 5, 0, 6]));
    assert_round_trip!(recall, CbLayoutrecall4args<'_>);
}

#[test]
fn layouts_are_read_as_they_were_written() {
    let segment = Layout4 { offset: 0, length: 9, iomode: Layoutiomode4::Read, content: content() };
    let layout = Counted(vec![segment, segment]);
    let granted = Layoutget4resok { return_on_close: true, stateid: STATEID, layout };
    assert_round_trip!(granted, Layoutget4resok<'_>);
    assert_round_trip!(file_layout(), FileLayout4<'_>);
}

#[test]
fn commits_are_read_as_they_were_written() {
    for (last_write_offset, time_modify) in [(None, None), (Some(99), Some(TIME))] {
        let commit = Layoutcommit4args {
            offset: 1,
            length: 2,
            reclaim: true,
            stateid: STATEID,
            last_write_offset,
            time_modify,
            layoutupdate: content(),
        };
        assert_round_trip!(commit, Layoutcommit4args<'_>);
    }
    assert_round_trip!(Layoutcommit4resok { newsize: Some(5) }, Layoutcommit4resok);
}

#[test]
fn returns_are_read_as_they_were_written() {
    let file =
        LayoutreturnFile4 { offset: 1, length: 2, stateid: STATEID, body: Opaque(b"report") };
    let kinds = [Layoutreturn4::File(file), Layoutreturn4::Fsid, Layoutreturn4::All];
    for layoutreturn in kinds {
        let returned = Layoutreturn4args {
            reclaim: false,
            layout_type: layout_type::FILES,
            iomode: Layoutiomode4::Any,
            layoutreturn,
        };
        assert_round_trip!(returned, Layoutreturn4args<'_>);
    }
    assert_round_trip!(Layoutreturn4resok { stateid: Some(STATEID) }, Layoutreturn4resok);
}

#[test]
fn devices_are_read_as_they_were_written() {
    let asked = Getdeviceinfo4args {
        device_id: DEVICE,
        layout_type: layout_type::FILES,
        maxcount: 4096,
        notify_types: Bitmap4::of(&[notify_deviceid::CHANGE, notify_deviceid::DELETE]),
    };
    assert_round_trip!(asked, Getdeviceinfo4args);
    let found = Getdeviceinfo4resok { device_addr: content(), notification: Bitmap4::EMPTY };
    assert_round_trip!(found, Getdeviceinfo4resok<'_>);
    let servers = FileLayoutDsAddr4 {
        stripe_indices: Counted(vec![0, 1, 0]),
        multipath_ds_list: Counted(vec![Counted(vec![address()]), Counted(vec![address(); 2])]),
    };
    assert_round_trip!(servers, FileLayoutDsAddr4<'_>);
    let cookieverf = [8; 8];
    let list = Getdevicelist4args { layout_type: 1, maxdevices: 3, cookie: 0, cookieverf };
    assert_round_trip!(list, Getdevicelist4args);
    let deviceid_list = Counted(vec![DEVICE; 2]);
    let listed = Getdevicelist4resok { cookie: 2, cookieverf, deviceid_list, eof: true };
    assert_round_trip!(listed, Getdevicelist4resok);
}

#[test]
fn callbacks_are_read_as_they_were_written() {
    let file = LayoutrecallFile4 { fh: Opaque(b"handle"), offset: 1, length: 2, stateid: STATEID };
    for recall in [Layoutrecall4::File(file), Layoutrecall4::All] {
        let iomode = Layoutiomode4::Rw;
        let recalled = CbLayoutrecall4args { layout_type: 1, iomode, changed: true, recall };
        assert_round_trip!(recalled, CbLayoutrecall4args<'_>);
    }
    let deleted = NotifyDeviceidDelete4 { layout_type: 1, deviceid: DEVICE };
    assert_round_trip!(deleted, NotifyDeviceidDelete4);
    let changed = NotifyDeviceidChange4 { layout_type: 1, deviceid: DEVICE, immediate: true };
    assert_round_trip!(changed, NotifyDeviceidChange4);
    let deleted = encoded(&deleted);
    let mask = Bitmap4::of(&[notify_deviceid::DELETE]);
    let told = Counted(vec![Notify4 { mask, vals: Opaque(&deleted) }]);
    assert_round_trip!(told, CbNotifyDeviceid4args<'_>);
}

#[test]
fn flexible_files_are_read_as_they_were_written() {
    let server = FfDataServer4 {
        deviceid: DEVICE,
        efficiency: 1,
        stateid: STATEID,
        fh_vers: Counted(vec![Opaque(b"three"), Opaque(b"four")]),
        user: Opaque(b"1000"),
        group: Opaque(b"1001"),
    };
    let mirror = FfMirror4 { data_servers: Counted(vec![server.clone(), server]) };
    let layout = FfLayout4 {
        stripe_unit: 65536,
        mirrors: Counted(vec![mirror.clone(), mirror]),
        flags: flags::NO_LAYOUTCOMMIT | flags::WRITE_ONE_MIRROR,
        stats_collect_hint: 30,
    };
    assert_round_trip!(layout, FfLayout4<'_>);
    let version = FfDeviceVersions4 {
        version: 3,
        minorversion: 0,
        rsize: 1 << 20,
        wsize: 1 << 20,
        tightly_coupled: false,
    };
    let device =
        FfDeviceAddr4 { netaddrs: Counted(vec![address()]), versions: Counted(vec![version]) };
    assert_round_trip!(device, FfDeviceAddr4<'_>);
}

#[test]
fn reports_of_clients_are_read_as_they_were_written() {
    let error = DeviceError4 { deviceid: DEVICE, status: 5, operation: operation::WRITE };
    let errors =
        FfIoerr4 { offset: 1, length: 2, stateid: STATEID, errors: Counted(vec![error; 2]) };
    let update = FfLayoutupdate4 {
        addr: address(),
        fhandle: Opaque(b"handle"),
        read: LATENCY,
        write: FfIoLatency4::default(),
        duration: TIME,
        local: false,
    };
    let (read, write) = (IoInfo4 { count: 1, bytes: 2 }, IoInfo4::default());
    let (offset, length, stateid, deviceid) = (1, 2, STATEID, DEVICE);
    let layoutupdate = update;
    let statistics = FfIostats4 { offset, length, stateid, read, write, deviceid, layoutupdate };
    let iostats_report = Counted(vec![statistics]);
    let report = FfLayoutreturn4 { ioerr_report: Counted(vec![errors]), iostats_report };
    assert_round_trip!(report, FfLayoutreturn4<'_>);
    let layoutupdate = content();
    let told = Layoutstats4args { offset, length, stateid, read, write, deviceid, layoutupdate };
    assert_round_trip!(told, Layoutstats4args<'_>);
    let hintset = Bitmap4::of(&[threshold::READ_SIZE]);
    let item = ThresholdItem4 { layout_type: 1, hintset, hintlist: Opaque(&[0; 8]) };
    assert_round_trip!(item, ThresholdItem4<'_>);
}

#[test]
fn counts_above_their_bounds_are_refused_before_anything_is_read() {
    let huge = words(&[u32::MAX; 2]);
    let too_long = |found: Result<(), Malformed>| {
        assert!(matches!(found, Err(Malformed::TooLong { length: u32::MAX, .. })), "{found:?}");
    };
    too_long(Decoder::whole::<FileLayoutDsAddr4<'_>>(&huge).map(drop));
    too_long(Decoder::whole::<FfDeviceAddr4<'_>>(&huge).map(drop));
    too_long(Decoder::whole::<FfMirror4<'_>>(&huge).map(drop));
    too_long(Decoder::whole::<FfLayoutreturn4<'_>>(&huge).map(drop));
    too_long(Decoder::whole::<LayoutBody<'_>>(&huge).map(drop));
    let iomode = Decoder::whole::<Layoutiomode4>(&[0, 0, 0, 4]);
    assert!(matches!(iomode, Err(Malformed::Discriminant { found: 4, .. })));
}

/// Decodes the bytes as a `T`. A decoded value must be encoded to the same bytes.
fn assert_stable_or_refused<'a, T: Decode<'a> + Encode>(bytes: &'a [u8]) {
    let mut decoder = Decoder::new(bytes);
    if let Ok(value) = decoder.value::<T>() {
        let read = bytes.len() - decoder.rest().len();
        assert_eq!(encoded(&value), bytes[..read]);
    }
}

proptest! {
    /// Small numbers are frequent, so that lists and unions are reached.
    #[test]
    fn no_bytes_make_a_decoder_panic(
        numbers in proptest::collection::vec(prop_oneof![4 => 0_u32..4, 1 => any::<u32>()], 0..96),
    ) {
        let bytes = words(&numbers);
        assert_stable_or_refused::<Layoutget4args>(&bytes);
        assert_stable_or_refused::<Layoutget4resok<'_>>(&bytes);
        assert_stable_or_refused::<Layoutcommit4args<'_>>(&bytes);
        assert_stable_or_refused::<Layoutreturn4args<'_>>(&bytes);
        assert_stable_or_refused::<Getdevicelist4resok>(&bytes);
        assert_stable_or_refused::<FileLayout4<'_>>(&bytes);
        assert_stable_or_refused::<FileLayoutDsAddr4<'_>>(&bytes);
        assert_stable_or_refused::<FfLayout4<'_>>(&bytes);
        assert_stable_or_refused::<FfDeviceAddr4<'_>>(&bytes);
        assert_stable_or_refused::<FfLayoutreturn4<'_>>(&bytes);
        assert_stable_or_refused::<Layouterror4args>(&bytes);
        assert_stable_or_refused::<Layoutstats4args<'_>>(&bytes);
        assert_stable_or_refused::<FfLayoutupdate4<'_>>(&bytes);
        assert_stable_or_refused::<CbLayoutrecall4args<'_>>(&bytes);
        assert_stable_or_refused::<NotifyDeviceidChange4>(&bytes);
    }
}
