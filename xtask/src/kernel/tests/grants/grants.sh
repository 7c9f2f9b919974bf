. /mnt/job/guest.sh
SERVER=server

# This must fail.
refuse() {
    if "$@" > /dev/null 2>> /mnt/job/refused; then
        echo "succeeded: $*" >&2
        exit 1
    fi
}

submit() {
    setfattr -n user.comity.grant -v "$(cat "/mnt/input/$1")" /mnt/nfs
}

# Everything that is cached is dropped, so that the server is asked.
ask_the_server() {
    echo 3 > /proc/sys/vm/drop_caches
}

handshake_as bob
: > /mnt/job/begun
mount_export
# A key without a grant sees an empty export.
[ -z "$(ls /mnt/nfs)" ]
refuse ls /mnt/nfs/p
getfattr --only-values -n user.comity.whoami /mnt/nfs | grep -q 'acts by what was granted'

# Alice grants Bob a folder, from the server, with nothing but her key.
ask 'admin cd "$INPUT/tls" && "$COMITY" grant "$EXPORT/p/report" --to bob.crt --rights rwxcd \
    --expires 1d --key alice.key > ../to-bob'
submit to-bob
[ "$(ls /mnt/nfs)" = p ]
[ "$(ls /mnt/nfs/p)" = report ]
[ "$(cat /mnt/nfs/p/report/text)" = "the text" ]
refuse cat /mnt/nfs/p/private/diary
refuse cat /mnt/nfs/secret/plan
echo "from bob" > /mnt/nfs/p/report/from-bob
getfattr --only-values -n user.comity.why /mnt/nfs/p/report/text |
    grep -q 'read of x.*allowed, as user daemon'
refuse chmod 600 /mnt/nfs/p/report/text
umount /mnt/nfs

# Bob hands a part of it on to Carol, offline.
ask 'admin cd "$INPUT/tls" && "$COMITY" grant "$EXPORT/p/report" --to carol.crt --rights rx \
    --key bob.key > ../to-carol'
handshake_as carol
mount_export
refuse submit to-carol
{ cat /mnt/input/to-bob; echo; cat /mnt/input/to-carol; } > /mnt/input/chain
submit chain
[ "$(cat /mnt/nfs/p/report/text)" = "the text" ]
refuse sh -c 'echo more >> /mnt/nfs/p/report/text'
exec 9< /mnt/nfs/p/report/text

# A file that is moved out of the folder is out of reach, also for a program that has it open.
exec 8< /mnt/nfs/p/report/from-bob
ask 'local mv p/report/from-bob p/private/'
sleep 1.1
ask_the_server
refuse cat <&8
ask 'local mv p/private/from-bob p/report/'

# A copy of a file that is too long to end by itself.
ask 'local truncate -s 16G p/report/long'
dd if=/mnt/nfs/p/report/long bs=64k iflag=direct 2> /mnt/job/copied | {
    head -c 1000000 > /dev/null
    : > /mnt/job/copying
    cat > /dev/null
} &
COPY=$!
until [ -e /mnt/job/copying ]; do sleep 0.1; done

# Alice revokes what she gave: all links below end at once, and the copy ends with an error.
ask 'admin "$COMITY" revoke "$INPUT/to-bob" --admin --state-dir "$STATE"'
wait $COPY
grep -q 'error reading' /mnt/job/copied
ask 'local rm p/report/long'
ask_the_server
refuse cat <&9
refuse cat /mnt/nfs/p/report/text
[ -z "$(ls /mnt/nfs)" ]
exec 8<&- 9<&-
umount /mnt/nfs
handshake_as bob
mount_export
[ -z "$(ls /mnt/nfs)" ]
refuse submit to-bob
getfattr --only-values -n user.comity.why /mnt/nfs | grep -q 'was revoked'
umount /mnt/nfs
