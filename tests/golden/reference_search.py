"""Beam search by its definition (docs/semantics.md 4): every step reads all of what
each hypothesis has so far again.
"""

import dataclasses
import math

import torch

from reference_model import END, PAD

BEGIN = 0


@dataclasses.dataclass
class Found:
    hypotheses: list  # {"tokens", "score", "positional_scores"}, best first
    score_gap: float  # smallest difference of neighbouring scores of the list
    choice_gap: float  # smallest difference of neighbours in any step's ranking


def smallest_gap(values):
    return min((a - b for a, b in zip(values, values[1:])), default=math.inf)


class Search:
    """One sentence's. `next_scores` gives, for prefixes [N, t], the log-probabilities
    [N, V] of the word behind them."""

    def __init__(self, next_scores, beam, lenpen, longest, shortest):
        self.next_scores = next_scores
        self.beam, self.lenpen, self.longest, self.shortest = beam, lenpen, longest, shortest
        self.live = [((), ())]  # tokens so far and their log-probabilities
        self.finished = []
        self.choice_gap = math.inf

    def allowed(self, step):
        scores = self.next_scores([tokens for tokens, _ in self.live]).clone()
        scores[:, [BEGIN, PAD]] = -math.inf
        if step < self.shortest:
            scores[:, END] = -math.inf
        if step >= self.longest:
            others = torch.ones(scores.size(1), dtype=torch.bool)
            others[END] = False
            scores[:, others] = -math.inf
        return scores

    def ranking(self, step):
        """The best 2 * beam extensions: (sum, hypothesis, word, log-probability)."""
        scores = self.allowed(step)
        sums = scores + torch.tensor([[sum(past)] for _, past in self.live], dtype=torch.float64)
        order = torch.sort(sums.flatten(), descending=True, stable=True)
        best = []
        for total, place in zip(order.values.tolist(), order.indices.tolist()):
            if total == -math.inf or len(best) > 2 * self.beam:
                break
            row, word = divmod(place, scores.size(1))
            best.append((total, row, word, scores[row, word].item()))
        self.choice_gap = min(self.choice_gap, smallest_gap([entry[0] for entry in best]))
        return best[: 2 * self.beam]

    def finish(self, row, score):
        tokens, past = self.live[row]
        scores = [*past, score]
        self.finished.append(
            {
                "tokens": [*tokens, END],
                "score": sum(scores) / len(scores) ** self.lenpen,
                "positional_scores": scores,
            }
        )

    def run(self):
        step = 0
        while self.live:
            best = self.ranking(step)
            for _, row, word, score in best[: self.beam]:
                if word == END and len(self.finished) < self.beam:
                    self.finish(row, score)
            going_on = [entry for entry in best if entry[2] != END][: self.beam]
            if step >= self.longest or len(self.finished) >= self.beam:
                going_on = []
            self.live = [
                (self.live[row][0] + (word,), self.live[row][1] + (score,))
                for _, row, word, score in going_on
            ]
            step += 1
        self.finished.sort(key=lambda hypothesis: -hypothesis["score"])
        gap = smallest_gap([hypothesis["score"] for hypothesis in self.finished])
        return Found(self.finished, gap, self.choice_gap)


def translate(model, source, beam, lenpen=1.0, longest=60):
    """All finished hypotheses for a source [S] that ends in </s>."""
    with torch.no_grad():
        memory = model.encode(source.unsqueeze(0))

        def next_scores(prefixes):
            inputs = torch.tensor([[END, *prefix] for prefix in prefixes])
            hidden = model.decode(inputs, memory.expand(len(prefixes), -1, -1))
            return model.log_probabilities(hidden[:, -1:])[:, 0]

        return Search(next_scores, beam, lenpen, longest, shortest=1).run()


def continue_greedily(model, prompt, count):
    """The likeliest words behind </s> and a prompt, neither <pad> nor </s>; their
    log-probabilities, and the smallest lead of one over the next."""
    tokens, scores, lead = [], [], math.inf
    with torch.no_grad():
        for _ in range(count):
            inputs = torch.tensor([[END, *prompt, *tokens]])
            found = model.log_probabilities(model.decode(inputs)[:, -1:])[0, 0]
            ranked = sorted(
                ((s, -i) for i, s in enumerate(found.tolist()) if i not in (PAD, END)), reverse=True
            )
            tokens.append(-ranked[0][1])
            scores.append(ranked[0][0])
            lead = min(lead, ranked[0][0] - ranked[1][0])
    return tokens, scores, lead
