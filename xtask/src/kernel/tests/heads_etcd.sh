# Starts etcd on this host.
mkdir -p /var/lib/etcd
own=http://10.77.0.23
etcd --name t --data-dir /var/lib/etcd --logger zap --log-level warn \
    --listen-client-urls $own:2379 --advertise-client-urls $own:2379 \
    --listen-peer-urls $own:2380 --initial-advertise-peer-urls $own:2380 \
    --initial-cluster t=$own:2380 --heartbeat-interval 50 --election-timeout 500 \
    > /var/log/etcd.log 2>&1 &
until ETCDCTL_API=3 etcdctl --endpoints=$own:2379 endpoint health; do sleep 0.1; done 2>&1
