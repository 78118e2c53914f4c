# What compiles Horovod, and the packages that are given: compilers, a framework's headers.
. /kit/lib.sh
apt_install "$@" cmake make patch libc6-dev libopenmpi-dev python3-dev python3-setuptools python3-wheel
