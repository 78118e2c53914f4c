"""Train a small network on MNIST-shaped pictures with TensorFlow and Horovod: `mpirun -n 2 python mnist.py`.

The pictures are made here: ten patterns, one a digit, under noise. Every step takes the same pictures whatever the
number of ranks, each rank its share of them, so any number of ranks gives the same losses.
"""

import argparse

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf


def pictures(step: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The pictures of one step and the digits they show: the same on every rank."""
    patterns = np.random.default_rng(1).random((10, 784))
    chance = np.random.default_rng(1000 + step)
    digits = chance.integers(10, size=count)
    return (patterns[digits] + 0.5 * chance.standard_normal((count, 784))).astype(np.float32), digits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64, help="pictures a step, of all ranks together")
    options = parser.parse_args()

    hvd.init()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.keras.utils.set_random_seed(1)
    layers = [tf.keras.layers.Dense(64, activation="relu", input_shape=(784,)), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.02)
    measure = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train(seen: tf.Tensor, digits: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = measure(digits, model(seen, training=True))
        tape = hvd.DistributedGradientTape(tape)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return hvd.allreduce(loss)

    hvd.broadcast_variables(model.variables, root_rank=0)
    mine = slice(hvd.rank(), None, hvd.size())
    for step in range(1, options.steps + 1):
        seen, digits = pictures(step, options.batch)
        loss = train(seen[mine], digits[mine])
        if hvd.rank() == 0 and (step == 1 or step % 10 == 0):
            print(f"step {step} loss {float(loss):.6f} size {hvd.size()}", flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
