# Removes what only building against TensorFlow needs: its headers (170 MB) and the names of its local symbols (150 MB).
. /kit/lib.sh
[ "$MODE" != whole ] || exit 0
cd /usr/local/lib/python3*/dist-packages/tensorflow
rm -r include
strip --strip-unneeded libtensorflow_cc.so.2 libtensorflow_framework.so.2
