#!/bin/sh
# Starts a Ceph of one node with one file system in the folder $1, with its monitor on the loopback
# port $2, and prints "ready" when the file system is active. Its data are in memory. When standard
# input ends, the daemons are killed and the folder is removed, however the test has ended.
set -eu
D=$1 PORT=$2 FSID=$(cat /proc/sys/kernel/random/uuid)
mkdir -p "$D/mon/a" "$D/osd/0" "$D/mds/a" "$D/run" "$D/log" "$D/crash"
cat >"$D/ceph.conf" <<C
[global]
fsid = $FSID
mon host = v2:127.0.0.1:$PORT/0
mon initial members = a
public network = 127.0.0.0/8
cluster network = 127.0.0.0/8
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
ms bind msgr1 = false
auth cluster required = none
auth service required = none
auth client required = none
auth allow insecure global id reclaim = false
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
mon allow pool size one = true
mon warn on pool no redundancy = false
osd pool default pg autoscale mode = off
osd pool default pg num = 8
osd pool default pgp num = 8
mon data avail warn = 2
mon data avail crit = 1
debug ms = 0
run dir = $D/run
log file = $D/log/\$name.log
admin socket = $D/run/\$name.\$pid.asok
crash dir = $D/crash
mon data = $D/mon/a
osd data = $D/osd/0
osd objectstore = memstore
memstore device bytes = 1073741824
mds data = $D/mds/a
mds cache memory limit = 268435456
mds tick interval = 0.1
C
K="-c $D/ceph.conf"
monmaptool --create --fsid "$FSID" --addv a "[v2:127.0.0.1:$PORT]" "$D/monmap" >"$D/log/out"
ceph-mon $K --mkfs -i a --monmap "$D/monmap" >>"$D/log/out" 2>&1
ceph-mon $K -f -i a >>"$D/log/out" 2>&1 </dev/null &
daemons=$!
trap 'kill -9 $daemons; rm -rf "$D"' EXIT
ceph $K --connect-timeout 30 mon stat >>"$D/log/out" 2>&1 </dev/null
U=$(cat /proc/sys/kernel/random/uuid)
ceph $K osd new "$U" >>"$D/log/out" 2>&1 </dev/null
ceph-osd $K -i 0 --mkfs --osd-uuid "$U" >>"$D/log/out" 2>&1 </dev/null
ceph-osd $K -f -i 0 >>"$D/log/out" 2>&1 </dev/null &
daemons="$daemons $!"
for pool in meta data; do ceph $K osd pool create $pool 8 >>"$D/log/out" 2>&1 </dev/null; done
ceph $K fs new cephfs meta data >>"$D/log/out" 2>&1 </dev/null
ceph-mds $K -f -i a >>"$D/log/out" 2>&1 </dev/null &
daemons="$daemons $!"
echo $! >"$D/mds.pid"
tries=300
until ceph $K mds stat 2>>"$D/log/out" </dev/null | grep -q up:active; do
  tries=$((tries - 1))
  [ $tries -gt 0 ] || { echo "the file system is not active"; exit 1; }
  sleep 0.2
done
# Larger files than the default of one terabyte.
ceph $K fs set cephfs max_file_size 8796093022208 >>"$D/log/out" 2>&1 </dev/null
echo ready
read -r _ || true
