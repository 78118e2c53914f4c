#!/bin/sh
# What a user writes without mpiboot: IMAGE JOB COMMAND... on two workers and a launcher. It leaves nothing behind.
set -eu
image=$1 job=$2
shift 2
keys=$(mktemp -d)
trap 'docker rm -f "$job-worker-0" "$job-worker-1" "$job-launcher" >/dev/null 2>&1; docker network rm "$job" >/dev/null
      rm -rf "$keys"' EXIT

ssh-keygen -q -t ed25519 -N '' -f "$keys/id_rsa"
cp "$keys/id_rsa.pub" "$keys/authorized_keys"
chmod 0700 "$keys"
chown -R 1000 "$keys"

docker network create "$job" >/dev/null
for worker in "$job-worker-0" "$job-worker-1"; do
    docker run -d --name "$worker" --hostname "$worker" --network "$job" -v "$keys:/home/mpiuser/.ssh" \
        --entrypoint /usr/sbin/sshd "$image" -De -f /home/mpiuser/.sshd_config >/dev/null
done
docker run --name "$job-launcher" --hostname "$job-launcher" --network "$job" -v "$keys:/home/mpiuser/.ssh" \
    --entrypoint sh "$image" -c '
    job=$0
    for worker in "$job-worker-0" "$job-worker-1"; do
        until ssh "$worker" true 2>/dev/null; do sleep 0.1; done
    done
    exec mpirun --host "$job-worker-0,$job-worker-1" -n 2 "$@"' "$job" "$@"
