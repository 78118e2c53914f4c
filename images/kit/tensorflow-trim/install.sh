# What only building against TensorFlow needs goes: its headers (170 MB) and its libraries' names of local symbols (150 MB).
. /kit/lib.sh
[ "$MODE" != whole ] || exit 0
cd /usr/local/lib/python3*/dist-packages/tensorflow
rm -r include
strip --strip-unneeded libtensorflow_cc.so.2 libtensorflow_framework.so.2
