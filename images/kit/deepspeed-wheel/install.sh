# DeepSpeed's wheel, with the one part in C++ that every job on CPUs loads, into /wheel.
. /kit/lib.sh
apt_install g++ libtorch-dev ninja-build pybind11-dev python3-dev python3-setuptools python3-wheel
mkdir /wheel
export DS_ACCELERATOR=cpu DS_BUILD_OPS=0 DS_BUILD_SHM_COMM=1
pip /usr/bin/python3 install --no-compile --no-deps --only-binary :all: --ignore-installed py-cpuinfo==9.0.0
# Not a wheel of pip's cache, which may have been built without that part.
pip /usr/bin/python3 wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel deepspeed==0.19.8
