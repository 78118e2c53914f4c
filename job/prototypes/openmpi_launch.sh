#!/bin/sh
# openmpi_launch.sh COMMAND...: the launcher of a job of plain pods, in an image that need not hold mpiboot.
#
# It waits for the workers, runs COMMAND with the job's key, and ends the workers. Its exit code is the command's.
[ ! -x /usr/lib/mpiboot/entrypoint ] || exec mpiboot launch -- "$@"
assets=${0%/*}
delivered=/opt/mpiboot-ssh/bin
data_done() { [ -z "${MPIBOOT_DATA_DONE-}" ] || : >"$MPIBOOT_DATA_DONE"; }

fail() {
  echo "mpiboot: $2" >&2
  exit "$1"
}

[ -z "${MPIBOOT_DOWNLOAD_FROM-}${MPIBOOT_UPLOAD_FROM-}" ] ||
  fail 74 "this image cannot move data; generate with --dataImage and an image of mpiboot's that has boto3"
here=$(mktemp -d) || exit 73
# A mounted key may be readable by all, which ssh refuses.
(umask 077 && cat "$MPIBOOT_SSH_DIR/id_rsa" >"$here/id_rsa")
read -r type key _ <"$MPIBOOT_SSH_DIR/id_rsa.pub"
echo "* $type $key" >"$here/known_hosts"
if [ -x $delivered/ssh ]; then
  ssh=$delivered/ssh
  export MPIBOOT_SSH_DIR="$here"
else
  real=$(command -v ssh) ||
    fail 78 "this image has no ssh, and ranks are started by SSH; generate with --deliveryImage to bring it"
  cat >"$here/config" <<END
Host *
  Port 2222
  IdentityFile $here/id_rsa
  IdentitiesOnly yes
  BatchMode yes
  StrictHostKeyChecking yes
  UserKnownHostsFile $here/known_hosts
  GlobalKnownHostsFile /dev/null
  ConnectionAttempts 10
  LogLevel ERROR
END
  ssh=$here/ssh
  printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$real" "$here/config" >"$ssh"
  chmod 700 "$ssh"
fi
# Any mpirun takes the first ssh in PATH. A path as its agent would have to exist on the workers too.
PATH=${ssh%/*}:$PATH
forwarded=${LD_LIBRARY_PATH:+LD_LIBRARY_PATH}
case " $* " in *' -x '*) forwarded='' ;; esac # Open MPI refuses that beside a list
[ -z "$forwarded" ] || export OMPI_MCA_mca_base_env_list="${OMPI_MCA_mca_base_env_list-$forwarded}"

child=
trap '[ -z "$child" ] || kill -TERM $child' TERM INT
code=0
/bin/sh "$assets/wait_for_workers.sh" true &
child=$!
wait $child || code=$?
if [ $code = 0 ]; then
  "$@" <&0 &
  child=$!
  # A signal ends the first wait.
  while :; do
    wait $child
    code=$?
    kill -0 $child 2>/dev/null || break
  done
fi
data_done
while read -r host _; do
  "$ssh" -o ConnectTimeout=5 "$host" ": >/tmp/mpiboot-ended" </dev/null >/dev/null 2>&1 &
done <"$MPIBOOT_HOSTFILE"
wait
exit $code
