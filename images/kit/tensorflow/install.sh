# TensorFlow whole, with its headers, as its wheels have it, in /usr/local.
. /kit/lib.sh
pip_install /usr/bin/python3 --requirement /step/requirements.txt
compile_python /usr/bin/python3 /usr/local/lib/python3*/dist-packages || true
