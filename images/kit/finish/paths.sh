# A non-interactive login has the paths of the image. sshd reads a single SetEnv; a second one is ignored.
file=/etc/ssh/sshd_config.d/00-mpiboot.conf
sed -i '/^SetEnv /d' "$file"
echo "SetEnv \"PATH=$PATH\"${LD_LIBRARY_PATH:+ \"LD_LIBRARY_PATH=$LD_LIBRARY_PATH\"}" >>"$file"
