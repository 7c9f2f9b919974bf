# Sourced by the command of every guest.
set -eu

mount_export() {
    mount -t nfs -o "$OPTIONS" "$SERVER:$EXPORT" /mnt/nfs
    # The client must have as many connections as the test is about.
    connections=$(expr "$OPTIONS" : '.*nconnect=\([0-9]*\)' || echo 1)
    [ "$(grep -c xprt: /proc/self/mountstats)" -ge "$connections" ]
}

# Mounts over NFSv3 with its lock manager and status monitor. mount.nfs would start them itself,
# somewhere on a disk that can be written to.
mount_with_locks() {
    mkdir -p /run/rpcbind /run/sendsigs.omit.d /var/lib/nfs/sm /var/lib/nfs/sm.bak
    rpcbind
    rpc.statd --no-notify
    mount -t nfs -o "vers=3,proto=tcp,mountproto=tcp,hard$SECURITY" "$SERVER:$EXPORT" /mnt/nfs
}

# Has tlshd make the handshakes of this host by NAME.conf, which the test has written; the next
# call has another tlshd do so.
handshake_as() {
    if [ -e /run/tlshd.pid ]; then
        kill "$(cat /run/tlshd.pid)"
        while [ -e "/proc/$(cat /run/tlshd.pid)" ]; do sleep 0.05; done
    else
        # Those that are not there are built into the kernel.
        for module in tls gcm ctr ghash_generic seqiv ccm chacha20poly1305; do
            modprobe -q -d /run/kernel "$module" || true
        done
    fi
    LD_LIBRARY_PATH=/mnt/system/usr/lib/x86_64-linux-gnu /mnt/system/usr/sbin/tlshd \
        --stderr --config "/mnt/input/tls/$1.conf" >> /mnt/job/tlshd.log 2>&1 &
    echo $! > /run/tlshd.pid
    # It serves once a socket of generic netlink has joined a group.
    until awk '$2 == 16 && $4 != "00000000"' /proc/net/netlink | grep -q .; do sleep 0.05; done
}

# Asks the machine of the server for something (see wishes.rs), and waits until it is done.
ask() {
    echo "$1" > /mnt/job/ask.new
    mv /mnt/job/ask.new /mnt/job/ask
    until [ -e /mnt/job/told ]; do sleep 0.05; done
    cat /mnt/job/told
    rm /mnt/job/told
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
