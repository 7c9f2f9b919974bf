. /mnt/job/guest.sh
: > /mnt/job/begun
case $NUMBER in
    1) /usr/bin/python3 /mnt/input/heads_hosts.py ;;
    *) /usr/bin/python3 /mnt/input/hands.py ;;
esac
