"""lenet_pleat.cpp with MLX, whose modules exist in Python and Swift only; images are channels-last there."""
import sys
import time

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim

steps = int(sys.argv[1])
net = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                    nn.MaxPool2d(2, 2), lambda x: x.reshape(x.shape[0], -1), nn.Linear(400, 120), nn.ReLU(),
                    nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
sgd = optim.SGD(learning_rate=0.01)
images, labels = mx.random.normal((128, 28, 28, 1)), mx.random.randint(0, 10, (128,))
loss_and_grad = nn.value_and_grad(net, lambda x, y: nn.losses.cross_entropy(net(x), y, reduction="mean"))
for step in range(-20, steps):
    if step == 0:
        start = time.perf_counter()
    loss, grads = loss_and_grad(images, labels)
    sgd.update(net, grads)
    mx.eval(net.parameters(), sgd.state)
print(1000 * (time.perf_counter() - start) / steps)
