"""A Transformer encoder whose self-attention is a dynamic convolution."""

from typing import Any

import torch
from torch import Tensor

import seqconv_torch


class ConvEncoderLayer(torch.nn.TransformerEncoderLayer):
    def __init__(self, d_model: int, nhead: int, kernel_size: int, **options: Any) -> None:
        super().__init__(d_model, nhead, batch_first=True, **options)
        conv: Any = seqconv_torch.DynamicConv(d_model, nhead, kernel_size)
        conv.batch_first = False  # torch's fast path knows attention
        self.self_attn = conv

    def _sa_block(self, x: Tensor, attn_mask: Any, pads: Any, is_causal: bool = False) -> Any:
        assert attn_mask is None, "a convolution sees its kernel, not a mask"
        lengths = None if pads is None else (pads == 0).sum(1)
        return self.dropout1(self.self_attn(x, lengths))


if __name__ == "__main__":
    layer = ConvEncoderLayer(512, nhead=8, kernel_size=31)
    encoder = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    pads = torch.arange(100) >= torch.tensor([[100], [60]])
    y = encoder(torch.randn(2, 100, 512), src_key_padding_mask=pads)
    print(tuple(y.shape), sum(p.numel() for p in encoder.parameters()))
