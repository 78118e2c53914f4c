# DeepSpeed and Accelerate as PyPI has them, beside the distribution's torch, and pdsh, by which deepspeed starts ranks.
. /kit/lib.sh
apt_install pdsh
pip_install /usr/bin/python3 --ignore-installed --requirement /step/requirements.txt /wheel/*.whl
compile_python /usr/bin/python3 /usr/local/lib/python3*/dist-packages || true
# The distribution's torch has no libuv, and torchrun wants it all the same: only a part of torch reads USE_LIBUV.
(
    cd /usr/lib/python3/dist-packages/torch/distributed
    set -- elastic/rendezvous/static_tcp_rendezvous.py elastic/rendezvous/dynamic_rendezvous.py \
        elastic/rendezvous/c10d_rendezvous_backend.py rendezvous.py
    sed -i -e '/ TCPStore(\|\.TCPStore(/,/^ *)/ { /use_libuv/d; s/multi_tenant=True,/& use_libuv=False,/ }' \
        -e 's/is_master=False,/& use_libuv=False,/' "$@"
    compile_python /usr/bin/python3 "$@"
)
cp -r /examples.mine /examples
tidy
