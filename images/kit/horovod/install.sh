# Horovod from the wheel that was built beside, and the examples for this framework.
. /kit/lib.sh
pip_install /usr/bin/python3 /wheel/*.whl
compile_python /usr/bin/python3 /usr/local/lib/python3*/dist-packages/horovod
cp -r /examples.mine /examples
tidy
