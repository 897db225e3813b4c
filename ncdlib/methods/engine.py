"""Train K networks at once: the engine behind Baseline, PBN and TabularNCD.

A search trains hundreds of small networks of nearly the same shape on the same rows. One at a time, most of the time
goes into the overhead of each operation; stacked on a leading dimension, the K networks share it. Three conventions
make that simple and fast:

- activations are shaped (K, features, rows): the long dimension is last, where the kernels are fast;
- all parameters of network k are row k of one matrix, so AdamW is one fused call for each network, with its own
  learning rate;
- a network whose latent space (or number of clusters) is smaller than the largest of its stack is padded with weights
  that start at zero. Zero rows of the latent meet zero columns of the next layer, so both have zero gradients and stay
  zero: padding needs no mask.

Every random number of network k comes from its own generator: which others are in the stack makes no difference to it,
except for the order in which products are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor
from tqdm import tqdm

BATCH_NORM_EPS = 1e-5  # torch.nn.BatchNorm1d's defaults
BATCH_NORM_MOMENTUM = 0.1
ADAM_BETAS = (0.9, 0.999)  # torch.optim.AdamW's defaults
ADAM_EPS = 1e-8
WEIGHT_DECAY = 0.01


@dataclass(frozen=True)
class Mlp:
    """A chain of linear layers with ReLU, batch normalisation and dropout between them (Section 7.1).

    Attributes
    ----------
    name : str
        Prefix of the parameters' names.
    widths : list of (K,) int arrays
        Units of the input and of each layer, for every network of the stack.
    """

    name: str
    widths: list[NDArray[np.int64]]

    @property
    def n_layers(self) -> int:
        return len(self.widths) - 1

    def layer(self, i: int) -> str:
        return f"{self.name}.{i}"


def hidden_widths(n_features: int) -> tuple[int, int]:
    """Return the units of the encoder's two hidden layers: 3/4 and 1/2 of the number of features."""
    # NOTE[DIFF] No fewer than 8, which the paper's data sets (16 features and more) never are: in a layer of one or two
    # units ReLU may switch all of them off, and every row becomes the same.
    return max(8, 3 * n_features // 4), max(8, n_features // 2)


class Stack:
    """The parameters of K networks, their batch-norm statistics and their AdamW state."""

    def __init__(
        self,
        mlps: Sequence[Mlp],
        seeds: Sequence[int],
        device: str | torch.device = "cpu",
        dtype: torch.dtype = torch.float32,
    ):
        self.n_models = K = len(seeds)
        self.device = torch.device(device)
        self.mlps = {mlp.name: mlp for mlp in mlps}
        self.rngs = [np.random.Generator(np.random.SFC64(seed)) for seed in seeds]

        shapes: dict[str, tuple[int, int]] = {}
        norms: dict[str, int] = {}  # layers followed by batch normalisation, and their units
        for mlp in mlps:
            for i in range(mlp.n_layers):
                n_in, n_out = (int(mlp.widths[j].max()) for j in (i, i + 1))
                shapes[f"{mlp.layer(i)}.weight"] = (n_out, n_in)
                shapes[f"{mlp.layer(i)}.bias"] = (n_out, 1)
                if i < mlp.n_layers - 1:
                    shapes[f"{mlp.layer(i)}.scale"] = shapes[f"{mlp.layer(i)}.shift"] = (n_out, 1)
                    norms[mlp.layer(i)] = n_out

        n_parameters = sum(rows * columns for rows, columns in shapes.values())
        self.values = torch.zeros(K, n_parameters, device=self.device, dtype=dtype)
        self.gradients = torch.zeros_like(self.values)
        self.reset_optimizer()
        self.parameters: dict[str, Tensor] = {}  # name -> (K, out, in), a view of `values`
        self.gradient_of: dict[str, Tensor] = {}  # the same views of `gradients`
        start = 0
        for name, shape in shapes.items():
            columns = slice(start, start := start + shape[0] * shape[1])
            self.parameters[name] = self.values[:, columns].view(K, *shape).detach().requires_grad_()
            self.gradient_of[name] = self.gradients[:, columns].view(K, *shape)
        self.parameters_of = {
            mlp.name: [p for name, p in self.parameters.items() if name.startswith(f"{mlp.name}.")] for mlp in mlps
        }
        like = {"device": self.device, "dtype": dtype}
        self.running_mean = {layer: torch.zeros(K, units, 1, **like) for layer, units in norms.items()}
        self.running_var = {layer: torch.ones(K, units, 1, **like) for layer, units in norms.items()}
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Draw weights and biases in +-1/sqrt(inputs), as torch.nn.Linear; start batch norm as the identity."""
        for mlp in self.mlps.values():
            for i in range(mlp.n_layers):
                for k, rng in enumerate(self.rngs):
                    n_in, n_out = int(mlp.widths[i][k]), int(mlp.widths[i + 1][k])
                    draw = rng.uniform(-1, 1, size=(n_out, n_in + 1)) / np.sqrt(n_in)
                    draw = torch.from_numpy(draw)
                    self.parameters[f"{mlp.layer(i)}.weight"][k, :n_out, :n_in] = draw[:, 1:]
                    self.parameters[f"{mlp.layer(i)}.bias"][k, :n_out] = draw[:, :1]
                if i < mlp.n_layers - 1:
                    self.parameters[f"{mlp.layer(i)}.scale"].fill_(1.0)

    def reset_optimizer(self) -> None:
        self.first_moments = torch.zeros_like(self.values)
        self.second_moments = torch.zeros_like(self.values)
        self.step_count = torch.zeros((), device=self.device)
        buffers = (self.values, self.gradients, self.first_moments, self.second_moments)
        self.adamw_views = [[[buffer[k]] for buffer in buffers] for k in range(self.n_models)]

    def draw_noise(self, n_values: int, networks: Sequence[int] | None = None) -> Tensor:
        """Draw (K, n_values) uniform 16-bit integers, each network's from its own generator.

        If `networks` are given, only these draw; the rows of the others may hold anything.
        """
        words = -(-n_values // 4)  # four 16-bit numbers in a 64-bit word
        noise = np.empty((self.n_models, words), dtype=np.uint64)
        for k in range(self.n_models) if networks is None else networks:
            noise[k] = self.rngs[k].bit_generator.random_raw(words)
        return torch.from_numpy(noise.view(np.int16))[:, :n_values].to(self.device)

    def adamw_step(self, loss: Tensor, lr: Sequence[float]) -> None:
        """Take one AdamW step with all networks; `loss` is the sum of their losses."""
        gradients = torch.autograd.grad(loss, list(self.parameters.values()), materialize_grads=True)
        for view, gradient in zip(self.gradient_of.values(), gradients, strict=True):
            view.copy_(gradient)
        self.step_count += 1
        # What torch.optim.AdamW(fused=True) calls, without its bookkeeping, which takes longer than a small network.
        for views, rate in zip(self.adamw_views, lr, strict=True):
            torch._fused_adamw_(
                *views,
                [],
                [self.step_count],
                lr=rate,
                beta1=ADAM_BETAS[0],
                beta2=ADAM_BETAS[1],
                weight_decay=WEIGHT_DECAY,
                eps=ADAM_EPS,
                amsgrad=False,
                maximize=False,
            )

    def extract(self, k: int) -> dict[str, NDArray[np.float32]]:
        """Return network k alone, without padding, as NumPy arrays."""
        weights: dict[str, NDArray[np.float32]] = {}
        for mlp in self.mlps.values():
            for i in range(mlp.n_layers):
                n_in, n_out = int(mlp.widths[i][k]), int(mlp.widths[i + 1][k])
                layer = mlp.layer(i)
                for kind in ("weight", "bias", "scale", "shift"):
                    if f"{layer}.{kind}" in self.parameters:
                        value = self.parameters[f"{layer}.{kind}"][k].detach().cpu().numpy()
                        weights[f"{layer}.{kind}"] = (
                            value[:n_out, :n_in].copy() if kind == "weight" else value[:n_out, 0].copy()
                        )
                if layer in self.running_mean:
                    weights[f"{layer}.mean"] = self.running_mean[layer][k, :n_out, 0].cpu().numpy().copy()
                    weights[f"{layer}.var"] = self.running_var[layer][k, :n_out, 0].cpu().numpy().copy()
        return weights


def _by_layer(tensors: Sequence) -> list[Sequence]:
    """Group four tensors per layer; the last layer may have fewer."""
    return [tensors[i : i + 4] for i in range(0, len(tensors), 4)]


class Chain(torch.autograd.Function):
    """Linear layers with ReLU, batch normalisation by the batch's own statistics and dropout between them, fused.

    From x, (inputs, rows) for all networks or (K, inputs, rows), to (K, outputs, rows). What lies between two layers is
    the chain's own, so it is changed in place, back and forth; autograd sees one operation.
    """

    @staticmethod
    def forward(ctx, x: Tensor, masks: Iterator[Tensor | None], running: Iterator[tuple[Tensor, Tensor]], *parameters):
        """`parameters`: weight, bias, scale and shift of each layer; the last has no scale and shift."""
        h, n_rows = x, x.shape[-1]
        inputs, norms = [], []
        for weight, bias, *norm in _by_layer(parameters):
            inputs.append(h)
            if h.ndim == 2:  # all networks see the same rows: one product
                h = torch.addmm(bias.reshape(-1, 1), weight.reshape(-1, len(h)), h).view(len(weight), -1, n_rows)
            else:
                h = torch.baddbmm(bias, weight, h)
            if not norm:
                ctx.n_parameters = len(parameters)
                ctx.save_for_backward(*parameters, *inputs, *norms)
                return h
            scale, shift = norm
            activation = h.clamp_min_(0)
            mean = activation.mean(-1, keepdim=True)
            h = activation - mean
            # vector_norm and mean along the last dimension are far faster here than var_mean, mul and add than addcmul
            var = torch.linalg.vector_norm(h, dim=-1, keepdim=True).square_().div_(n_rows)
            inverse_std = (var + BATCH_NORM_EPS).rsqrt_()
            h.mul_(inverse_std * scale).add_(shift)
            mask = next(masks)
            if mask is not None:
                h.mul_(mask)
            norms += activation, mean, inverse_std, mask
            running_mean, running_var = next(running)
            running_mean.lerp_(mean, BATCH_NORM_MOMENTUM)
            running_var.lerp_(var.mul_(n_rows / (n_rows - 1)), BATCH_NORM_MOMENTUM)

    @staticmethod
    def backward(ctx, grad: Tensor):
        layers = _by_layer(ctx.saved_tensors[: ctx.n_parameters])
        inputs = ctx.saved_tensors[ctx.n_parameters : ctx.n_parameters + len(layers)]
        norms = _by_layer(ctx.saved_tensors[ctx.n_parameters + len(layers) :])
        gradients: list[Tensor] = []  # in the order of the parameters
        norm_gradients: tuple[Tensor, ...] = ()
        for i in reversed(range(len(layers))):
            weight, x = layers[i][0], inputs[i]
            by_weight = grad.flatten(0, 1) @ x.T if x.ndim == 2 else torch.bmm(grad, x.mT)
            gradients[:0] = by_weight.view_as(weight), grad.sum(-1, keepdim=True), *norm_gradients
            grad = torch.bmm(weight.mT, grad) if i > 0 or ctx.needs_input_grad[0] else None
            if i == 0:
                return grad, None, None, *gradients
            activation, mean, inverse_std, mask = norms[i - 1]
            if mask is not None:
                grad.mul_(mask)
            scale = layers[i - 1][2]
            channels = (1, -1, grad.shape[-1])  # every unit of every network is a channel to torch's own kernel
            grad, by_scale, by_shift = torch.ops.aten.native_batch_norm_backward(
                grad.view(channels),
                activation.view(channels),
                scale.flatten(),
                None,
                None,
                mean.flatten(),
                inverse_std.flatten(),
                True,
                BATCH_NORM_EPS,
                [True, True, True],
            )
            grad = grad.view_as(activation)
            torch.ops.aten.threshold_backward.grad_input(grad, activation, 0, grad_input=grad)
            norm_gradients = by_scale.view_as(scale), by_shift.view_as(scale)


class Dropout:
    """Dropout masks: one draw of noise for each forward pass, each network compared with its own rate."""

    def __init__(self, rates: Sequence[float], device: torch.device):
        rates = torch.tensor(rates, dtype=torch.float64)
        self.active = torch.nonzero(rates > 0).flatten().tolist()  # the others keep every unit, whatever the noise
        self.threshold = (rates * 2**16 - 2**15).round().clamp_max(2**15 - 1).to(torch.int16)[:, None].to(device)
        self.factor = (1 / (1 - rates)).float()[:, None].to(device)

    def masks(self, stack: Stack, units: Sequence[int], n_rows: int) -> Iterator[Tensor | None]:
        """Yield one mask (0, or 1 / (1 - rate)) for each layer with the given number of units."""
        if not self.active:
            yield from (None for _ in units)
            return
        noise = stack.draw_noise(sum(units) * n_rows, self.active)
        keep = torch.empty(noise.shape, device=noise.device)
        torch.ge(noise, self.threshold, out=keep)  # straight into floats: a boolean mask is much slower to apply
        keep.mul_(self.factor)
        start = 0
        for n in units:
            yield keep[:, start : start + n * n_rows].view(stack.n_models, n, n_rows)
            start += n * n_rows


def forward(stack: Stack, name: str, x: Tensor, dropout: Dropout) -> Tensor:
    """Pass rows through one of the stack's chains. x: (inputs, rows), or (K, inputs, rows)."""
    mlp = stack.mlps[name]
    norms = [mlp.layer(i) for i in range(mlp.n_layers - 1)]
    masks = dropout.masks(stack, [stack.running_mean[layer].shape[1] for layer in norms], x.shape[-1])
    running = ((stack.running_mean[layer], stack.running_var[layer]) for layer in norms)
    return Chain.apply(x, masks, running, *stack.parameters_of[name])


class UnitLength(torch.autograd.Function):
    """Columns of (K, features, rows) scaled to length one."""

    @staticmethod
    def forward(ctx, z: Tensor) -> Tensor:
        # (z * z).sum(1) instead of vector_norm(dim=1), which is slow on this layout
        inverse = (z * z).sum(1, keepdim=True).clamp_min_(1e-24).rsqrt_()
        out = z * inverse
        ctx.save_for_backward(out, inverse)
        return out

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        out, inverse = ctx.saved_tensors
        along = (grad * out).sum(1, keepdim=True)
        return torch.addcmul(grad, out, along, value=-1).mul_(inverse)


unit_length = UnitLength.apply


class SoftmaxCrossEntropy(torch.autograd.Function):
    """Mean cross-entropy of each network: logits (K, classes, rows), one-hot targets (classes, rows) -> (K,)."""

    @staticmethod
    def forward(ctx, logits: Tensor, one_hot: Tensor) -> Tensor:
        shifted = logits - logits.amax(1, keepdim=True)
        exp = shifted.exp()
        total = exp.sum(1, keepdim=True)
        ctx.save_for_backward(exp, total, one_hot)
        picked = (shifted * one_hot).sum(1, keepdim=True)
        return (total.log() - picked).mean((1, 2))

    @staticmethod
    def backward(ctx, grad: Tensor):
        exp, total, one_hot = ctx.saved_tensors
        return (exp / total - one_hot) * (grad[:, None, None] / exp.shape[-1]), None


class SquaredError(torch.autograd.Function):
    """Squared error of each network, summed over all its entries and divided by `divisor`, one or (K,) -> (K,)."""

    @staticmethod
    def forward(ctx, output: Tensor, target: Tensor, divisor: float | Tensor) -> Tensor:
        difference = output - target
        ctx.save_for_backward(difference)
        ctx.divisor = divisor
        return torch.linalg.vector_norm(difference.flatten(1), dim=1).square_().div_(divisor)

    @staticmethod
    def backward(ctx, grad: Tensor):
        (difference,) = ctx.saved_tensors
        grad_output = difference * (grad * 2 / ctx.divisor)[:, None, None]
        # a target that is a constant (the data) is shared by all networks and needs no gradient
        return grad_output, -grad_output if ctx.needs_input_grad[1] else None, None


@dataclass
class Batch:
    """Rows of one training step, labelled rows first."""

    x: Tensor  # (features, rows)
    rows: NDArray[np.int64]  # where they are in the training data
    n_labeled: int
    one_hot: Tensor  # (classes, labelled rows)


def make_batches(
    X: NDArray,
    codes: NDArray[np.int64],
    n_classes: int,
    batch_size: int,
    device: torch.device,
    shuffle_seed: int = 0,
) -> list[Batch]:
    """Cut the shuffled rows into consecutive batches.

    The order does not depend on the models' seeds, so that models with different seeds can share batches.
    """
    order = np.random.default_rng(shuffle_seed).permutation(len(X))
    starts = list(range(0, len(X), batch_size))
    # NOTE[DIFF]: batch normalisation cannot work on one row; a last batch of one row joins the one before it.
    if len(starts) > 1 and len(X) - starts[-1] == 1:
        starts.pop()
    batches = []
    for start, stop in zip(starts, [*starts[1:], len(X)], strict=True):
        rows = order[start:stop]
        rows = np.concatenate([rows[codes[rows] >= 0], rows[codes[rows] < 0]])
        labels = codes[rows]
        n_labeled = int(np.sum(labels >= 0))
        one_hot = np.eye(n_classes, dtype=np.float32)[labels[:n_labeled]].T
        x = torch.from_numpy(np.ascontiguousarray(X[rows].T, dtype=np.float32)).to(device)
        batches.append(Batch(x, rows, n_labeled, torch.from_numpy(np.ascontiguousarray(one_hot)).to(device)))
    return batches


def train(
    stack: Stack,
    batches_of_epoch: Callable[[int], Sequence[Batch]],
    loss: Callable[[Batch], dict[str, Tensor]],
    lr: Sequence[float],
    epochs: int,
    progress: tqdm | None = None,
) -> list[dict[str, NDArray[np.float64]]]:
    """Minimise each network's own ``loss(batch)["loss"]``, a (K,) tensor; return every network's losses per epoch."""
    stack.reset_optimizer()
    per_epoch: list[dict[str, Tensor]] = []
    for epoch in range(epochs):
        batches = batches_of_epoch(epoch)
        totals: dict[str, Tensor] = {}
        for batch in batches:
            losses = loss(batch)
            # networks share no parameter: the gradient of the sum is each one's own
            stack.adamw_step(losses["loss"].sum(), lr)
            for name, value in losses.items():
                totals[name] = totals[name] + value.detach() if name in totals else value.detach()
        per_epoch.append({name: value / len(batches) for name, value in totals.items()})
        if progress is not None:
            progress.update(stack.n_models)
    history = {name: torch.stack([e[name] for e in per_epoch]).double().cpu().numpy() for name in per_epoch[0]}
    return [{name: values[:, k] for name, values in history.items()} for k in range(stack.n_models)]


def apply(weights: dict[str, NDArray[np.float32]], name: str, X: NDArray, dtype: DTypeLike = np.float32) -> NDArray:
    """Pass new rows (rows, features) through a trained chain, with the running statistics: no dropout, no torch."""
    h = np.ascontiguousarray(X, dtype=np.float32).astype(dtype, copy=False)
    i = 0
    while f"{name}.{i}.weight" in weights:
        layer = f"{name}.{i}"
        h = h @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"]
        if f"{layer}.mean" in weights:
            np.maximum(h, 0, out=h)
            gain = weights[f"{layer}.scale"] / np.sqrt(weights[f"{layer}.var"] + np.float32(BATCH_NORM_EPS))
            h = (h - weights[f"{layer}.mean"]) * gain + weights[f"{layer}.shift"]
        i += 1
    return h
