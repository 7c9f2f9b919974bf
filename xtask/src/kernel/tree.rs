//! Trees of files that are the same on every machine: a C program, and random data.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use anyhow::Result;
use comity_vfs::SplitMix64;

/// The number of sources in each folder of the C program; each has a header.
const SOURCES: u32 = 20;

/// Number of folders of a C program of 400 sources.
pub(crate) const FOLDERS: u32 = 20;

/// Number of folders of a C program of 100 sources.
pub(super) const FOLDERS_FEW: u32 = 5;

/// The number of probes in its `configure`.
const PROBES: u32 = 60;

/// Probes of the compiler, which are used in turn: a header, a body, and whether it compiles.
const QUESTIONS: &[(&str, &str, bool)] = &[
    ("sys/stat.h", "struct stat s; return stat(\"/\", &s);", true),
    ("sys/mman.h", "return PROT_READ == 0;", true),
    ("string.h", "return (int)strlen(\"\");", true),
    ("no_such_header.h", "return 0;", false),
    ("stdint.h", "return sizeof(uint64_t) != 8;", true),
    ("dirent.h", "return opendir(\"/\") == 0;", true),
    ("errno.h", "return errno;", true),
    ("fcntl.h", "return O_CREAT == 0;", true),
    ("stdlib.h", "return no_such_function();", false),
    ("time.h", "return time(0) == 0;", true),
];

/// Writes a C program of some folders of 20 sources, with a `configure` of 60 probes and a
/// Makefile; returns what it prints when it is built and run.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn c_program(top: &Path, folders: u32) -> Result<String> {
    let mut sum = 0u32;
    let mut calls = String::new();
    let mut declarations = String::new();
    for folder in 0..folders {
        let path = top.join(format!("part{folder:02}"));
        fs::create_dir_all(&path)?;
        for source in 0..SOURCES {
            let name = format!("f{folder:02}_{source:02}");
            let factor = folder * 1000 + source * 7 + 1;
            c_source(&path, &name, factor)?;
            writeln!(calls, "    sum += {name}({source});")?;
            writeln!(declarations, "#include \"part{folder:02}/{name}.h\"")?;
            sum = sum.wrapping_add(factor.wrapping_mul(source + 3) ^ 0x5a5a);
        }
    }
    let main = format!(
        "#include <stdio.h>\n#include \"config.h\"\n{declarations}\nint main(void) {{\n    \
         unsigned sum = 0;\n{calls}    printf(\"%u %d\\n\", sum, PROBES_PASSED);\n    \
         return 0;\n}}\n"
    );
    fs::write(top.join("main.c"), main)?;
    fs::write(top.join("Makefile"), MAKEFILE)?;
    fs::write(top.join("configure"), CONFIGURE)?;
    let passed = probes(&top.join("probes"))?;
    Ok(format!("{sum} {passed}\n"))
}

fn c_source(folder: &Path, name: &str, factor: u32) -> Result<()> {
    let header = format!("unsigned {name}(unsigned x);\n");
    let source = format!(
        "#include \"{name}.h\"\n#include \"../config.h\"\n\n\
         unsigned {name}(unsigned x) {{\n    return ({factor}u * (x + 3u)) ^ 0x5a5au;\n}}\n"
    );
    fs::write(folder.join(format!("{name}.h")), header)?;
    Ok(fs::write(folder.join(format!("{name}.c")), source)?)
}

const MAKEFILE: &str = "SOURCES := $(wildcard part*/*.c) main.c\n\
    OBJECTS := $(SOURCES:.c=.o)\n\
    program: $(OBJECTS)\n\tgcc -o $@.new $(OBJECTS)\n\tmv -f $@.new $@\n\
    %.o: %.c config.h\n\tgcc -O1 -pipe -c -o $@ $<\n";

/// A `configure` like those of autoconf: a file, a compiler run and a clean-up for each probe.
const CONFIGURE: &str = "#!/bin/sh\nset -u\nrm -f config.new\npassed=0\n\
    for probe in probes/*.c; do\n    \
    rm -f conftest.c conftest.o\n    cp \"$probe\" conftest.c\n    \
    if gcc -Werror -c conftest.c -o conftest.o 2> config.log && [ -s conftest.o ]; then\n        \
    passed=$((passed + 1))\n        echo \"#define HAVE_$passed 1\" >> config.new\n    \
    else\n        echo \"/* not $probe */\" >> config.new\n    fi\ndone\n\
    echo \"#define PROBES_PASSED $passed\" >> config.new\nrm -f conftest.c conftest.o\n\
    mv -f config.new config.h\n";

/// Writes the probes; returns the number of those that succeed.
fn probes(folder: &Path) -> Result<usize> {
    fs::create_dir_all(folder)?;
    let mut passed = 0;
    for (number, (header, body, passes)) in (0..PROBES).zip(QUESTIONS.iter().cycle()) {
        let text = format!("#include <{header}>\nint main(void) {{ {body} }}\n");
        fs::write(folder.join(format!("{number:02}.c")), text)?;
        passed += usize::from(*passes);
    }
    Ok(passed)
}

/// Writes `count` files of up to 16 KiB into 40 folders, with some links and modes among them.
///
/// # Errors
/// If they cannot be written.
pub(super) fn heap(top: &Path, count: u32) -> Result<()> {
    let mut numbers = SplitMix64::new(1);
    for number in 0..count {
        let folder = top.join(format!("d{:02}/e{}", number % 40, number % 3));
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("file {number:04}"));
        let length = numbers.below(16_384) * u64::from(number % 10 != 0);
        let bytes: Vec<u8> =
            (0..length.div_ceil(8)).flat_map(|_| numbers.bits().to_le_bytes()).collect();
        fs::write(&path, &bytes)?;
        let mode = [0o644, 0o600, 0o755, 0o440][number as usize % 4];
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        if number % 25 == 0 {
            symlink(format!("file {number:04}"), folder.join(format!("link {number:04}")))?;
        }
        if number % 50 == 0 {
            fs::hard_link(&path, folder.join(format!("twin {number:04}")))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ground::{Ground, fingerprint, output};

    #[test]
    fn the_program_prints_what_is_expected() {
        let ground = Ground::new(&crate::root(), "test-tree").unwrap();
        let tree = ground.input().join("tree");
        let expected = c_program(&tree, FOLDERS).unwrap();
        let sources = output("find", &[&tree.display().to_string(), "-name", "f*.c"]).unwrap();
        assert_eq!(sources.lines().count(), 400);
        assert_eq!(expected.split_whitespace().nth(1), Some("48"), "probes that pass");
        ground.clear();
    }

    #[test]
    fn a_heap_that_differs_in_one_bit_has_another_fingerprint() {
        let ground = Ground::new(&crate::root(), "test-heap").unwrap();
        let (one, other) = (ground.input().join("one"), ground.input().join("other"));
        heap(&one, 60).unwrap();
        let copy = ["-a", &one.display().to_string(), &other.display().to_string()];
        output("cp", &copy).unwrap();
        let before = fingerprint(&other).unwrap();
        assert_eq!(fingerprint(&one).unwrap(), before);
        let file = other.join("d01/e1/file 0001");
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        let mut bytes = fs::read(&file).unwrap();
        bytes[7] ^= 1;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&file, bytes).unwrap();
        fs::File::options().append(true).open(&file).unwrap().set_modified(time).unwrap();
        assert_ne!(fingerprint(&other).unwrap(), before);
        ground.clear();
    }
}
