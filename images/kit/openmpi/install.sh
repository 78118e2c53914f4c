# Open MPI of the distribution: 5 on Debian 13, 4.1 on Debian 12 and Ubuntu 24.04. Programs of one run on the other.
. /kit/lib.sh

# libucx0 and libopenmpi40 depend on AMD's and hwloc's plugins, which bring LLVM and X11: over 300 MB that only an AMD
# GPU needs. An empty package that claims to provide them keeps them out and meets dpkg's dependencies. OMIT="" installs
# the real ones.
if [ -n "$OMIT" ]; then omit "" "Open MPI" "$(printf '%s (= 99), ' $OMIT | sed 's/, $//')"; fi
apt_install openmpi-bin
[ -z "$OMIT" ] || rm -f /usr/lib/*/ucx/*rocm*

# Every container binds its rank 0 to the same core unless it has a cpuset of its own: 3.8 ms between two of them, and
# not 15 us. The settings are in files, because the environment and the command line override files. Open MPI 5 reads
# the second file, Open MPI 4 the first.
# (Debian's file ends without a newline.)
printf '\n%s\n' 'hwloc_base_binding_policy = none' >>/etc/openmpi/openmpi-mca-params.conf
# Open MPI 5's daemons fork from 16 threads, and forget a rank that ends before its thread has noted the pid: mpirun
# then waits for ever, on a busy machine once in ten short jobs. Without the threads there is no such gap.
for directory in /etc/openmpi /etc/prte; do
    mkdir -p "$directory"
    printf '\n%s\n' 'hwloc_default_binding_policy = none' 'odls_base_max_threads = 0' \
        >>"$directory/prte-mca-params.conf"
done
tidy
