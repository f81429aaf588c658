"""A Transformer encoder layer whose self-attention is a dynamic convolution."""

import torch

import seqconv


class ConvEncoderLayer(torch.nn.TransformerEncoderLayer):
    def __init__(self, d_model, heads, kernel_size, **options):
        super().__init__(d_model, heads, batch_first=True, **options)
        self.self_attn = seqconv.DynamicConv(d_model, heads, kernel_size)

    def forward(self, src, lengths=None):  # [B, T, C], [B]
        x = self.norm1(src + self.dropout1(self.self_attn(src, lengths)))
        return self.norm2(x + self._ff_block(x))


if __name__ == "__main__":
    layer = ConvEncoderLayer(512, heads=8, kernel_size=31)
    y = layer(torch.randn(2, 100, 512), lengths=torch.tensor([100, 60]))
    print(tuple(y.shape), sum(p.numel() for p in layer.parameters()))
