# Starts the head of this host, which has the address $1, with more arguments, and gives it the
# addresses of its exports.
export_of() {
    cat << TOML
[[export]]
path = "$EXPORT/$1"
options = ["rw", "no_root_squash", "insecure", "home=$2", "address=$3"]
clients = [{ client = "10.77.0.0/24" }]
TOML
}
export_of one 10.77.0.21 10.77.0.51 > /srv/comity.toml
export_of two 10.77.0.22 10.77.0.52 >> /srv/comity.toml
mkdir -p /srv/state
printf 0123456789abcdef > /srv/state/handle.key
chmod 600 /srv/state/handle.key
own=$1
shift
$COMITY serve --config /srv/comity.toml --state-dir /srv/state "$@" \
    --no-local-locks --cluster http://10.77.0.23:2379 --head "$own" --head-lease-seconds 3 \
    >> /var/log/comity.log 2>&1 &
echo $! > /srv/pid
$COMITY cluster addresses --device eth0 --state-dir /srv/state >> /var/log/addresses.log 2>&1 &
echo $! >> /srv/pid
