# torch without what only tests need, 100 MB, and without what reads checkpoints from other file systems (fsspec).
. /kit/lib.sh
if [ "$MODE" != whole ]; then
    omit -more torch \
        "python3-hypothesis (= 99), python3-expecttest (= 99), python3-requests (= 99), python3-fsspec (= 99)"
fi
sh /whole/install.sh
[ "$MODE" != whole ] || exit 0
cd /usr/lib/python3/dist-packages
find . -type d -name tests -prune -exec rm -r {} +
find torch/bin -type f ! -name torch_shm_manager -delete
# What only type checkers read: 3 MB.
find torch numpy -name '*.pyi' -delete
