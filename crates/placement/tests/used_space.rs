//! Every verb that returns attributes of a placed file tells the same used space.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use comity_vfs::{Access, Attr, Create, Disk, Fs, Mode, SetAttr, XattrMode};
use common::{UNIT, World, name, root};

#[test]
fn used_space_is_the_same_in_the_replies_of_all_verbs() {
    let World { placed: fs, .. } = World::in_memory(2);
    let (cred, top) = (root(), fs.root());
    let how = Create::Unchecked(SetAttr::default());
    let file = fs.create(&cred, &top, name("f"), &how).unwrap().value.handle;
    fs.write(&cred, &file, 0, &vec![1; 3 * UNIT as usize]).unwrap();
    let used = |attr: Option<Attr<Disk>>| assert_eq!(attr.unwrap().used, 3 * UNIT);
    used(fs.getattr(&file).ok());
    used(Some(fs.lookup(&cred, &top, name("f")).unwrap().node.attr));
    used(fs.commit(&file).unwrap());
    used(fs.access(&cred, &file, Access::READ).ok().map(|(_, attr)| attr));
    let set = SetAttr { mode: Some(Mode::new(0o640)), ..SetAttr::default() };
    used(fs.setattr(&cred, &file, &set, None).unwrap().after);
    let times = SetAttr { mtime: Some(comity_vfs::SetTime::Now), ..SetAttr::default() };
    used(fs.setattr(&cred, &file, &times, None).unwrap().after);
    used(fs.link(&cred, &file, &top, name("g")).ok().map(|linked| linked.value));
    let attribute = (name("x"), Some(&b"value"[..]));
    let change = fs.setxattr(&cred, &file, attribute.0, attribute.1, XattrMode::Either);
    used(change.unwrap().after);
}

#[test]
fn a_file_with_data_never_looks_like_one_hole() {
    let World { placed: fs, stores, .. } = World::in_memory(1);
    let cred = root();
    let how = Create::Unchecked(SetAttr::default());
    let file = fs.create(&cred, &fs.root(), name("f"), &how).unwrap().value.handle;
    let set = SetAttr { size: Some(UNIT), ..SetAttr::default() };
    fs.setattr(&cred, &file, &set, None).unwrap();
    assert_eq!(stores.len(), 1);
    assert_eq!(fs.getattr(&file).unwrap().used, 512, "a client may write by a layout meanwhile");
    fs.write(&cred, &file, 0, b"data").unwrap();
    assert_eq!(fs.getattr(&file).unwrap().used, UNIT, "it is not known");
    fs.commit(&file).unwrap();
    assert!((512..UNIT).contains(&fs.getattr(&file).unwrap().used));
}
