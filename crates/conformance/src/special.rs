use comity_vfs::{Device, FileType, Special, Status};

use super::Needs;
use super::failure::{Check, fails, same};
use super::fixture::{Fixture, alice, mode, name};

super::topic! { "special"
    Needs::NONE => a_fifo, a_socket, it_has_no_data, mknod_refuses_a_name_that_is_there;
    Needs::DEVICES => devices_keep_their_numbers, numbers_that_no_device_has_are_refused;
    Needs::IDENTITIES.and(Needs::DEVICES) => devices_need_privilege;
}

fn a_fifo(f: &Fixture<'_>) -> Check {
    made(f, Special::Fifo, FileType::Fifo)
}

fn a_socket(f: &Fixture<'_>) -> Check {
    made(f, Special::Socket, FileType::Socket)
}

fn made(f: &Fixture<'_>, special: Special, file_type: FileType) -> Check {
    let node = f.fs.mknod(&f.owner, &f.top, name("a")?, special, &mode(0o640))?.value;
    same((node.attr.file_type, node.attr.mode.bits()), (file_type, 0o640))?;
    same((node.attr.size, node.attr.links), (0, 1))?;
    same(f.lookup("a")?.handle, node.handle)?;
    f.rename("a", "b")?;
    f.remove("b")?;
    fails(f.attr(&node.handle), &[Status::Stale])
}

fn it_has_no_data(f: &Fixture<'_>) -> Check {
    let node = f.fs.mknod(&f.owner, &f.top, name("a")?, Special::Fifo, &mode(0o640))?.value;
    fails(f.read(&node.handle, 0, 4), &[Status::Inval])?;
    fails(f.fs.write(&f.owner, &node.handle, 0, b"x"), &[Status::Inval])
}

fn mknod_refuses_a_name_that_is_there(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    let made = f.fs.mknod(&f.owner, &f.top, name("a")?, Special::Fifo, &mode(0o640));
    fails(made, &[Status::Exist])
}

fn devices_keep_their_numbers(f: &Fixture<'_>) -> Check {
    let device = Device { major: 259, minor: 0x1_2345 };
    let kinds = [
        ("b", Special::Block(device), FileType::Block),
        ("c", Special::Character(device), FileType::Character),
    ];
    for (at, special, file_type) in kinds {
        let node = f.fs.mknod(&f.owner, &f.top, name(at)?, special, &mode(0o600))?.value;
        same((node.attr.file_type, node.attr.device), (file_type, device))?;
        same(f.attr(&node.handle)?.device, device)?;
    }
    Ok(())
}

/// Device numbers that were truncated would be those of another device.
fn numbers_that_no_device_has_are_refused(f: &Fixture<'_>) -> Check {
    for (major, minor) in [(1 << 12, 3), (1, 1 << 20), (u32::MAX, 3), (1, u32::MAX)] {
        let device = Device { major, minor };
        for special in [Special::Block(device), Special::Character(device)] {
            let made = f.fs.mknod(&f.owner, &f.top, name("a")?, special, &mode(0o600));
            fails(made, &[Status::Inval])?;
        }
    }
    fails(f.lookup("a"), &[Status::NoEnt])
}

fn devices_need_privilege(f: &Fixture<'_>) -> Check {
    f.set(&f.top, &mode(0o777))?;
    let special = Special::Character(Device { major: 1, minor: 3 });
    let made = f.fs.mknod(&alice(), &f.top, name("a")?, special, &mode(0o666));
    fails(made, &[Status::Perm, Status::Acces])?;
    f.fs.mknod(&alice(), &f.top, name("b")?, Special::Fifo, &mode(0o666))?;
    Ok(())
}
