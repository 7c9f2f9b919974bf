. "$FOLDER/common.sh"
cat > "$FOLDER/fsx.toml" <<'END'
flen = 131072
[opsize]
max = 16384
[weights]
read = 1.0
write = 1.0
mapread = 1.0
mapwrite = 1.0
truncate = 0.2
close_open = 0.1
invalidate = 0.05
fsync = 0.02
fdatasync = 0.02
punch_hole = 0.1
copy_file_range = 0.1
sendfile = 0.1
posix_fallocate = 0.1
END

alone() {
    cd "$MOUNT"
    "$FSX" -q -S "$1" -N "$OPERATIONS" -f "$FOLDER/fsx.toml" -P "$FOLDER" "file-$1"
    cmp "$MOUNT/file-$1" "$EXPORT/file-$1"
    cmp "$SECOND/file-$1" "$EXPORT/file-$1"
}

check alone alone 1998
check ranges python3 "$FOLDER/ranges.py"
