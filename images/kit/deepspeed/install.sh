# DeepSpeed and Accelerate as PyPI has them, beside the distribution's torch, and pdsh, by which deepspeed starts ranks.
# With a compiler: DeepSpeed compiles what it needs of its own code when a program first asks for it.
. /kit/lib.sh
apt_install pdsh g++ make ninja-build python3-dev python3-setuptools python3-wheel
export DS_BUILD_OPS=0
pip /usr/bin/python3 install --no-compile --no-deps --ignore-installed --no-build-isolation \
    --requirement /step/requirements.txt
compile_python /usr/bin/python3 /usr/local/lib/python3*/dist-packages || true
tidy
