# Patches of the Python code in Horovod's wheel. They are applied after compiling, which takes minutes.
. /kit/lib.sh
mkdir /tmp/unpacked
/usr/bin/python3 -m wheel unpack --dest /tmp/unpacked /wheel/*.whl
for change in /step/patches/*.patch; do
    patch --quiet --strip=1 --directory "$(echo /tmp/unpacked/*)" <"$change"
done
rm /wheel/*.whl
/usr/bin/python3 -m wheel pack --dest-dir /wheel /tmp/unpacked/*
rm -r /tmp/unpacked
