"""A Transformer encoder whose self-attention is a dynamic convolution."""

import torch

import seqconv_torch


class ConvEncoderLayer(torch.nn.TransformerEncoderLayer):
    def __init__(self, d_model, nhead, kernel_size, **options):
        super().__init__(d_model, nhead, batch_first=True, **options)
        self.self_attn = seqconv_torch.DynamicConv(d_model, nhead, kernel_size)
        self.self_attn.batch_first = False  # torch's fast path knows attention

    def _sa_block(self, x, attn_mask, pads, is_causal=False):
        assert attn_mask is None, "a convolution sees its kernel, not a mask"
        lengths = None if pads is None else (pads == 0).sum(1)
        return self.dropout1(self.self_attn(x, lengths))


if __name__ == "__main__":
    layer = ConvEncoderLayer(512, nhead=8, kernel_size=31)
    encoder = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    pads = torch.arange(100) >= torch.tensor([[100], [60]])
    y = encoder(torch.randn(2, 100, 512), src_key_padding_mask=pads)
    print(tuple(y.shape), sum(p.numel() for p in encoder.parameters()))
