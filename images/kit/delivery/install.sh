#!/bin/sh
# install.sh TARGET: OpenSSH with its loader and libraries, moved to live in TARGET and nowhere else.
set -eu
target=$1
mkdir -p "$target/bin" "$target/lib"
cp /usr/sbin/sshd /usr/lib/openssh/sshd-session /usr/lib/openssh/sshd-auth "$target/bin/"
cp /usr/bin/ssh "$target/bin/ssh-client"
cp /bin/busybox "$target/bin/busybox"
cp /step/serve /step/ssh "$target/bin/"
chmod 755 "$target/bin/serve" "$target/bin/ssh"
gcc -O2 -Wall -Wextra -Werror -shared -fPIC -Wl,-soname,stand_in.so -o "$target/lib/stand_in.so" /step/stand_in.c

programs="$target/bin/sshd $target/bin/sshd-session $target/bin/sshd-auth $target/bin/ssh-client"
# shellcheck disable=SC2086 (a list)
ldd $programs | sed -n 's/.* => \(\/[^ ]*\).*/\1/p' | sort -u | xargs -I{} cp -L {} "$target/lib/"
loader=$(patchelf --print-interpreter "$target/bin/sshd")
cp -L "$loader" "$target/lib/loader.so"
for program in $programs; do
    # An RPATH, not a RUNPATH: it holds for libraries' libraries too, and before the image's LD_LIBRARY_PATH.
    patchelf --set-interpreter "$target/lib/loader.so" --force-rpath --set-rpath "$target/lib" \
        --add-needed stand_in.so "$program"
done
"$target/bin/ssh-client" -V
chmod -R a+rX "$target"
