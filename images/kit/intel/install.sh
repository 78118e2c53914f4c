# Intel MPI from Intel's wheel, whole, with its licence; libfabric is the distribution's.
. /kit/lib.sh
apt_install libfabric1
# A login that is not the container's first process does not have the image's environment.
PRELUDE='export I_MPI_ROOT="${I_MPI_ROOT:-/opt/intel-mpi}"
' install_prefix /opt/intel-mpi "impi-rt==$INTEL"
# A wheel cannot hold links, so every library is in it three or four times: 122 MB.
cd /opt/intel-mpi/lib
for name in *.so *.so.*; do
    for longer in "$name".*; do
        if [ ! -L "$name" ] && [ -f "$longer" ] && cmp -s "$name" "$longer"; then ln -sf "$longer" "$name"; fi
    done
done
cmp -s ../bin/mpiexec ../bin/mpiexec.hydra && ln -sf mpiexec.hydra ../bin/mpiexec
cmp -s ../bin/cpuinfo ../bin/impi_cpuinfo && ln -sf impi_cpuinfo ../bin/cpuinfo
ldconfig
tidy
