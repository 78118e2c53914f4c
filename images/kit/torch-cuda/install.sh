# torch for CUDA and the CUDA libraries that it is linked to, as their wheels have them, in /usr/local.
. /kit/lib.sh
# What they import of Python alone is the distribution's, as in the image for CPUs.
apt_install python3-cloudpickle python3-filelock python3-jinja2 python3-networkx python3-numpy python3-packaging \
    python3-psutil python3-sympy python3-typing-extensions python3-yaml
pip_install /usr/bin/python3 --requirement "$(dirname "$0")/requirements.txt"
tidy
