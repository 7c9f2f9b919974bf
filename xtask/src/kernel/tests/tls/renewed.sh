. /mnt/job/guest.sh
SERVER=server
handshake_as host-1
mount_export
: > /mnt/job/begun
exec 3> /mnt/nfs/log
echo before >&3
ask "renew new"
# The connection that is there goes on with the old key ...
echo after >&3
sync -d /mnt/nfs/log
# ... a new one needs the new key, which the host does not trust yet ...
mkdir /run/other
other() {
    mount -t nfs -o "vers=4.1,proto=tcp,port=2049,xprtsec=mtls,$1" "$SERVER:$EXPORT" /run/other
}
if other soft,timeo=20,retrans=1,retry=0; then exit 1; fi
# ... and has it from the next handshake on.
cp /mnt/input/tls/new.crt /mnt/input/tls/host-1.trusted
other hard
[ "$(cat /run/other/log)" = "before
after" ]
# The first connection breaks, and is made anew with the new key.
ask restart
echo "after the restart" >&3
exec 3>&-
[ "$(tail -n 1 /run/other/log)" = "after the restart" ]
cd /
umount /run/other /mnt/nfs
