# NCCL and the CUDA runtime. NVIDIA's own base images have them; elsewhere they come from NVIDIA's wheels. Neither needs
# a GPU to start: without one NCCL answers its version, and the CUDA runtime an error.
. /kit/lib.sh
has() { ldconfig -p | grep -q "$1"; }
if ! has libnccl.so.2 || ! has libcudart.so; then
    pip_install /usr/bin/python3 "nvidia-nccl-cu12==$NCCL" "nvidia-cuda-runtime-cu12==$CUDA"
    script='import nvidia.nccl as n, nvidia.cuda_runtime as c; [print(p + "/lib") for m in (n, c) for p in m.__path__]'
    /usr/bin/python3 -c "$script" >/etc/ld.so.conf.d/mpiboot-cuda.conf
    ldconfig
fi
has libnccl.so.2 && has libcudart.so
tidy
