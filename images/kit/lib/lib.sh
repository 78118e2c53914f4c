# Shared by the build steps: sourced, as root, on any Debian or Ubuntu base.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
# The build machine's own certificates are offered as a secret: they are used, and never become part of a layer.
if [ -s /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca SSL_CERT_FILE=/run/secrets/ca; fi

apt() {
    apt-get -c /kit/apt.conf ${SSL_CERT_FILE:+-o Acquire::https::CAInfo="$SSL_CERT_FILE"} "$@"
}

apt_install() {
    apt -q update
    apt -q -y install "$@"
    tidy
}

# omit SUFFIX PROGRAM PACKAGES: installs an empty package that claims to provide PACKAGES ("NAME (= VERSION), ..."). So
# dpkg's dependencies are met, and the real packages, which PROGRAM can do without, stay out.
omit() {
    mkdir -p /tmp/omit/DEBIAN
    cat >/tmp/omit/DEBIAN/control <<CONTROL
Package: mpiboot-omit$1
Version: 1
Architecture: all
Maintainer: mpiboot <mpiboot@localhost>
Provides: $3
Description: stands for packages that $2 can do without
 Remove it and run apt-get --fix-broken install to get the real ones.
CONTROL
    dpkg-deb --root-owner-group --build /tmp/omit /tmp/omit.deb >/dev/null
    dpkg -i /tmp/omit.deb
    rm -r /tmp/omit /tmp/omit.deb
}

# pip straight from its wheel: it works for whichever interpreter is given and leaves nothing behind.
pip() {
    python=$1
    shift
    PIP_BREAK_SYSTEM_PACKAGES=1 DEB_PYTHON_INSTALL_LAYOUT=${LAYOUT-} "$python" /kit/pip.whl/pip --quiet "$@"
}

pip_install() {
    python=$1
    shift
    pip "$python" install --no-compile --no-deps --only-binary :all: "$@"
}

# These files hold times and nothing that is needed: they are all that differs between two builds.
tidy() {
    rm -rf /var/log/dpkg.log /var/log/alternatives.log /var/log/apt /var/cache/ldconfig/aux-cache \
        /var/cache/debconf/*-old /var/lib/dpkg/*-old \
        /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /etc/subuid- /etc/subgid-
}

# Unlike a dependency on time stamps, hash-checked .pyc need no writable folder and survive any copy.
compile_python() {
    python=$1
    shift
    "$python" -m compileall -q -f --invalidation-mode unchecked-hash "$@"
}

# An MPI in a folder of its own, from a wheel. Its programs find their own folder by $0, so a link would mislead them.
install_prefix() {
    prefix=$1
    shift
    LAYOUT=deb_system pip_install /usr/bin/python3 --prefix="$prefix" "$@"
    for program in "$prefix"/bin/*; do
        stub=/usr/local/bin/${program##*/}
        printf '#!/bin/sh\n%sexec %s "$@"\n' "${PRELUDE-}" "$program" >"$stub"
        chmod 0755 "$stub"
    done
    echo "$prefix/lib" >"/etc/ld.so.conf.d/${prefix##*/}.conf"
    ldconfig
}
