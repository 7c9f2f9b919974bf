# Sourced by the command of every guest.
set -eu

mount_export() {
    mount -t nfs -o "$OPTIONS" "$SERVER:$EXPORT" /mnt/nfs
    # The client must have as many connections as the test is about.
    connections=$(expr "$OPTIONS" : '.*nconnect=\([0-9]*\)' || echo 1)
    [ "$(grep -c xprt: /proc/self/mountstats)" -ge "$connections" ]
}

# Unmounts and mounts again, so that the next reads go to the server.
remount_export() {
    cd /
    umount /mnt/nfs
    mount_export
}

# Runs a command, and repeats it if it fails while the server may be killed: a server killed between
# a rename and its reply has lost the reply, so the repeated call finds nothing to rename. NFSv3
# cannot prevent that (RFC 1813, 4.3). Acknowledged changes must be there all the same.
attempt() {
    left=$REPEATS
    until "$@"; do
        [ "$left" -gt 0 ] || { echo "failed: $*" >&2; return 1; }
        left=$((left - 1))
        echo "repeated: $*" >> /mnt/job/repeated
    done
}

# One line for the whole tree below a folder: names, modes, times, targets, contents.
fingerprint() {
    tar -C "$1" --sort=name --format=posix --pax-option=delete=atime,delete=ctime \
        --owner=0 --group=0 --numeric-owner -cf - . | sha256sum | cut -d' ' -f1
}
