# nvcc of the version that torch's CUDA libraries have, and links where CMake and a linker look for its wheels' files.
. /kit/lib.sh
pip_install /usr/bin/python3 --requirement /step/requirements.txt
packages=$(echo /usr/local/lib/python3*/dist-packages/nvidia)
ln -s "$packages/cu13" /usr/local/cuda
ln -s lib /usr/local/cuda/lib64
ln -s libcudart.so.13 /usr/local/cuda/lib/libcudart.so
ln -s libnccl.so.2 "$packages/nccl/lib/libnccl.so"
ln -s "$packages/nccl" /usr/local/nccl
/usr/local/cuda/bin/nvcc --version
