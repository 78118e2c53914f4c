"""Train with TensorFlow while workers come and go.

    horovodrun -np 2 --min-np 1 --max-np 3 --host-discovery-script /etc/mpi/discover_hosts.sh \\
        python tensorflow2_mnist_elastic.py

Two things make it survive. All results of the training are in the state, which is committed after every step: the
remaining ranks continue from there. And nothing is reduced or broadcast before `train`: a rank that joins later would
wait there for ranks that have passed that line long ago.
"""

import argparse
import os
import socket
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf


def pictures(step: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The pictures of one step and the digits they show: the same on every rank."""
    patterns = np.random.default_rng(1).random((10, 784))
    chance = np.random.default_rng(1000 + step)
    digits = chance.integers(10, size=count)
    return (patterns[digits] + 0.5 * chance.standard_normal((count, 784))).astype(np.float32), digits


@hvd.elastic.run
def train(state: hvd.elastic.TensorFlowKerasState, steps: int, batch: int, pause: float) -> None:
    """Runs again from the last commit, on every rank, whenever ranks have come or gone."""
    measure = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    # Inside `train`, because its graph holds the number of ranks and must be made again with each new number.
    @tf.function
    def one(seen: tf.Tensor, digits: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = measure(digits, state.model(seen, training=True))
        tape = hvd.DistributedGradientTape(tape)
        weights = state.model.trainable_variables
        state.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    place = f"on {socket.gethostname()} pid {os.getpid()}"
    print(f"rank {hvd.rank()} of {hvd.size()} {place}: from step {state.step}", flush=True)
    while state.step < steps:
        seen, digits = pictures(state.step, batch)
        mine = slice(hvd.rank(), None, hvd.size())
        loss = one(seen[mine], digits[mine])
        state.step += 1
        if hvd.rank() == 0:
            print(f"step {state.step} loss {float(loss):.6f} size {hvd.size()}", flush=True)
        time.sleep(pause)
        state.commit()


def main() -> None:
    parser = argparse.ArgumentParser(description="Train with TensorFlow while workers come and go.")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=60, help="pictures a step, of all ranks together")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds after each step: time to watch the job grow")
    options = parser.parse_args()

    hvd.init()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.keras.utils.set_random_seed(1)
    layers = [tf.keras.layers.Dense(64, activation="relu", input_shape=(784,)), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.02)
    optimizer.build(model.trainable_variables)
    state = hvd.elastic.TensorFlowKerasState(model, optimizer, step=0)
    train(state, options.steps, options.batch, options.pause)
    if hvd.rank() == 0:
        print(f"trained {options.steps} steps, at the end with {hvd.size()}", flush=True)


if __name__ == "__main__":
    main()
