# Horovod's wheel, from its source distribution and our patches, for $FRAMEWORK, into /wheel.
. /kit/lib.sh

mkdir -p /tmp/horovod /wheel
cd /tmp/horovod
# The hash is that of the one file which the patches are for.
pip /usr/bin/python3 download --no-deps --no-build-isolation --no-binary :all: --require-hashes \
    --requirement /step/source.txt --dest .
tar -xzf horovod-*.tar.gz --strip-components=1
for change in /step/patches/*.patch; do
    patch --quiet --strip=1 <"$change"
done

# Not what the building machine's CPU has: an image runs on others.
case $(uname -m) in x86_64) export HOROVOD_BUILD_ARCH_FLAGS="-mavx -mfma -mf16c" ;; esac
export HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1
export HOROVOD_WITH_MPI=1 HOROVOD_WITH_GLOO=1
unset "HOROVOD_WITHOUT_$FRAMEWORK"
export "HOROVOD_WITH_$FRAMEWORK=1"
# Without symbols: 2 MB and not 60. The policy is for Horovod's Gloo, which names a CMake that is no longer known.
export LDFLAGS=-Wl,-s CMAKE_POLICY_VERSION_MINIMUM=3.5 MAKEFLAGS="-j$(nproc)"
pip /usr/bin/python3 wheel --no-deps --no-build-isolation --wheel-dir /wheel .
