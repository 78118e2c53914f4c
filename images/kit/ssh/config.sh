# The project's own SSH configuration, by drop-ins that the distribution's files include first: the first value wins.
newer() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }
ssh_version=$(ssh -V 2>&1 | sed 's/^OpenSSH_\([0-9.]*\).*/\1/')

cp /step/sshd.conf /etc/ssh/sshd_config.d/00-mpiboot.conf
cp /step/ssh.conf /etc/ssh/ssh_config.d/00-mpiboot.conf
# Banner probes would get the launcher locked out for a while. Older ones do not know the word and would not start.
if newer 9.8 "$ssh_version"; then echo 'PerSourcePenalties no' >>/etc/ssh/sshd_config.d/00-mpiboot.conf; fi
# The default exchange of these versions costs 107 ms of CPU a host, this one 15.
if ! newer 9.9 "$ssh_version"; then
    for file in /etc/ssh/sshd_config.d/00-mpiboot.conf /etc/ssh/ssh_config.d/00-mpiboot.conf; do
        sed -i 's/^\( *\)Port 2222$/&\n\1KexAlgorithms ^curve25519-sha256/' "$file"
    done
fi
grep -qs '^Include /etc/ssh/sshd_config.d/' /etc/ssh/sshd_config ||
    sed -i '1i Include /etc/ssh/sshd_config.d/*.conf' /etc/ssh/sshd_config
# The path that other makers' manifests name: /usr/sbin/sshd -De -f /home/mpiuser/.sshd_config
printf '%s\n' '# The same server as without -f.' 'Include /etc/ssh/sshd_config' >/home/mpiuser/.sshd_config
chown 1000:0 /home/mpiuser/.sshd_config

libc=$(ldconfig -p | sed -n 's/.*libc\.so\.6 (.*x86-64.*=> //p; s/.*libc\.so\.6 (.*AArch64.*=> //p' | head -n 1)
cp /kit/libnss_mpi.so.2 "$(dirname "$libc")/"
