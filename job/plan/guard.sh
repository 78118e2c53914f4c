#!/bin/sh
# wait_for_workers.sh COMMAND...: run COMMAND once every host of the hostfile answers SSH.
#
# For launchers whose image does not hold mpiboot. It needs a shell, sleep and ssh; with bash it is faster. The operator
# says which workers run and have a name in DNS: over the check-in, and in the file MPIBOOT_ADDRESSES. DNS is not asked
# before that, because name servers remember for up to half a minute that there was no such name.
[ -z "${MPIBOOT_SSH_CONFIG-}" ] || exec "$@" # behind `mpiboot launch`, which has waited
[ ! -x /usr/lib/mpiboot/entrypoint ] || exec mpiboot launch -- "$@" # built from one of our images
[ -n "${BASH_VERSION-}" ] || ! command -v bash >/dev/null || exec bash "$0" "$@"

FIRST_QUESTION=15 # tenths of seconds, without an operator: asked too early, DNS remembers a name as missing
SILENCE=600 # tenths of seconds without news of the operator; then DNS is asked all the same
delivered=/opt/mpiboot-ssh/bin

say() { echo "mpiboot: $*" >&2; }
fail() {
  say "$2"
  echo "mpiboot: $2" 2>/dev/null >/dev/termination-log
  exit "$1"
}
rest() { sleep "$1" 2>/dev/null || sleep 1; }
tenths() { # of seconds since the machine started
  read -r up _ </proc/uptime
  now=${up%.*}${up#*.}
  now=${now%?}
}
# Lines of the check-in's stream as lines `NAME ADDRESS REASON`, with `-` for an unknown address. See docs/checkin.md.
workers_of() {
  while read -r line; do
    case $line in *'"workers":['*) ;; *) continue ;; esac
    set -f
    IFS='{'
    for worker in $line; do
      case $worker in *'"name":"'*'"state":"'*) ;; *) continue ;; esac
      name=${worker#*'"name":"'} address=- reason=
      case $worker in
        *'"state":"running"'*'"address":"'* | *'"state":"ready"'*'"address":"'*)
          address=${worker#*'"address":"'} ;;
        *'"reason":"'*) reason=${worker#*'"reason":"'} ;;
      esac
      echo "${name%%'"'*} ${address%%'"'*} ${reason%%'"'*}"
    done
    unset IFS
  done
}

# What one check-in server says, for as long as this script waits. Without bash there is no way to ask it.
follow() {
  place=${1#http://}
  host=${place%:*} pause=0.1
  host=${host#[}
  while :; do
    if { exec 3<>"/dev/tcp/${host%]}/${place##*:}"; } 2>/dev/null; then
      printf 'GET /v1/jobs/%s/stream HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n' \
        "$MPIBOOT_JOB" "$place" "$MPIBOOT_TOKEN" >&3
      workers_of <&3
    fi
    rest $pause
    pause=1
  done
}

port_of() { # HOST, by the image's own configuration; nothing where ssh is too old to tell, or is a delivered one
  [ -n "${BASH_VERSION-}" ] && [ ! -x $delivered/ssh ] || return 0
  ssh -G "$1" 2>/dev/null | while read -r key value; do [ "$key" != port ] || echo "$value"; done
}

# One host: wait until its sshd answers and its name leads to it.
answers() { # NAME ADDRESS
  pause=0.05
  if [ -z "$port" ] || [ "$2" = - ]; then
    # A login tells all of it.
    until PATH=$delivered:$PATH ssh -o BatchMode=yes -o ConnectTimeout=10 "$1" true >/dev/null 2>&1; do
      rest $pause
      pause=1
    done
    return
  fi
  until greets "$2" "$port"; do
    rest $pause
    case $pause in
      0.05) pause=0.1 ;;
      0.1) pause=0.2 ;;
      0.2) pause=0.5 ;;
      *) pause=1 port=$(port_of "$1") ;; # a host may have a port of its own
    esac
  done
  # Root needs no name server where the kubelet writes this file for each container.
  read -r line </etc/hosts
  case $line in *Kubernetes*) { echo "$2 $1 # mpiboot" >>/etc/hosts; } 2>/dev/null ;; esac
  # Others do, and a name server receives names a moment after the operator.
  ! command -v getent >/dev/null || until getent hosts "$1" >/dev/null; do rest 0.5; done
}
greets() { # ADDRESS PORT
  { exec 3<>"/dev/tcp/$1/$2"; } 2>/dev/null || return
  read -r -t 5 greeting <&3
  exec 3<&-
  case $greeting in SSH-*) return 0 ;; esac
  pause=1 # sshd counts connections without a login against their source: no more than one a second
  return 1
}

# Begin to ask a host that is waited for, once for each address.
begin() { # NAME ADDRESS
  case $asked in *" $1=$2 "*) return ;; esac
  case " $hosts " in *" $1 "*) ;; *) return ;; esac
  asked="$asked$1=$2 "
  { answers "$1" "$2" && : >"$dir/up.$1"; } </dev/null &
  children="$children $!"
}
heed() { # the lines of standard input
  while read -r name address reason; do
    [ -n "$name" ] || continue
    received=yes
    [ "$address" = - ] || begin "$name" "${address%% *}"
    reasons=" $name $reason
$reasons"
  done
}

missing() { # the hosts that do not answer, as text
  text='' more=0
  for host in $hosts; do
    [ -e "$dir/up.$host" ] && continue
    if [ $more -ge 3 ]; then
      more=$((more + 1))
      continue
    fi
    more=$((more + 1)) why=
    case $reasons in *" $host "*)
      why=${reasons#*" $host "}
      why=${why%%
*}
      why=${why:+ ($why)} ;;
    esac
    text="$text${text:+, }${host%%.*}$why"
  done
  [ $more -le 3 ] || text="$text and $((more - 3)) more"
  echo "$text"
}
report() { # once a second at most, what has changed
  [ "$now" -ge "$due" ] || return 0
  due=$((now + 10))
  line="$ready/$wanted workers answer; waiting for $(missing)"
  [ "$line" = "$said" ] || say "$line"
  said=$line
}

leave() {
  # shellcheck disable=SC2086 (a list)
  kill $children 2>/dev/null
  rm -rf "$dir"
}

command -v "$1" >/dev/null || fail 127 "the launcher's image has no program $1"
dir=$(mktemp -d /dev/shm/mpiboot.XXXXXX 2>/dev/null || mktemp -d) || fail 73 "there is no room for temporary files"
trap 'leave; exit 143' TERM INT
read -r me </proc/sys/kernel/hostname
hosts='' wanted=0
while read -r host _; do
  case $host in '' | '#'*) continue ;; esac
  host=${host%%:*}
  # A launcher that takes ranks is in the list itself.
  case $host in "$me" | "$me".*) continue ;; esac
  hosts="$hosts $host" wanted=$((wanted + 1))
done <"${MPIBOOT_HOSTFILE:-/etc/mpi/hostfile}"

children='' asked=' ' reasons='' received='' said='' news='' before=
tenths
began=$now due=$((now + 10))
: >"$dir/news"
if [ -n "${BASH_VERSION-}" ]; then
  for url in ${MPIBOOT_CHECKIN-}; do
    follow "$url" >>"$dir/news" </dev/null &
    children="$children $!"
  done
fi
exec 4<"$dir/news"
port=$(port_of "${hosts##* }")
told=${MPIBOOT_CHECKIN-}${MPIBOOT_ADDRESSES-}
[ -z "$told" ] || FIRST_QUESTION=$SILENCE

while :; do
  heed <&4
  # What the check-in has said is newer than the file.
  if [ -z "$received" ] || [ -n "$news" ]; then
    news=$(cat "${MPIBOOT_ADDRESSES:-/dev/null}" 2>/dev/null)
    [ "$news" = "$before" ] || heed <<END
$news
END
    before=$news
  fi
  tenths
  [ -n "$received" ] || [ $((now - began)) -lt $FIRST_QUESTION ] || for host in $hosts; do begin "$host" -; done
  ready=0
  for host in $hosts; do [ ! -e "$dir/up.$host" ] || ready=$((ready + 1)); done
  [ $ready -lt $wanted ] || break
  report
  if [ -n "${MPIBOOT_INIT_TIMEOUT-}" ] && [ $((now - began)) -ge $((MPIBOOT_INIT_TIMEOUT * 10)) ]; then
    text=$(missing)
    leave
    fail 124 "$((wanted - ready)) of $wanted workers do not answer after $MPIBOOT_INIT_TIMEOUT s: $text"
  fi
  rest 0.05
done
say "$wanted of $wanted workers ready after $(((now - began) / 10)).$(((now - began) % 10)) s"
leave
wait
exec 4<&-
trap - TERM INT
# Hydra tells workers its own address then; its name, they may not find yet.
while read -r interface destination _; do
  [ "$destination" != 00000000 ] || export HYDRA_IFACE="${HYDRA_IFACE-$interface}" \
    I_MPI_HYDRA_IFACE="${I_MPI_HYDRA_IFACE-$interface}"
done </proc/net/route
unset MPIBOOT_CHECKIN MPIBOOT_TOKEN
exec "$@"
