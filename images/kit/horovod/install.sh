# Horovod from the wheel that was built beside, and the examples for this framework.
. /kit/lib.sh
pip_install /usr/bin/python3 /wheel/*.whl
compile_python /usr/bin/python3 /usr/local/lib/python3*/dist-packages/horovod
# Docker's seccomp profile forbids what Open MPI 4's fast path within a node uses (process_vm_readv): an error for each
# large message.
case $(mpirun --version) in
    *' 4.'*) echo 'btl_vader_single_copy_mechanism = none' >>/etc/openmpi/openmpi-mca-params.conf ;;
esac
cp -r /examples.mine /examples
tidy
