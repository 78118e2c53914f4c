"""Train 100 steps on pictures shaped like Fashion-MNIST with Keras and Horovod: `mpirun python fashion.py`.

The pictures are made here: ten patterns, one a kind of clothing, under noise.
"""

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

STEPS, BATCH = 100, 32


def pictures(count: int, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of 28 x 28, and what they show."""
    patterns = np.random.default_rng(1).random((10, 28, 28))
    kinds = chance.integers(10, size=count)
    return (patterns[kinds] + 0.5 * chance.standard_normal((count, 28, 28))).astype(np.float32), kinds


class Report(tf.keras.callbacks.Callback):
    """A line every ten steps."""

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        if batch == 0 or (batch + 1) % 10 == 0:
            print(f"step {batch + 1} loss {logs['loss']:.6f} size {hvd.size()}", flush=True)


def main() -> None:
    hvd.init()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([
        tf.keras.layers.Flatten(input_shape=(28, 28)),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(10),
    ])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.02)), loss)
    # Each rank has pictures of its own.
    seen, kinds = pictures(STEPS * BATCH, np.random.default_rng(1000 + hvd.rank()))
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
    if hvd.rank() == 0:
        callbacks.append(Report())
    model.fit(seen, kinds, batch_size=BATCH, epochs=1, verbose=0, callbacks=callbacks)
    print(f"rank {hvd.rank()} of {hvd.size()} trained {STEPS} steps", flush=True)


if __name__ == "__main__":
    main()
