# Elastic training of two ranks in one container: fewer.sh PROGRAM kept|killed. One host leaves the list while its rank
# is well, so that fewer than --min-np are left; then another comes. killed: the rank that left is killed in between.
cd /tmp || exit
printf '%s\n' 127.0.0.1:1 localhost:1 >hosts
HOROVOD_GLOO_TIMEOUT_SECONDS=30 horovodrun -np 2 --min-np 2 --max-np 2 --network-interface lo --slots-per-host 1 \
    --blacklist-cooldown-range 5 20 --host-discovery-script 'cat /tmp/hosts' python -c "$1" >out 2>&1 &
job=$!
until_seen() { # TEXT COUNT: the output has that many lines with this text
    until [ "$(grep -c "$1" out)" -ge "$2" ]; do
        kill -0 $job 2>/dev/null || { cat out; exit 1; }
        sleep 0.2
    done
}
until_seen 'trains with 2' 1
echo 127.0.0.1:1 >hosts.new && mv hosts.new hosts
until_seen 'waits' 1
if [ "$2" = killed ]; then
    for process in /proc/[0-9]*; do
        if tr '\0' '\n' 2>/dev/null <"$process/environ" | grep -qx HOROVOD_HOSTNAME=localhost; then
            kill -KILL "${process#/proc/}"
        fi
    done
fi
printf '%s\n' 127.0.0.1:1 "$(hostname):1" >hosts.new && mv hosts.new hosts
until_seen 'trains with 2' 2
echo trains again
wait $job || { cat out; exit 1; }
