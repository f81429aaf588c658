"""Converted weights do exactly what the other implementation did."""

import pytest
import references
import torch
from torch.testing import assert_close

from seqconv_torch import ops
from seqconv_torch.convert import convert_lightconv_weight, interleaved_channels

B, T, C, H, K = 2, 9, 12, 3, 5


def case():
    x = torch.randn(B, T, C, dtype=torch.float64)
    return x, torch.randn(H, 1, K, dtype=torch.float64)


def test_contiguous_heads_keep_their_rows():
    x, weight = case()
    for theirs in (weight, weight[:, 0]):  # PyTorch modules, CUDA layer
        ours = convert_lightconv_weight(theirs, layout="contiguous")
        assert ours.shape == (H, K)
        wanted = references.lightconv(x, weight[:, 0].softmax(-1), K // 2)
        assert_close(ops.lightconv(x, ours, padding_left=K // 2), wanted)


def interleaved_by_conv1d(x, weight, padding):
    """fairseq's didactic module and ESPnet: groups of a [B*C/H, H, T] view."""
    rows = x.transpose(1, 2).reshape(-1, H, T)
    y = torch.conv1d(rows, weight.softmax(-1), padding=padding, groups=H)
    return y.view(B, C, T).transpose(1, 2)


def test_interleaved_heads_become_one_head_a_channel():
    x, weight = case()
    ours = convert_lightconv_weight(weight, layout="interleaved", channels=C)
    assert ours.shape == (C, K)
    y = ops.lightconv(x, ours, padding_left=K // 2)
    assert_close(y, interleaved_by_conv1d(x, weight, K // 2))
    taps = weight[:, 0].softmax(-1)
    assert_close(y, references.lightconv_interleaved(x, taps, K // 2))
    # It does matter.
    assert not torch.allclose(y, references.lightconv(x, taps, K // 2))


def test_interleaved_heads_become_contiguous_by_reordering_the_linear_layers():
    x, weight = case()
    before = torch.nn.Linear(C, C).double()
    after = torch.nn.Linear(C, C).double()
    wanted = after(interleaved_by_conv1d(before(x), weight, K // 2))
    order = interleaved_channels(C, H)
    assert [int(i) for i in order[:5]] == [0, 3, 6, 9, 1]
    with torch.no_grad():
        before.weight.copy_(before.weight[order])
        before.bias.copy_(before.bias[order])
        after.weight.copy_(after.weight[:, order])
    y = ops.lightconv(before(x), weight[:, 0], padding_left=K // 2)
    assert_close(after(y), wanted)


def test_masked_kernels_become_shorter_causal_ones():
    x, weight = case()
    masked = weight.clone()
    masked[..., K // 2 + 1 :] = -torch.inf
    ours = convert_lightconv_weight(
        weight, layout="interleaved", channels=C, kernel_mask=True
    )
    assert ours.shape == (C, K // 2 + 1)
    y = ops.lightconv(x, ours, padding_left=ours.shape[1] - 1)
    assert_close(y, interleaved_by_conv1d(x, masked, K // 2))


LAYOUTS = [{"layout": "contiguous"}, {"layout": "interleaved", "channels": C}]


@pytest.mark.parametrize("options", LAYOUTS)
def test_what_comes_back_is_a_copy(options):
    weight = torch.nn.Parameter(torch.zeros(H, 1, K))
    ours = convert_lightconv_weight(weight, **options)
    ours += 1
    assert (weight == 0).all()
    with torch.no_grad():
        assert not convert_lightconv_weight(weight, **options).requires_grad


@pytest.mark.parametrize("kernel_mask", [False, True])
@pytest.mark.parametrize("options", LAYOUTS)
def test_gradients_go_to_the_weight_that_was_converted(options, kernel_mask):
    weight = case()[1].requires_grad_()

    def convert(weight):
        return convert_lightconv_weight(
            weight, kernel_mask=kernel_mask, **options
        )

    assert torch.autograd.gradcheck(convert, (weight,))


@pytest.mark.parametrize(
    "shape, options, message",
    [
        ((H, 2, K), {"layout": "contiguous"}, r"but got \[3, 2, 5\]"),
        ((H, 1, K), {"layout": "blocks"}, "but got 'blocks'"),
        ((H, 1, K), {"layout": "interleaved"}, "need channels, but got None"),
        (
            (H, 1, K),
            {"layout": "interleaved", "channels": 10},
            "heads must divide channels, but got C = 10, H = 3",
        ),
        (
            (H, 1, 4),
            {"layout": "contiguous", "kernel_mask": True},
            "needs an odd K, but got K = 4",
        ),
    ],
)
def test_what_cannot_be_converted_is_an_error(shape, options, message):
    with pytest.raises(ValueError, match=message):
        convert_lightconv_weight(torch.zeros(shape), **options)
