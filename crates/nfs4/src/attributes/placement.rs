//! Attributes of exports whose files lie on data servers (RFC 8881, 5.12).

use comity_export::View;
use comity_proto::nfs4::{Bitmap4, ThresholdItem4, attribute as a, threshold};
use comity_vfs::Threshold;
use comity_xdr::{Counted, Encoder, Opaque};

use super::encode::{Subject, What};
use crate::layout_kind::type_of;

/// Attributes that only exports with a placement have.
const OF_PLACEMENTS: Bitmap4 =
    Bitmap4::of(&[a::FS_LAYOUT_TYPES, a::LAYOUT_BLKSIZE, a::MDSTHRESHOLD]);

/// Returns these attributes without those of placements that the export of an object does not have.
pub(super) fn without_absent(mut said: Bitmap4, subject: &Subject<'_, '_>) -> Bitmap4 {
    if said.and(&OF_PLACEMENTS).is_empty() {
        return said;
    }
    let view = view(subject);
    if view.and_then(View::stripe_unit_bytes).is_none() {
        return said.without(&OF_PLACEMENTS);
    }
    if view.and_then(View::threshold).is_none() {
        said.remove(a::MDSTHRESHOLD);
    }
    said
}

/// Appends the only layout type of the export.
pub(super) fn say_layout_types(reply: &mut Encoder, subject: &Subject<'_, '_>) {
    reply.words([1, layout_type(subject)]);
}

/// Appends the length of the stripe units of new files.
pub(super) fn say_stripe_unit(reply: &mut Encoder, subject: &Subject<'_, '_>) {
    let bytes = view(subject).and_then(View::stripe_unit_bytes);
    reply.value(&bytes.unwrap_or_default());
}

/// Appends the sizes below which the client should use the metadata server (`mdsthreshold4`; RFC
/// 8881, 5.12.4).
pub(super) fn say_threshold(reply: &mut Encoder, subject: &Subject<'_, '_>) {
    let sizes = view(subject).and_then(View::threshold).unwrap_or_default();
    let (numbers, sizes): (Vec<u32>, Vec<[u8; 8]>) = hints(&sizes).unzip();
    let (hintset, sizes) = (Bitmap4::of(&numbers), sizes.concat());
    let hintlist = Opaque(sizes.as_slice());
    let item = ThresholdItem4 { layout_type: layout_type(subject), hintset, hintlist };
    reply.value(&Counted::<_, 1>(vec![item]));
}

/// The sizes that are set, with the numbers of their bits in the set of hints.
fn hints(sizes: &Threshold) -> impl Iterator<Item = (u32, [u8; 8])> {
    let all = [
        (threshold::READ_SIZE, sizes.read_file_bytes),
        (threshold::WRITE_SIZE, sizes.write_file_bytes),
        (threshold::READ_IO_SIZE, sizes.read_io_bytes),
        (threshold::WRITE_IO_SIZE, sizes.write_io_bytes),
    ];
    all.into_iter().filter_map(|(number, bytes)| Some((number, bytes?.to_be_bytes())))
}

fn layout_type(subject: &Subject<'_, '_>) -> u32 {
    view(subject).and_then(View::layout_kind).map_or(0, type_of)
}

fn view<'s, 'a>(subject: &Subject<'s, 'a>) -> Option<&'s View<'a>> {
    match subject.what {
        What::In(view, _) => Some(view),
        What::Pseudo(_) => None,
    }
}
