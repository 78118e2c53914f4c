# Compilers, and the headers of the runtime that is in the image.
. /kit/lib.sh
case $RUNTIME in
openmpi) apt_install gcc g++ gfortran make libc6-dev libopenmpi-dev ;;
mpich) apt_install gcc g++ gfortran make libc6-dev ;; # its wheel holds them already
intel)
    apt_install gcc g++ gfortran make libc6-dev
    PRELUDE='export I_MPI_ROOT="${I_MPI_ROOT:-/opt/intel-mpi}"
' install_prefix /opt/intel-mpi "impi-devel==$INTEL"
    ;;
esac
tidy
