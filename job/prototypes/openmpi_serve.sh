#!/bin/sh
# openmpi_serve.sh: a worker of a job of plain pods, in an image that need not hold mpiboot. It runs sshd until the
# launcher has done its work or is gone.
[ ! -x /usr/lib/mpiboot/entrypoint ] || exec mpiboot worker
umask 022
ended=/tmp/mpiboot-ended
finish() { # CODE
  [ -z "${MPIBOOT_DATA_DONE-}" ] || : >"$MPIBOOT_DATA_DONE"
  kill "$server" 2>/dev/null
  exit "$1"
}
fail() {
  echo "mpiboot: $2" >&2
  exit "$1"
}

[ -z "${MPIBOOT_DOWNLOAD_FROM-}${MPIBOOT_UPLOAD_FROM-}" ] ||
  fail 74 "this image cannot move data; generate with --dataImage and an image of mpiboot's that has boto3"
if [ -x /opt/mpiboot-ssh/bin/serve ]; then
  /opt/mpiboot-ssh/bin/serve "$MPIBOOT_SSH_DIR" &
else
  PATH=$PATH:/usr/sbin:/sbin
  sshd=$(command -v sshd) ||
    fail 78 "this image has no sshd, and ranks are started by SSH; generate with --deliveryImage to bring it"
  here=$(mktemp -d) && chmod 755 "$here" || exit 73
  # Mounted keys may be readable by all, which sshd refuses.
  (umask 077 && cat "$MPIBOOT_SSH_DIR/id_rsa" >"$here/id_rsa")
  cat "$MPIBOOT_SSH_DIR/authorized_keys" >"$here/authorized_keys"
  # Ranks have the container's environment.
  (unset HOME PWD OLDPWD HOSTNAME SHLVL; export -p) >"$here/environment"
  # Root's sshd insists on this directory, and only root can make it.
  mkdir -p /run/sshd /var/run/sshd 2>/dev/null
  cat >"$here/sshd_config" <<END
Port 2222
HostKey $here/id_rsa
AuthorizedKeysFile $here/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
PidFile none
MaxStartups 1000:30:2000
MaxSessions 1000
ForceCommand . $here/environment; exec /bin/sh -c "\${SSH_ORIGINAL_COMMAND:-exec /bin/sh}"
END
  # Words that only some releases know, and that others end at.
  for word in 'PerSourcePenalties no' 'UsePrivilegeSeparation no'; do
    cp "$here/sshd_config" "$here/more"
    echo "$word" >>"$here/more"
    [ "$word" = 'UsePrivilegeSeparation no' ] && [ "$(id -u)" = 0 ] && continue
    "$sshd" -t -f "$here/more" >/dev/null 2>&1 && cp "$here/more" "$here/sshd_config"
  done
  "$sshd" -De -f "$here/sshd_config" &
fi
server=$!
trap 'finish 143' TERM INT

seconds=0 seen='' gone=0
while kill -0 "$server" 2>/dev/null; do
  [ ! -e $ended ] || finish 0
  sleep 1
  seconds=$((seconds + 1))
  # A question that comes too early is answered wrongly for half a minute.
  [ $((seconds % 5)) = 0 ] && [ $seconds -ge 10 ] || continue
  if getent hosts "$MPIBOOT_LAUNCHER" >/dev/null; then
    seen=yes gone=0
  elif [ -n "$seen" ]; then
    # A name server that fails counts neither way.
    ! getent hosts kubernetes.default.svc >/dev/null || gone=$((gone + 5))
    [ $gone -lt 30 ] || finish 0
  elif [ $seconds -ge "$MPIBOOT_INIT_TIMEOUT" ] && [ $seconds -ge 45 ]; then
    echo "mpiboot: the launcher $MPIBOOT_LAUNCHER did not come within $seconds s" >&2
    finish 124
  fi
done
wait "$server"
finish $?
