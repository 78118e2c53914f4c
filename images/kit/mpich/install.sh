# MPICH from its wheel: newer than the distribution's, and without the X11 and LLVM that one brings.
. /kit/lib.sh
install_prefix /opt/mpich "mpich==$MPICH"
tidy
