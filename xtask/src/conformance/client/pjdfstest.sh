. "$FOLDER/common.sh"
# The functions that every Linux has, instead of its configure.
HAS="SYS_SYSMACROS_H FACCESSAT FCHMODAT FCHOWNAT FSTATAT LINKAT MKDIRAT MKFIFOAT MKNODAT OPENAT
POSIX_FALLOCATE READLINKAT RENAMEAT SYMLINKAT UNLINKAT UTIMENSAT STRUCT_STAT_ST_ATIM
STRUCT_STAT_ST_CTIM STRUCT_STAT_ST_MTIM"
cp -a "$SOURCES" "$FOLDER/pjdfstest"
cd "$FOLDER/pjdfstest"
: > config.h
flags=$(for name in $HAS; do echo "-DHAVE_$name=1"; done)
cc -O1 -w -D_GNU_SOURCE $flags -o pjdfstest pjdfstest.c

# Runs one file of tests in a directory of its own; prints the tests that fail, and whether the
# planned number of tests ran. All lines of a file are printed at once.
cat > one.sh <<'END'
file=$1
name=${file#"$FOLDER"/pjdfstest/tests/}
label=$(echo "$name" | tr / _)
tap=$FOLDER/pjdfstest/$label.tap
mkdir -m 755 "$MOUNT/$label" && cd "$MOUNT/$label"
bash "$file" > "$tap" 2>&1 < /dev/null || :
result=$(awk -v name="$name" '
    /^1\.\.[0-9]+/ { planned = substr($1, 4) }
    /^(not )?ok / { ran++ }
    /^not ok / && !/# TO[D]O/ { print "check " name ":" $3 " : FAILURE" }
    END { print "check " name " : " (ran + 0 == planned + 0 ? "PASS" : "FAILURE") }
' "$tap"; grep -v '^ok ' "$tap" | sed "s|^|$name: |")
printf '%s\n' "$result"
END
# Most of them sleep for the grain of time stamps.
find "$FOLDER/pjdfstest/tests" -name '*.t' | sort | xargs -P 4 -n 1 bash one.sh
