# mpiboot, what a container does with it, and the paths that ranks have.
. /kit/lib.sh
sh /step/mpiboot.sh

mkdir -p /usr/lib/mpiboot/bin
install -m 0755 /step/entrypoint /usr/lib/mpiboot/entrypoint
if [ -f /package/mpiboot/ssh/shim.sh ]; then install -m 0755 /package/mpiboot/ssh/shim.sh /usr/lib/mpiboot/bin/ssh; fi
install -m 0755 /step/rank-env /usr/lib/mpiboot/bin/rank-env
install -m 0644 /step/nodelay.so /usr/lib/mpiboot/nodelay.so
# Where DeepSpeed looks for hosts. The launcher writes the file; workers have none.
mkdir -p /job
[ -e /job/hostfile ] || ln -sfn /tmp/mpiboot-hostfile /job/hostfile
sh /step/paths.sh
tidy
