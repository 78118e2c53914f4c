# mpiboot itself, for Debian's Python: the image's own, if it is another one, is left alone.
. /kit/lib.sh
python=/usr/bin/python3
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    {
        echo "mpiboot: the base is too old: Debian 12, Ubuntu 24.04 or newer has the Python 3.11 that mpiboot needs" >&2
        exit 1
    }

packages=/usr/lib/python3/dist-packages
rm -rf "$packages/mpiboot"
cp -r /package/mpiboot "$packages/mpiboot"
compile_python "$python" "$packages/mpiboot"
# What other tools, and the SBOM, know an installed package by.
version=$("$python" -I -c 'import mpiboot; print(mpiboot.__version__)')
mkdir -p "$packages/mpiboot-$version.dist-info"
printf '%s\n' 'Metadata-Version: 2.1' 'Name: mpiboot' "Version: $version" 'License-Expression: Apache-2.0' \
    >"$packages/mpiboot-$version.dist-info/METADATA"

# -I: a user's PYTHONPATH and home change nothing here.
printf '%s\n' '#!/usr/bin/python3 -I' 'import sys' 'from mpiboot.__main__ import main' 'sys.exit(main())' \
    >/usr/bin/mpiboot
chmod 0755 /usr/bin/mpiboot
tidy
