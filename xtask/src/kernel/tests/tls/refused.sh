. /mnt/job/guest.sh
SERVER=server TOP=$EXPORT EXPORT=$EXPORT/any
HARD=$OPTIONS OPTIONS="$OPTIONS,soft,retrans=1,timeo=20,retry=0"

# Mounting with these options must fail, and soon.
refuse() {
    echo "--- $1" >> /mnt/job/refused
    if timeout 60 mount -t nfs -o "$OPTIONS$1" "$SERVER:$EXPORT" /mnt/nfs 2>> /mnt/job/refused; then
        echo "mounted with '$1'" >&2
        exit 1
    fi
    cut -d' ' -f1 /proc/uptime >> /mnt/job/refused
}

# Without tlshd there is nobody to make a handshake.
modprobe -d /run/kernel tls
refuse ",xprtsec=mtls"
handshake_as good
: > /mnt/job/begun
refuse ""
refuse ",xprtsec=none"
refuse ",xprtsec=tls"
handshake_as bare
refuse ",xprtsec=mtls"
# Any key will do for the first export, and only one for the second.
handshake_as stranger
mount -t nfs -o "$HARD,xprtsec=mtls" "$SERVER:$EXPORT" /mnt/nfs
umount /mnt/nfs
EXPORT=$TOP/own
refuse ",xprtsec=mtls"
handshake_as misled
refuse ",xprtsec=mtls"
handshake_as expired
refuse ",xprtsec=mtls"
ask "renew elsewhere"
handshake_as good
refuse ",xprtsec=mtls"
ask "renew other-server"
refuse ",xprtsec=mtls"
# A server with the right key and a host with a key can meet after all that.
cp /mnt/input/tls/other-server.crt /mnt/input/tls/good.trusted
mount -t nfs -o "$HARD,xprtsec=mtls" "$SERVER:$EXPORT" /mnt/nfs
echo done > /mnt/nfs/done
umount /mnt/nfs
