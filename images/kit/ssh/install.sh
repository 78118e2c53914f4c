# sshd on 2222, Python, a user for every uid: what all images have, whatever their MPI runtime.
. /kit/lib.sh

[ -x /usr/bin/apt-get ] || {
    echo "mpiboot: the base must be Debian 12, Ubuntu 24.04 or newer (no apt-get here)" >&2
    exit 1
}

# Without systemd-standalone-sysusers openssh-server brings all of systemd.
sysusers=systemd-standalone-sysusers
[ ! -x /usr/bin/systemd-sysusers ] || sysusers=
apt_install openssh-server openssh-client $sysusers python3 python3-click python3-paramiko ca-certificates

# No key of ours in an image: each job mounts its own. No capability on a file: 2222 needs none, and one
# that the container may not have stops sshd from starting.
rm -f /etc/ssh/ssh_host_*
mkdir -p /run/sshd /etc/ssh/sshd_config.d /etc/ssh/ssh_config.d /usr/lib/mpiboot
chmod 0755 /run/sshd

# -- users: mpiuser stays in /etc/passwd (USER mpiuser and COPY --chown need it); the module names all others --
id -u mpiuser >/dev/null 2>&1 || {
    getent group mpiuser >/dev/null || groupadd -o -g 1000 mpiuser
    # -o: on a base whose own user has this uid, mpiuser is a second name for it.
    SOURCE_DATE_EPOCH=0 useradd -o -u 1000 -g mpiuser -d /home/mpiuser -M -s /bin/bash mpiuser
}
# A locked password keeps sshd from accepting keys when PAM is off; "*" is no password either, and not locked.
usermod -p '*' mpiuser
case $(getent shadow root | cut -d: -f2) in '!'*) usermod -p '*' root ;; esac
# Any uid with gid 0 works in this home, and may look for keys that were mounted under root's.
mkdir -p /home/mpiuser/.ssh
chown -R 1000:0 /home/mpiuser
chmod 0775 /home/mpiuser
chmod 0770 /home/mpiuser/.ssh
chmod 0711 /root
sed -i 's/^passwd:[[:space:]]*/passwd: mpi /' /etc/nsswitch.conf
grep -q '^passwd: mpi ' /etc/nsswitch.conf || echo 'passwd: mpi files' >>/etc/nsswitch.conf

# `python` is what users' manifests say; Debian has only python3.
command -v python >/dev/null || ln -s python3 /usr/bin/python
. /step/config.sh
tidy
