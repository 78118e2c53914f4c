#!/bin/sh
# The ssh that mpirun, mpiexec and horovodrun find first in PATH. For a worker of this job it puts the job's own
# configuration before whatever else they pass, because in OpenSSH the first value wins (horovodrun, for one, always
# passes StrictHostKeyChecking=no), and notes that the worker was contacted. For any other host it is plain ssh.
#
# `mpiboot launch` leaves next to each other: ssh_config, hosts/ with one empty file for each name of a worker, and
# contacted, a line for each time that ssh went to one of them.

real() {
    found=
    rest=$PATH:
    while [ -n "$rest" ]; do
        dir=${rest%%:*}
        rest=${rest#*:}
        # Not this file, nor another copy of it: they would call each other for ever.
        case $dir in */mpiboot*/bin) continue ;; esac
        if [ -x "${dir:-.}/ssh" ] && [ ! -d "${dir:-.}/ssh" ] && ! [ "${dir:-.}/ssh" -ef "$0" ]; then
            found=${dir:-.}/ssh
            return
        fi
    done
    echo "mpiboot: ssh is not installed here (nothing named ssh in PATH=$PATH); install an OpenSSH client" >&2
    exit 127
}

options() {
    OPTIND=1
    while getopts 1246ab:c:e:fgi:kl:m:no:p:qstvxyAB:CD:E:F:GI:J:KL:MNO:PQ:R:S:TVw:W:XY option 2>/dev/null; do
        case $option$OPTARG in p* | o[Pp]ort[\ =]*) port_given=yes ;; esac
    done
}

destination() {
    port_given=
    options "$@"
    shift $((OPTIND - 1))
    host=${1-}
    host=${host##*@}
    # ssh takes options behind the host, too: pdsh writes them there.
    if [ $# -gt 0 ]; then shift && options "$@"; fi
}

real
config=${MPIBOOT_SSH_CONFIG-}
if [ -z "$config" ]; then
    # A shell opened beside the launcher has no environment from it. The directory must be the caller's own:
    # any user can create this name in /tmp.
    home=/tmp/mpiboot-$(id -u)
    [ -O "$home" ] && [ ! -L "$home" ] && [ -O "$home/ssh_config" ] && config=$home/ssh_config
fi
if [ -z "$config" ] || [ ! -r "$config" ]; then
    # Without `mpiboot launch`: a key that only root may read lies beside one for all other users. ssh would try it
    # too, but print an error about the first one for each host.
    keys=${MPIBOOT_SSH_DIR-}
    if [ -n "$keys" ] && [ ! -r "$keys/id_rsa" ] && [ -r "$keys/any-user/id_rsa" ]; then
        exec "$found" -i "$keys/any-user/id_rsa" "$@"
    fi
    exec "$found" "$@"
fi
state=${config%/*}
destination "$@"
case $host in '' | */*) exec "$found" "$@" ;; esac
if [ ! -e "$state/hosts/$host" ]; then
    exec "$found" "$@"
fi
echo "$host" 2>/dev/null >>"$state/contacted"
if [ "$port_given" ]; then
    # DeepSpeed's --ssh_port, habits of mpirun's users: the port of the configuration is known to be right. Only the
    # command line comes before theirs.
    port=$("$found" -F "$config" -G "$host" 2>/dev/null | sed -n 's/^port //p')
    set -- ${port:+-p "$port"} "$@"
fi
# In images of ours: a login takes 40 ms less.
nodelay=/usr/lib/mpiboot/nodelay.so
if [ -e "$nodelay" ]; then export LD_PRELOAD="$nodelay${LD_PRELOAD:+ $LD_PRELOAD}"; fi
if [ -e "$state/hosts-not-verified" ]; then
    exec "$found" -F "$config" -o StrictHostKeyChecking=no "$@"
fi
if [ -e "$state/known_hosts" ]; then
    exec "$found" -F "$config" -o StrictHostKeyChecking=yes -o "UserKnownHostsFile=\"$state/known_hosts\"" "$@"
fi
# A launch without a job's keys: the user's own files decide.
exec "$found" -F "$config" "$@"
