"""Losses, gradients and Adam by their definitions (docs/semantics.md 3.1)."""

import math

import torch

from reference_model import PAD, decoder_inputs


def token_loss(log_probabilities, target, form, smoothing=0.1):
    """Sums over tokens in nats: the loss, and its part without smoothing."""
    nll = -log_probabilities.gather(-1, target.unsqueeze(-1)).sum()
    over_all = -log_probabilities.sum()
    words = log_probabilities.size(-1)
    if form == "all":
        return (1 - smoothing) * nll + smoothing / words * over_all, nll
    if form == "others":
        share = smoothing / (words - 1)
        return (1 - smoothing - share) * nll + share * over_all, nll
    return nll, nll


def equal_lengths(pairs):
    """Pairs (source or none, target) in groups that need no padding."""
    groups = {}
    for source, target in pairs:
        groups.setdefault((0 if source is None else len(source), len(target)), []).append((source, target))
    for group in groups.values():
        sources = None if group[0][0] is None else torch.stack([source for source, _ in group])
        yield sources, torch.stack([target for _, target in group])


def batch_loss(model, pairs, form):
    """The same of whole sentences."""
    losses = [
        token_loss(model.forward(sources, targets), targets, form)
        for sources, targets in equal_lengths(pairs)
    ]
    return sum(loss for loss, _ in losses), sum(nll for _, nll in losses)


def target_tokens(pairs):
    return sum(len(target) for _, target in pairs)


def gradients(model, pairs, form):
    """Loss and nll in nats, and the gradients of the loss a token."""
    for value in model.weights.values():
        value.requires_grad_(True)
    loss, nll = batch_loss(model, pairs, form)
    tokens = target_tokens(pairs)
    found = torch.autograd.grad(loss / tokens, list(model.weights.values()))
    for value in model.weights.values():
        value.requires_grad_(False)
    return loss.item(), nll.item(), dict(zip(model.weights, found))


def norm(values):
    return math.sqrt(sum((value * value).sum().item() for value in values))


def quirk_loss(model, pairs):
    """What fairseq's adaptive loss sums: it takes the second word of each tail for
    padding there, and leaves out its tail's part (docs/semantics.md 8.6)."""
    total, left_out = 0.0, 0
    begins = model.architecture.cutoffs
    for _, targets in equal_lengths(pairs):
        head, tails = model.softmax_parts(model.decode(decoder_inputs(targets)))
        for row, place in ((r, t) for r in range(targets.size(0)) for t in range(targets.size(1))):
            word = targets[row, place].item()
            tail = sum(word >= begin for begin in begins) - 1
            if tail < 0:
                total -= head[row, place, word].item()
                continue
            total -= head[row, place, begins[0] + tail].item()
            if word - begins[tail] == PAD:
                left_out += 1
            else:
                total -= tails[tail][row, place, word - begins[tail]].item()
    return total, left_out


class Adam:
    def __init__(self, weights, betas, epsilon, weight_decay=0.0):
        self.betas, self.epsilon, self.weight_decay = betas, epsilon, weight_decay
        self.steps = 0
        self.first = {name: torch.zeros_like(value) for name, value in weights.items()}
        self.second = {name: torch.zeros_like(value) for name, value in weights.items()}

    def update(self, weights, grads, rate):
        self.steps += 1
        b1, b2 = self.betas
        step = rate * math.sqrt(1 - b2**self.steps) / (1 - b1**self.steps)
        for name, value in weights.items():
            g = grads[name]
            self.first[name] = b1 * self.first[name] + (1 - b1) * g
            self.second[name] = b2 * self.second[name] + (1 - b2) * g * g
            value -= rate * self.weight_decay * value
            value -= step * self.first[name] / (self.second[name].sqrt() + self.epsilon)


def clipped(grads, most):
    """Gradients no longer than `most` together; 0: as they are."""
    factor = min(1.0, most / (norm(grads.values()) + 1e-6)) if most > 0 else 1.0
    return {name: value * factor for name, value in grads.items()}


def inverse_root(updates, highest, warmup, start):
    """The learning rate after so many updates."""
    if updates < warmup:
        return start + updates * (highest - start) / warmup
    return highest * math.sqrt(warmup / updates)
